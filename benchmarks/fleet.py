"""Servers on one database under mixed load with permission changes: python benchmarks/fleet.py --minutes 10.

Four `conspectus serve` on one PostgreSQL and a `conspectus worker`, each a process of its own; 64 clients,
each asking any of the servers, as users who are granted sources and lose them, whose keys are revoked, and
whose texts are changed and deleted. Every text names its source and its version, so every answer is held
against what was true when it was asked for: nothing that was revoked, replaced or deleted before may be in
it, and what the user had all the time must be found. At the end every acknowledged write is there once, the
store finds nothing wrong with itself, and no server has had a fault.
"""

import argparse
import asyncio
import os
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
from fleet_clients import HOME, KINDS, MARK, MEMORIES, USERS, Client, Fleet, Mark, Truth
from results import Result, option_parser
from tests.support.postgres_server import postgres_server

import conspectus
from conspectus import Settings
from conspectus.engine import Engine
from conspectus.model.access import Principal

PROGRAM = [sys.executable, "-c", "from conspectus.cli.entry import main; main()"]


def environment(url: str, folder: Path, embedder: str) -> dict[str, str]:
    """The environment of the processes; the URL is not an argument, which any user can read."""
    options = {"PATH": url, "CACHE": folder, "EMBEDDER": embedder, "LOG_LEVEL": "warning"}
    return {**os.environ, **{f"CONSPECTUS_{name}": str(value) for name, value in options.items()}}


@asynccontextmanager
async def running(arguments: Sequence[str], variables: dict[str, str], log: Path) -> AsyncIterator[str]:
    """A process of Conspectus, and the output that shows that it is ready."""
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, *arguments, env=variables, stdout=asyncio.subprocess.DEVNULL, stderr=errors
        )
    try:
        yield await _ready(process, log)
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 120)


async def _ready(process: asyncio.subprocess.Process, log: Path) -> str:
    while process.returncode is None:
        line = re.search(r"^(listening on \S+|working)", _read(log), re.MULTILINE)
        if line:
            return line[0]
        await asyncio.sleep(0.1)
    raise SystemExit(_read(log))


def _read(log: Path) -> str:
    return log.read_text(errors="replace")


async def founded(url: str, settings: Settings, clients: int) -> tuple[str, list[str], list[tuple[str, str]]]:
    """A store with people, sources and roles: the owner's key, ids of users, a key for each client."""
    async with conspectus.open(url, settings=settings) as engine:
        owner = await engine.keys.create_first()
        if owner is None:
            raise SystemExit("the store has accounts already")
        await engine.collections.create(HOME)
        users = [await engine.people.create_user(f"user {number}") for number in range(USERS)]
        for number in range(clients):
            await engine.collections.get_or_create_source(f"s{number}", collection=HOME)
            grantee = Principal("user", users[number % USERS].id)
            await engine.access.grant(HOME, grantee, "editor", source=f"s{number}")
        keys = [await engine.keys.create(users[number % USERS].id) for number in range(clients)]
    return owner.secret, [str(user.id) for user in users], [(key.secret, str(key.key.id)) for key in keys]


def begun(fleet: Fleet, clients: int) -> None:
    """The initial state: users see the sources that they write to, and nothing else."""
    fleet.numbers = clients
    places = [*range(clients), *(MEMORIES + user for user in range(USERS))]
    for user in range(USERS):
        for source in places:
            is_own = source % USERS == user if source < MEMORIES else source == MEMORIES + user
            (fleet.truth.granted if is_own else fleet.truth.revoked)[user, source] = 0.0


async def verify(engine: Engine, truth: Truth) -> None:
    """Every acknowledged write is there once, nothing else is, and the store is whole."""
    stored: Counter[Mark] = Counter()
    for collection in await engine.collections.list():
        after = None
        while True:
            page = await engine.documents.list(collection=collection.id, after=after, limit=1_000)
            for text in (
                await engine.documents.get_texts([document.id for document in page.documents])
            ).values():
                stored.update((int(n), int(v), int(s)) for n, v, s in MARK.findall(text))
            after = page.next
            if after is None:
                break
    sure = {mark: count for mark, count in stored.items() if mark[0] not in truth.unsure}
    expected = {mark for mark in truth.there if mark[0] not in truth.unsure}
    truth.wrongs += [f"{mark} was acknowledged and is not there" for mark in expected - sure.keys()]
    truth.wrongs += [f"{mark} is there and should not be" for mark in sure.keys() - expected]
    truth.wrongs += [f"{mark} is there {count} times" for mark, count in sure.items() if count > 1]
    report = await engine.maintenance.check()
    if not report.clean:
        truth.wrongs.append(f"check: {report}")


async def faults_of(servers: Sequence[httpx.AsyncClient], owner: str) -> Counter[str]:
    """The answers of all servers that were faults, as they counted themselves."""
    statuses: Counter[str] = Counter()
    for server in servers:
        text = (await server.get("/metrics", headers={"Authorization": f"Bearer {owner}"})).text
        for status, count in re.findall(
            r'^conspectus_requests_total{.*status="(5\d\d|0)"} (\S+)', text, re.M
        ):
            statuses[status] += int(float(count))
    return statuses


def result(fleet: Fleet, seconds: float) -> Result:
    """The requests of each kind."""
    tally, rows = fleet.tally, []
    for kind in KINDS:
        times = tally.times[kind] or [np.nan]
        statuses = ", ".join(f"{name}: {count:,}" for name, count in sorted(tally.statuses[kind].items()))
        low, high = np.percentile(times, [50, 95])
        rate = f"{len(times) / seconds:.1f}"
        rows.append([kind, f"{len(times):,}", rate, f"{low:,.0f} ms", f"{high:,.0f} ms", statuses])
    total, wrong = sum(map(len, tally.times.values())), len(fleet.truth.wrongs)
    title = f"{total:,} requests in {seconds:.0f} s; leaks and losses: {wrong}, faults: {len(tally.faults)}."
    return Result.of(title, ["kind", "requests", "a second", "p50", "p95", "statuses"], rows)


async def fleet_of(arguments: argparse.Namespace, url: str, folder: Path, stack: AsyncExitStack) -> Fleet:
    """The servers, when they are ready, and a worker."""
    settings = replace(Settings(), embedder=arguments.embedder, cache=str(folder / "here"))
    owner, users, keys = await founded(url, settings, arguments.clients)
    places = []
    one = [["serve", "--port", "0", "--no-jobs", "--workers", str(arguments.servers)]]
    servers_apart = [["serve", "--port", "0", "--no-jobs"]] * arguments.servers
    for number, command in enumerate(one if arguments.one_port else servers_apart):
        variables = environment(url, folder / f"server {number}", arguments.embedder)
        log = folder / f"server {number}.log"
        places.append((await stack.enter_async_context(running(command, variables, log))).split()[-1])
    variables = environment(url, folder / "worker", arguments.embedder)
    await stack.enter_async_context(running(["worker"], variables, folder / "worker.log"))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    servers = [
        await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=120, limits=limits))
        for address in places
    ]
    fleet = Fleet(servers, owner, users)
    begun(fleet, arguments.clients)
    fleet.clients = [Client(fleet, number, *key) for number, key in enumerate(keys)]
    return fleet


async def loaded(arguments: argparse.Namespace, url: str, folder: Path) -> tuple[Fleet, float]:
    """Everything, up to the end of all processes."""
    async with AsyncExitStack() as stack:
        fleet = await fleet_of(arguments, url, folder, stack)
        start = time.monotonic()
        until = start + 60.0 * arguments.minutes
        await asyncio.gather(*(client.work(until) for client in fleet.clients))
        seconds = time.monotonic() - start
        counted = await faults_of(fleet.servers, fleet.owner)
    print(f"faults that the servers counted: {dict(counted) or 'none'}")
    fleet.tally.faults += [f"a server answered {status}" for status in counted if status not in {"503", "0"}]
    settings = replace(
        Settings(), embedder=arguments.embedder, cache=str(folder / "here"), run_background_jobs="off"
    )
    async with conspectus.open(url, settings=settings) as engine:
        await verify(engine, fleet.truth)
    return fleet, seconds


def judged(fleet: Fleet, folder: Path) -> int:
    """Say what was wrong; the exit code."""
    truth, faults = fleet.truth, fleet.tally.faults
    print(f"{len(truth.there):,} texts there, {len(truth.gone):,} gone, {len(truth.unsure)} unsure")
    print(f"leaks and losses: {len(truth.wrongs)}; faults: {len(faults)}")
    for problem in [*truth.wrongs[:10], *faults[:10]]:
        print(f"  {problem}")
    for log in sorted(folder.glob("*.log")):
        errors = [line for line in log.read_text().splitlines() if '"level": "error"' in line]
        for line in errors[:3]:
            print(f"  {log.name}: {line[:1_000]}")
    return 1 if truth.wrongs or faults else 0


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--one-port", action="store_true", help="one `serve --workers` in place of several")
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--quick", action="store_true", help="some seconds, to see that it works")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.minutes, arguments.clients, arguments.servers = 0.12, 16, 2
    with TemporaryDirectory(prefix="conspectus-fleet-") as name:
        folder = Path(name)
        with postgres_server(folder) as server, server.fresh() as url:
            fleet, seconds = asyncio.run(loaded(arguments, url, folder))
        wrong = judged(fleet, folder)
    result(fleet, seconds).shown("fleet", save=arguments.save)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
