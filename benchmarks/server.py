"""How many requests a second the server answers, and how fast files go in: python benchmarks/server.py.

The server is `conspectus serve` in a process of its own, over loopback, with a key; the clients are
connections that are kept open, each sending its next request when the last one is answered. The peer is
the same engine without HTTP, asked by as many tasks at once.
"""

import argparse
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
from pathlib import Path

import numpy as np
from corpus import paragraphs, questions
from rich.console import Console
from rich.table import Table

import conspectus
from conspectus import NewDocument, Settings

STORE = Path(".benchmarks/server")
CLIENTS = (1, 8, 64)
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
PEPS = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval")) / "peps"

Ask = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of clients got: requests a second, and milliseconds that half and 95 % stayed below."""

    rate: float
    median: float
    high: float

    def shown(self) -> str:
        """The figures of one cell."""
        return f"{self.rate:,.0f}/s, p50 {self.median:.1f}, p95 {self.high:.1f} ms"


class Connection:
    """A kept connection that sends JSON and reads the answer, and does as little else as it can."""

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
        found = LENGTH.search(answer)
        content = await self._reader.readexactly(int(found[1]) if found else 0)
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

    async def work(place: int, ask: Ask) -> None:
        number = place
        while time.perf_counter() < end:
            start = time.perf_counter()
            await ask(number)
            times.append((time.perf_counter() - start) * 1_000)
            number += len(clients)

    start = time.perf_counter()
    await asyncio.gather(*(work(place, ask) for place, ask in enumerate(clients)))
    rate = len(times) / (time.perf_counter() - start)
    return Load(rate, float(np.percentile(times, 50)), float(np.percentile(times, 95)))


async def over_http(port: int, key: str, seconds: float, asked: Sequence[str]) -> dict[str, list[Load]]:
    """Both kinds of request with each number of clients."""
    results: dict[str, list[Load]] = {"retrieve": [], "add": []}
    for number in CLIENTS:
        connections = [Connection(port, key) for _ in range(number)]
        for each in connections:
            await each.open()

        def retrieves(connection: Connection) -> Ask:
            async def ask(count: int) -> None:
                await connection.post("/search", {"query": asked[count % len(asked)], "limit": 10})

            return ask

        def adds(connection: Connection, number: int = number) -> Ask:
            async def ask(count: int) -> None:
                text = f"note {number}-{count}: {asked[count % len(asked)]}"
                body = {"documents": [{"text": text}], "source": "added"}
                await connection.post("/collections/default/documents", body)

            return ask

        results["retrieve"].append(await loaded([retrieves(each) for each in connections], seconds))
        results["add"].append(await loaded([adds(each) for each in connections], seconds))
        for each in connections:
            each.close()
    return results


async def without_http(seconds: float, asked: Sequence[str]) -> dict[str, list[Load]]:
    """The same by tasks of the process that holds the engine."""
    results: dict[str, list[Load]] = {"retrieve": [], "add": []}
    async with conspectus.open(STORE, settings=settings()) as engine:
        for number in CLIENTS:

            async def retrieve(count: int) -> None:
                await engine.retrieve(asked[count % len(asked)], limit=10)

            async def add(count: int, number: int = number) -> None:
                await engine.add(f"here {number}-{count}: {asked[count % len(asked)]}", source="added")

            results["retrieve"].append(await loaded([retrieve] * number, seconds))
            results["add"].append(await loaded([add] * number, seconds))
    return results


def settings() -> Settings:
    """Words and the shipped model, as a user has it."""
    return replace(Settings(), path=str(STORE))


async def filled(texts: Sequence[str]) -> str:
    """A store with an owner account; its key."""
    shutil.rmtree(STORE, ignore_errors=True)
    async with conspectus.open(STORE, settings=settings()) as engine:
        await engine.add([NewDocument(text=text) for text in texts], wait=True)
        made = await engine.people.create_owner()
    if made is None:
        raise SystemExit("the store has accounts already")
    return made.secret


def served(port: int) -> subprocess.Popen[bytes]:
    """The server, when it is ready."""
    program = str(Path(sys.executable).with_name("conspectus"))
    command = [program, "serve", "--data-dir", str(STORE), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


async def peps(port: int, key: str) -> tuple[int, float, float]:
    """Files sent, seconds until all are found by words, and until all are embedded."""
    files = sorted(PEPS.glob("*.rst"))
    start = time.perf_counter()
    async with conspectus.connect(f"http://127.0.0.1:{port}", api_key=key) as engine:
        await engine.documents.add_files(files, source="peps", collection="peps", wait=False)
        words = time.perf_counter() - start
        await engine.documents.wait_until_embedded(collection="peps")
    return len(files), words, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--port", type=int, default=8699)
    arguments = parser.parse_args()
    texts = paragraphs(arguments.chunks)
    asked = questions(texts, 300)
    key = asyncio.run(filled(texts))
    process = served(arguments.port)
    try:
        remote = asyncio.run(over_http(arguments.port, key, arguments.seconds, asked))
        taken = asyncio.run(peps(arguments.port, key)) if PEPS.is_dir() else None
    finally:
        process.terminate()
        process.wait(60)
    local = asyncio.run(without_http(arguments.seconds, asked))
    table = Table("clients", *remote, title=f"{arguments.chunks:,} chunks, over HTTP and without")
    for place, number in enumerate(CLIENTS):
        cells = [_cell(remote[kind][place], local[kind][place]) for kind in remote]
        table.add_row(str(number), *cells)
    Console().print(table)
    if taken:
        number, words, whole = taken
        print(f"{number} PEPs over HTTP: found by words after {words:.1f} s, embedded after {whole:.1f} s")


def _cell(there: Load, here: Load) -> str:
    return f"{there.shown()}\nwithout HTTP {here.shown()} ({there.rate / here.rate:.2f}x)"


if __name__ == "__main__":
    main()
