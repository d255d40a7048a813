"""The size of a chunk: on disk, by kind of data, and in memory: python benchmarks/sizes.py --chunks 4000.

Paragraphs of the corpus, each a document of one chunk, with vectors of the included model: in a folder, or
with `--postgresql --index pgvector` on a PostgreSQL server of its own, after `VACUUM`.
"""

import argparse
import asyncio
import re
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

import psycopg
from corpus import paragraphs
from results import Result, option_parser
from tests.support.postgres_server import postgres_server

from conspectus import NewDocument, bootstrap
from conspectus.settings import Settings

BATCH = 500
NAMES = {
    "records.sqlite": "records",
    "arrays.bin": "index: postings, columns of filters",
    "vectors.bin": "index: vectors in half precision",
    "documents": "documents",
    "chunks": "chunks",
    "vectors": "vectors of the records, in half precision",
    "index rows": "index: columns of filters",
    "index postings": "index: postings",
    "index batches": "index: batches",
    "index vectors": "index: vectors in half precision",
}
"""Files and tables, with their names in the result."""
TABLES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""
LOG = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"
INDEX = re.compile(r"index_[0-9a-f]+_[0-9a-f]+_([a-z]+)(_\d+)?")


def main() -> None:
    """Measure according to the arguments."""
    parser = option_parser(__doc__)
    parser.add_argument("--chunks", type=int, default=5_000)
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--index", default="auto")
    parser.add_argument("--postgresql", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.postgresql:
            _in_a_database(arguments, Path(folder)).shown("sizes-postgresql", save=arguments.save)
        else:
            _in_a_folder(arguments, Path(folder)).shown("sizes", save=arguments.save)


def _in_a_folder(arguments: argparse.Namespace, folder: Path) -> Result:
    store = folder / "store"
    title = asyncio.run(_fill(arguments, str(store), folder))
    sizes = _files(store)
    rows = [[name, f"{size / arguments.chunks:,.0f}"] for name, size in sizes.most_common()]
    total = ["**together**", f"{sizes.total() / arguments.chunks:,.0f}"]
    return Result.of(title, ["", "bytes a chunk"], [*rows, total])


def _in_a_database(arguments: argparse.Namespace, folder: Path) -> Result:
    with (
        postgres_server(folder) as server,
        server.fresh() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        before = connection.execute(LOG).fetchone()
        title = asyncio.run(_fill(arguments, url, folder))
        after = connection.execute(LOG).fetchone()
        connection.execute("VACUUM (ANALYZE)")
        sizes, indexes = _tables(connection)
        assert before is not None and after is not None
    figures = {name: (size, indexes[name]) for name, size in sizes.most_common()}
    figures |= {"**together**": (sizes.total(), indexes.total())}
    rows = [[name, *(f"{size / arguments.chunks:,.0f}" for size in pair)] for name, pair in figures.items()]
    rows.append(
        ["written to the log, without full pages", f"{(after[0] - before[0]) / arguments.chunks:,.0f}", "-"]
    )
    return Result.of(title, ["", "bytes a chunk", "of it indexes"], rows)


def _tables(connection: psycopg.Connection) -> tuple[Counter[str], Counter[str]]:
    """Bytes of tables with their indexes, and of these alone; those without a name together."""
    sizes: Counter[str] = Counter()
    indexes: Counter[str] = Counter()
    for table, size, of_it in connection.execute(TABLES):
        name = NAMES.get(INDEX.sub(r"index \1", table), "others")
        sizes[name] += size + of_it
        indexes[name] += of_it
    return sizes, indexes


async def _fill(arguments: argparse.Namespace, path: str, folder: Path) -> str:
    """Make a store with that many chunks, all embedded and indexed; what it holds, and the memory."""
    settings = Settings(embedder=arguments.embedder, index=arguments.index, cache=str(folder / "cache"))
    texts = paragraphs(arguments.chunks)
    mean = sum(map(len, texts)) / len(texts)
    before = _resident()
    async with bootstrap.open(path, settings=settings) as engine:
        start = perf_counter()
        for first in range(0, len(texts), BATCH):
            batch = enumerate(texts[first : first + BATCH], first)
            await engine.add([NewDocument(text, key=f"paragraph-{n}") for n, text in batch], wait=True)
        await engine.maintenance.reindex()
        print(f"stored, embedded and indexed in {perf_counter() - start:.1f} s")
        memory = f"{before / 1e6:.0f} MB before, {_resident() / 1e6:.0f} after"
        (collection,) = (await engine.maintenance.status()).collections
    assert collection.chunks == arguments.chunks
    return f"Paragraphs of {mean:.0f} characters. Memory of the process: {memory}."


def _files(store: Path) -> Counter[str]:
    """Bytes of the files of a store; of those without a name together."""
    sizes: Counter[str] = Counter()
    for path in store.rglob("*"):
        if path.is_file():
            sizes[NAMES.get(path.name, "others")] += path.stat().st_size
    return sizes


def _resident() -> int:
    """Bytes of memory of this process."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition("VmRSS:")[2].split()[0]) * 1_024


if __name__ == "__main__":
    main()
