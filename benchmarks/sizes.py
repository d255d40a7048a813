"""The size of a thousand chunks: on disk, by kind of data, and in memory.

python benchmarks/sizes.py --chunks 5000 a folder python benchmarks/sizes.py --chunks 5000 --postgresql a
PostgreSQL server of its own
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

import psycopg
from corpus import paragraphs
from tests.support.postgres_server import postgres_server

from conspectus import NewDocument, bootstrap
from conspectus.settings import Settings

BATCH = 500
SMALLEST = 20
TABLES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid), reltuples::bigint FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
ORDER BY pg_total_relation_size(oid) DESC
"""
LOG = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"


def main() -> None:
    """Measure according to the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=5_000)
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--index", default="auto")
    parser.add_argument("--postgresql", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.postgresql:
            _in_a_database(arguments, Path(folder))
        else:
            _in_a_folder(arguments, Path(folder))


def _in_a_folder(arguments: argparse.Namespace, folder: Path) -> None:
    store = folder / "store"
    chunks = asyncio.run(_fill(arguments, str(store), folder))
    for name, size in sorted(_files(store).items()):
        _show(name, size / chunks)


def _in_a_database(arguments: argparse.Namespace, folder: Path) -> None:
    with (
        postgres_server(folder) as server,
        server.fresh() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        before = connection.execute(LOG).fetchone()
        chunks = asyncio.run(_fill(arguments, url, folder))
        after = connection.execute(LOG).fetchone()
        connection.execute("VACUUM (ANALYZE)")
        _tell_tables(connection, chunks)
        assert before is not None and after is not None
        _show("written to the log, without full pages", (after[0] - before[0]) / chunks)


def _tell_tables(connection: psycopg.Connection, chunks: int) -> None:
    whole = 0
    for name, table, indexes, rows in connection.execute(TABLES):
        whole += table + indexes
        if table + indexes > SMALLEST * chunks:
            _show(f"{name}: {rows} rows; of it indexes {indexes / chunks:,.0f}", (table + indexes) / chunks)
    _show("database", whole / chunks)


async def _fill(arguments: argparse.Namespace, path: str, folder: Path) -> int:
    """Make a store with that many chunks, all embedded and indexed; how many there are."""
    settings = Settings(embedder=arguments.embedder, index=arguments.index, cache=str(folder / "cache"))
    texts = paragraphs(arguments.chunks)
    print(f"{len(texts)} texts of {sum(map(len, texts)) / len(texts):.0f} characters")
    before = _resident()
    async with bootstrap.open(path, settings=settings) as engine:
        start = perf_counter()
        for first in range(0, len(texts), BATCH):
            batch = enumerate(texts[first : first + BATCH], first)
            await engine.add([NewDocument(text, key=f"paragraph-{n}") for n, text in batch], wait=True)
        await engine.maintenance.reindex()
        print(f"stored, embedded and indexed in {perf_counter() - start:.1f} s")
        print(f"resident {before / 1e6:.0f} MB before, {_resident() / 1e6:.0f} MB after")
        (collection,) = (await engine.maintenance.status()).collections
    return collection.chunks


def _files(store: Path) -> dict[str, int]:
    """Bytes by the part of the store that a file belongs to."""
    found: dict[str, int] = {}
    for path in store.rglob("*"):
        if path.is_file():
            part = path.relative_to(store).parts[0] if "segment" not in str(path) else path.name
            found[part] = found.get(part, 0) + path.stat().st_size
    return found


def _resident() -> int:
    """Bytes of memory of this process."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition("VmRSS:")[2].split()[0]) * 1_024


def _show(name: str, each: float) -> None:
    print(f"{each:10,.0f} bytes a chunk  {name}")


if __name__ == "__main__":
    main()
