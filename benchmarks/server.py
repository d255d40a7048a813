"""Requests per second of the server, and speed of file uploads: python benchmarks/server.py.

The server is `conspectus serve` in a process of its own, over loopback, with a key; the clients are
connections that are kept open, each sending its next request when the last one is answered. The peer is the
same engine without HTTP, asked by as many tasks at once. "search" asks every query once, so that each is
embedded; "search again" asks `REPEATED` queries in turn, whose vectors are kept.
"""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, cycle
from pathlib import Path

import numpy as np
from corpus import paragraphs, questions
from results import Result, option_parser

import conspectus
from conspectus import NewDocument, Settings

STORE = Path(".benchmarks/server")
CLIENTS = (1, 8, 64)
REPEATED = 300
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
PEPS = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval")) / "peps"

Ask = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Load:
    """The results of a number of clients: requests per second, and the median and 95 % milliseconds."""

    rate: float
    median: float
    high: float

    def shown(self) -> str:
        """The figures of one cell."""
        return f"{self.rate:,.0f}/s, p50 {self.median:.1f}, p95 {self.high:.1f} ms"


class Connection:
    """A minimal persistent connection that sends JSON and reads the answer."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)

    async def post(self, path: str, body: object) -> bytes:
        """The body of the answer; anything but 2xx ends the benchmark."""
        data = json.dumps(body).encode()
        head = f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
        head += f"Authorization: Bearer {self._key}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(answer)
        content = await self._reader.readexactly(int(length[1]) if length else 0)
        if not answer.startswith(b"HTTP/1.1 2"):
            raise SystemExit(f"{path}: {answer.decode()}{content.decode()[:2000]}")
        return content

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def loaded(clients: Sequence[Ask], seconds: float) -> Load:
    """Let every client ask one thing after the other for some seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def work(ask: Ask) -> None:
        while time.perf_counter() < end:
            start = time.perf_counter()
            await ask()
            times.append((time.perf_counter() - start) * 1_000)

    start = time.perf_counter()
    await asyncio.gather(*map(work, clients))
    rate = len(times) / (time.perf_counter() - start)
    return Load(rate, float(np.percentile(times, 50)), float(np.percentile(times, 95)))


def requests(queries: Sequence[str]) -> dict[str, Callable[[], tuple[str, object]]]:
    """For each kind of request, what gives the path and the body of the next one."""
    new, again, notes = iter(queries), cycle(queries[:REPEATED]), count()

    def note() -> tuple[str, object]:
        document = {"text": f"note {next(notes)}: {next(again)}"}
        return "/collections/default/documents", {"documents": [document], "source": "added"}

    return {
        "search": lambda: ("/search", {"query": next(new), "limit": 10}),
        "search again": lambda: ("/search", {"query": next(again), "limit": 10}),
        "add": note,
    }


async def over_http(port: int, key: str, seconds: float, queries: Sequence[str]) -> dict[str, list[Load]]:
    """Every kind of request with each number of clients."""
    kinds = requests(queries)
    results: dict[str, list[Load]] = {kind: [] for kind in kinds}
    for number in CLIENTS:
        connections = [Connection(port, key) for _ in range(number)]
        for connection in connections:
            await connection.open()
        for kind, following in kinds.items():
            clients = [partial(_post, connection, following) for connection in connections]
            results[kind].append(await loaded(clients, seconds))
        for connection in connections:
            connection.close()
    return results


async def _post(connection: Connection, following: Callable[[], tuple[str, object]]) -> None:
    await connection.post(*following())


async def without_http(seconds: float, queries: Sequence[str]) -> dict[str, list[Load]]:
    """The same by tasks of the process that holds the engine."""
    new, again, notes = iter(queries), cycle(queries[:REPEATED]), count()
    async with conspectus.open(STORE, settings=settings()) as engine:

        async def search() -> None:
            await engine.retrieve(next(new), limit=10)

        async def search_again() -> None:
            await engine.retrieve(next(again), limit=10)

        async def add() -> None:
            await engine.add(f"here {next(notes)}: {next(again)}", source="added")

        kinds: dict[str, Ask] = {"search": search, "search again": search_again, "add": add}
        return {
            kind: [await loaded([ask] * number, seconds) for number in CLIENTS] for kind, ask in kinds.items()
        }


def settings() -> Settings:
    """Words and the shipped model, as a user has it."""
    return replace(Settings(), path=str(STORE))


async def filled(texts: Sequence[str]) -> str:
    """A store with an owner account; its key."""
    shutil.rmtree(STORE, ignore_errors=True)
    async with conspectus.open(STORE, settings=settings()) as engine:
        await engine.add([NewDocument(text=text) for text in texts], wait=True)
        owner = await engine.keys.create_first()
    if owner is None:
        raise SystemExit("the store has accounts already")
    return owner.secret


def served(port: int, workers: int) -> subprocess.Popen[bytes]:
    """The server, when it is ready."""
    program = str(Path(sys.executable).with_name("conspectus"))
    command = [program, "serve", "--data-dir", str(STORE)]
    command += ["--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


async def peps(port: int, key: str) -> tuple[int, float, float]:
    """The number of files, seconds until keyword search finds all, and until all are embedded."""
    files = sorted(PEPS.glob("*.rst"))
    start = time.perf_counter()
    async with conspectus.connect(f"http://127.0.0.1:{port}", api_key=key) as engine:
        await engine.documents.add_files(files, source="peps", collection="peps", wait=False)
        words = time.perf_counter() - start
        await engine.documents.wait_until_embedded(collection="peps")
    return len(files), words, time.perf_counter() - start


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--port", type=int, default=8699)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    texts = paragraphs(arguments.chunks)
    queries = questions(texts, 100_000)
    key = asyncio.run(filled(texts))
    process = served(arguments.port, arguments.workers)
    try:
        remote = asyncio.run(over_http(arguments.port, key, arguments.seconds, queries))
        peps_times = asyncio.run(peps(arguments.port, key)) if PEPS.is_dir() else None
    finally:
        process.terminate()
        process.wait(60)
    local = asyncio.run(without_http(arguments.seconds, queries))
    columns = ["clients", *(name for kind in remote for name in (kind, f"{kind}, without HTTP"))]
    rows = [
        [str(number), *(loads[kind][position].shown() for kind in remote for loads in (remote, local))]
        for position, number in enumerate(CLIENTS)
    ]
    title = f"{arguments.chunks:,} chunks."
    below = [_peps(*peps_times)] if peps_times else []
    name = "server" if arguments.workers == 1 else f"server-{arguments.workers}"
    Result.of(title, columns, rows, below=below).shown(name, save=arguments.save)


def _peps(number: int, words: float, embedded: float) -> str:
    return f"{number} PEPs over HTTP: found by keywords after {words:.1f} s, embedded after {embedded:.1f} s."


if __name__ == "__main__":
    main()
