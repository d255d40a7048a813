"""Servers and databases killed with -9 under load: python benchmarks/kills.py --store folder --kills 1000.

Every document is a register: each read has to fit one order of the writes, an acknowledged write is never
lost or doubled, and a refused one is never stored. Registers are read by their ids and by searches; the
longest time without an answered search is measured. A log has a line for each store of KILLS_OF_A_STORE
kills, and a later run goes on behind it. `--save` writes the table of all logs.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from results import Result, option_parser
from tests.faults.job_taker import SETTINGS
from tests.faults.test_registers import Site, running_clients
from tests.faults.test_server_killed import create_store_with_key, running_server
from tests.files import holding
from tests.support.milvus_server import MilvusProcess, milvus_server
from tests.support.postgres_server import PostgresProcess, postgres_server

import conspectus

KILLS_OF_A_STORE: Final = 25
WRITES_BETWEEN_KILLS: Final = 20
DATABASE_SHARE: Final = 0.25
"""The share of the kills that hit the database, where there is one."""
LOGS: Final = Path(".benchmarks") / "kills"
STORES: Final = ("folder", "postgresql", "milvus")
COLUMNS: Final = (
    "store",
    "servers killed",
    "databases killed",
    "writes",
    "reads",
    "faults",
    "longest without a search",
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a store went through. `wrong` reads fit no order of the writes; `silence` is in seconds."""

    kills: int
    database_kills: int
    writes: int
    reads: int
    wrong: int
    purged_found: int
    silence: float
    is_clean: bool


@dataclass
class SearchedSite(Site):
    """A site that notes when searches were answered."""

    answered: list[float] = field(default_factory=list)

    async def by_words(self, number: int) -> str | None:
        """The text of a register, as a search finds it."""
        text = await super().by_words(number)
        if text != "lost":
            self.answered.append(time.monotonic())
        return text

    def silence(self) -> float:
        """The longest time without an answered search."""
        return max((after - before for before, after in pairwise(self.answered)), default=0.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is, how many servers it has at once, and the database that can be killed."""

    path: str | Path
    servers: int
    database: PostgresProcess | MilvusProcess | None


@contextmanager
def place_of(store: str, folder: Path) -> Iterator[Place]:
    """A new place for a store of this kind."""
    match store:
        case "folder":
            yield Place(folder / "store", 1, None)
        case "postgresql":
            with postgres_server() as server, server.fresh() as url:
                yield Place(url, 2, server)
        case _:
            with milvus_server(folder / "milvus") as milvus:
                os.environ |= {"CONSPECTUS_INDEX": "milvus", "CONSPECTUS_MILVUS_URI": milvus.uri}
                yield Place(folder / "store", 1, milvus)


async def kill_repeatedly(site: SearchedSite, site_store: Place, kills: int) -> int:
    """Kill a server, or the database, after some writes each; how often the database was killed."""
    running: list[AsyncExitStack] = []
    database_kills = 0
    chance = random.Random(time.monotonic_ns())
    try:
        for _ in range(kills):
            while len(running) < site_store.servers:
                running.append(AsyncExitStack())
                site.addresses.append(await running[-1].enter_async_context(running_server(site_store.path)))
            await site.wait_for_writes(site.done_writes + WRITES_BETWEEN_KILLS)
            if site_store.database is not None and chance.random() < DATABASE_SHARE:
                database_kills += 1
                await asyncio.to_thread(site_store.database.kill)
                await asyncio.to_thread(site_store.database.start)
            else:
                site.addresses.pop(0)
                await running.pop(0).aclose()
    finally:
        site.stopped = True
        for stack in running:
            await stack.aclose()
    return database_kills


def run_batch(store: str, kills: int) -> Batch:
    """Kill servers of a new store, and compare what was read with what was written."""
    with TemporaryDirectory() as name, place_of(store, Path(name)) as store_place:
        return asyncio.run(run_place(store_place, kills))


async def run_place(store_place: Place, kills: int) -> Batch:
    """Write, read and kill in one place, then check its store."""
    site = SearchedSite(await create_store_with_key(store_place.path))
    async with running_clients(site):
        database_kills = await kill_repeatedly(site, store_place, kills)
    async with conspectus.open(store_place.path, settings=SETTINGS) as engine:
        is_clean = (await engine.maintenance.check()).clean
    return Batch(
        kills=kills - database_kills,
        database_kills=database_kills,
        writes=site.done_writes,
        reads=sum(len(register.reads) for register in site.registers),
        wrong=sum(len(register.faults()) for register in site.registers),
        purged_found=count_purged(site, store_place),
        silence=round(site.silence(), 2),
        is_clean=is_clean,
    )


def count_purged(site: SearchedSite, store_place: Place) -> int:
    """The purged texts that are still in a file of a folder; the files are printed."""
    path = store_place.path
    if not isinstance(path, Path):
        return 0
    files_by_text = {text: holding(path, text) for text in site.purged}
    for text, files in files_by_text.items():
        if files:
            print(f"{text} is purged and in {', '.join(map(str, files))}", file=sys.stderr)
    return sum(map(bool, files_by_text.values()))


def batches_of(log: Path, store: str) -> list[Batch]:
    """The logged batches of a kind of store."""
    path = log / f"{store}.jsonl"
    return [Batch(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def row_of(store: str, batches: list[Batch]) -> tuple[str, ...]:
    """The row of the table: sums over all batches of a store."""
    return (
        store,
        f"{sum(batch.kills for batch in batches):,}",
        f"{sum(batch.database_kills for batch in batches):,}",
        f"{sum(batch.writes for batch in batches):,}",
        f"{sum(batch.reads for batch in batches):,}",
        str(sum(batch.wrong + batch.purged_found + (not batch.is_clean) for batch in batches)),
        f"{max(batch.silence for batch in batches):.1f} s",
    )


def main(options: argparse.Namespace) -> None:
    """Run what the log lacks, and show the table of all stores."""
    options.log.mkdir(parents=True, exist_ok=True)
    while (done := sum(map(kills_of, batches_of(options.log, options.store)))) < options.kills:
        batch = run_batch(options.store, min(KILLS_OF_A_STORE, options.kills - done))
        with (options.log / f"{options.store}.jsonl").open("a") as log:
            log.write(json.dumps(asdict(batch)) + "\n")
        print(f"{options.store}: {done + kills_of(batch)} of {options.kills}, {batch}", flush=True)
    logged = {store: batches_of(options.log, store) for store in STORES}
    rows = [row_of(store, batches) for store, batches in logged.items() if batches]
    title = (
        "Registers under kills with -9. Faults are wrong reads, purged texts in files, and checks that fail."
    )
    result = Result.of(title, COLUMNS, rows)
    print(result.markdown())
    if options.save:
        result.save("kills")
    if any(row[5] != "0" for row in rows):
        sys.exit("something was lost, doubled, or found after a purge")


def kills_of(batch: Batch) -> int:
    """The number of kills of a batch."""
    return batch.kills + batch.database_kills


def parsed() -> argparse.Namespace:
    """The options."""
    parser = option_parser(__doc__)
    parser.add_argument("--store", choices=STORES, default="folder")
    parser.add_argument(
        "--kills", type=int, default=KILLS_OF_A_STORE, help="kills in all, those of the log included"
    )
    parser.add_argument("--log", type=Path, default=LOGS, help="the folder of the logs")
    return parser.parse_args()


if __name__ == "__main__":
    main(parsed())
