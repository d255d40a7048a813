"""Search beside many mirrored sources, by a person in many groups.

    python benchmarks/viewers.py --store pgvector

Both collections have the same documents. One has a single source without viewers, the other a mirrored source
for each distinct set of viewers. Half of the sets name groups of the person.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import create_engine, text

import conspectus
from conspectus import Engine
from conspectus.model.access import Person, Principal
from conspectus.model.records import NewDocument
from conspectus.model.viewers import RemotePerson
from conspectus.testing.embedders import HashedEmbedder
from stores import STORES, Place, placed

WORDS = ["lantern", "harbor", "quince", "ledger", "signal", "winter", "copper", "meadow", "anchor", "violet"]
BATCH = 1_000
QUERIES = 40


def make_text(number: int, dice: random.Random) -> str:
    """The text of a document: some common words and a rare one."""
    return " ".join(dice.choices(WORDS, k=30)) + f" word{number % 997}"


async def add_documents(engine: Engine, collection: str, documents: int) -> None:
    """Add documents to one source."""
    dice = random.Random(1)
    batch = [NewDocument(make_text(number, dice), key=str(number)) for number in range(documents)]
    for start in range(0, len(batch), BATCH):
        await engine.documents.add(
            batch[start : start + BATCH], collection=collection, source="all", wait=False
        )
    await engine.documents.wait_until_embedded(collection=collection)


def mirror_documents(records: str, sets: int, groups: int) -> None:
    """Spread the documents of one collection over mirrored sources, each with viewers of its own."""
    dice = random.Random(2)
    with create_engine(records).begin() as connection:
        query = text("SELECT id FROM collections WHERE name = 'mirrored'")
        collection = {"collection": connection.execute(query).scalar_one()}
        connection.execute(text("UPDATE collections SET mirrors = 1 WHERE id = :collection"), collection)
        connection.execute(
            text(
                "INSERT INTO sources (id, collection, name, metadata, kind, mirrored)"
                " VALUES (:id, :collection, :id, '{}', 'wiki', 'remote')"
            ),
            [{"id": f"set {number}", **collection} for number in range(sets)],
        )
        connection.execute(
            text(f"UPDATE documents SET source = 'set ' || (number % {sets}) WHERE collection = :collection"),
            collection,
        )
        viewers = [
            {"source": f"set {number}", "viewer": viewer}
            for number in range(sets)
            for viewer in {
                f"only:{number}",
                *(f"{('foreign', 'group')[number % 2]}:{dice.randrange(groups)}" for _ in range(3)),
            }
        ]
        connection.execute(text("INSERT INTO source_viewers VALUES (:source, :viewer)"), viewers)


def records_address(store: str) -> str:
    """The address of the records for SQLAlchemy."""
    if store.startswith("postgresql:"):
        return store.replace("postgresql:", "postgresql+psycopg:", 1)
    return f"sqlite:///{store}/records.sqlite"


async def measure(engine: Engine, collection: str, query_words: list[str]) -> list[float]:
    """Milliseconds of each search, after a few that warm up."""
    times = []
    for number in range(QUERIES + 5):
        begin = time.perf_counter()
        retrieval = await engine.search.retrieve(
            f"{query_words[number % len(query_words)]} word{number}", collection=collection, limit=10
        )
        times.append((time.perf_counter() - begin) * 1_000)
        assert retrieval.hits
    return times[5:]


async def compare(location: Place, options: argparse.Namespace) -> None:
    """Print the medians of both collections, and what the first search after a change of a group takes."""
    store, settings = location.path, location.settings
    async with conspectus.open(store, settings=settings, embedder=HashedEmbedder()) as engine:
        for collection in ("plain", "mirrored"):
            await add_documents(engine, collection, options.documents)
    await asyncio.to_thread(mirror_documents, records_address(store), options.sets, options.groups)
    async with conspectus.open(store, settings=settings, embedder=HashedEmbedder()) as engine:
        await engine.maintenance.reindex(collection="mirrored")
        user = await engine.people.create_user("ann")
        person = engine.as_person(Person("ann", id=user.id))
        for collection in ("plain", "mirrored"):
            await engine.access.grant(collection, Principal("user", user.id), "viewer")
        accounts = engine._context.parts.accounts
        members = {f"group:{number}": ["ann"] for number in range(options.groups)}
        await accounts.put_remote_members("remote", members)
        await accounts.map_remote_person("remote", RemotePerson("ann", user.id), created=datetime.now(UTC))
        medians = []
        for collection in ("plain", "mirrored"):
            times = await measure(person, collection, WORDS)
            p95 = sorted(times)[int(len(times) * 0.95)]
            medians.append(statistics.median(times))
            print(f"{collection:10} median {medians[-1]:8.1f} ms   p95 {p95:8.1f} ms", flush=True)
        await accounts.put_remote_members("remote", {"group:0": []})
        begin = time.perf_counter()
        await person.search.retrieve(WORDS[0], collection="mirrored", limit=10)
        took = (time.perf_counter() - begin) * 1_000
        print(f"ratio      {medians[1] / medians[0]:8.2f}      after a change of a group {took:8.1f} ms")


def main() -> None:
    """Measure one store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=STORES, default="embedded")
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conspectus-") as folder, ExitStack() as stack:
        asyncio.run(compare(placed(stack, options.store, Path(folder)), options))


if __name__ == "__main__":
    main()
