"""Search beside many mirrored sources, in SQLite with segments, by a person in many groups.

Both collections have the same documents. One has a single source without viewers, the other a mirrored source
for each distinct set of viewers. Half of the sets name groups of the person.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import conspectus
from conspectus import Engine, Settings
from conspectus.model.access import Person, Principal
from conspectus.model.records import NewDocument
from conspectus.model.viewers import RemotePerson
from conspectus.testing.embedders import HashedEmbedder

WORDS = ["lantern", "harbor", "quince", "ledger", "signal", "winter", "copper", "meadow", "anchor", "violet"]
BATCH = 1_000
QUERIES = 40


def text_of(number: int, dice: random.Random) -> str:
    """The text of a document: some common words and a rare one."""
    return " ".join(dice.choices(WORDS, k=30)) + f" word{number % 997}"


async def add_documents(engine: Engine, collection: str, documents: int) -> None:
    """Add documents to one source."""
    dice = random.Random(1)
    batch = [NewDocument(text_of(number, dice), key=str(number)) for number in range(documents)]
    for start in range(0, len(batch), BATCH):
        await engine.documents.add(
            batch[start : start + BATCH], collection=collection, source="all", wait=False
        )
    await engine.documents.wait_until_embedded(collection=collection)


def mirror_documents(records: Path, sets: int, groups: int) -> None:
    """Spread the documents of one collection over mirrored sources, each with viewers of its own."""
    dice = random.Random(2)
    with closing(sqlite3.connect(records)) as connection, connection:
        ((collection,),) = connection.execute("SELECT id FROM collections WHERE name = 'mirrored'")
        connection.execute("UPDATE collections SET mirrors = 1 WHERE id = ?", (collection,))
        sources = [(f"set {number}", collection, f"set {number}") for number in range(sets)]
        connection.executemany(
            "INSERT INTO sources (id, collection, name, metadata, kind, mirrored)"
            " VALUES (?, ?, ?, '{}', 'wiki', 'remote')",
            sources,
        )
        connection.execute(
            "UPDATE documents SET source = 'set ' || (number % ?) WHERE collection = ?", (sets, collection)
        )
        viewers = {
            (f"set {number}", viewer)
            for number in range(sets)
            for viewer in (
                f"only:{number}",
                *(f"{('foreign', 'group')[number % 2]}:{dice.randrange(groups)}" for _ in range(3)),
            )
        }
        connection.executemany("INSERT INTO source_viewers VALUES (?, ?)", sorted(viewers))


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


async def main() -> None:
    """Print the medians of both people."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args()
    settings = replace(Settings(), log_level="critical")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        async with conspectus.open(store, settings=settings, embedder=HashedEmbedder()) as engine:
            for collection in ("plain", "mirrored"):
                await add_documents(engine, collection, options.documents)
        await asyncio.to_thread(mirror_documents, store / "records.sqlite", options.sets, options.groups)
        async with conspectus.open(store, settings=settings, embedder=HashedEmbedder()) as engine:
            await engine.maintenance.reindex(collection="mirrored")
            user = await engine.people.create_user("ann")
            person = engine.as_person(Person("ann", id=user.id))
            for collection in ("plain", "mirrored"):
                await engine.access.grant(collection, Principal("user", user.id), "viewer")
            accounts = engine._context.parts.accounts
            members = {f"group:{number}": ["ann"] for number in range(options.groups)}
            await accounts.put_remote_members("remote", members)
            now = datetime.now(UTC)
            await accounts.map_remote_person("remote", RemotePerson("ann", user.id), created=now)
            for collection in ("plain", "mirrored"):
                times = await measure(person, collection, WORDS)
                p95 = sorted(times)[int(len(times) * 0.95)]
                print(
                    f"{collection:10} median {statistics.median(times):8.1f} ms   p95 {p95:8.1f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    asyncio.run(main())
