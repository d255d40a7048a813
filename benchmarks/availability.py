"""How long a valid user waits, idle and while others hold connections and send wrong keys.

    python benchmarks/availability.py [--rounds 3] [--seconds 10] [--trickling 500] [--wrong 400]

Starts a server of its own on a new store, and alternates idle and attacked rounds. An attacked round has so
many connections that send a header byte every 2 s and are opened again when they are closed, and so many
clients that ask with a wrong key as fast as they are answered. They run in a process of their own.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import httpx
from results import Result, option_parser

PROGRAM = [sys.executable, "-c", "from conspectus.cli.main import main; main()", "serve", "--port", "0"]
WRONG = f"csp_{'0' * 16}_{'0' * 64}"
HEAD = b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nX: "
ASK = f"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRONG}\r\n\r\n".encode()
WARM_UP = 3.0


def served(folder: Path) -> tuple[subprocess.Popen[str], int, str]:
    """A server, its port, and the key of the owner."""
    environment = {**os.environ, "CONSPECTUS_PATH": str(folder / "store"), "CONSPECTUS_EMBEDDER": "none"}
    log = folder / "log"
    with log.open("w") as told:
        process = subprocess.Popen(PROGRAM, env=environment, stdout=subprocess.PIPE, stderr=told, text=True)
    assert process.stdout is not None
    key = re.search(r"csp_\w+", process.stdout.readline())
    assert key is not None
    while (port := re.search(r"listening on http://127.0.0.1:(\d+)", log.read_text())) is None:
        time.sleep(0.1)
    return process, int(port[1]), key[0]


async def trickle(port: int) -> None:
    """Hold a connection by a byte now and then, until it is closed."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(HEAD)
        while not writer.is_closing():
            await asyncio.sleep(2.0)
            writer.write(b"x")
            await writer.drain()
    finally:
        writer.close()


async def guess(port: int) -> None:
    """Ask with a wrong key, and again once that is answered, until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            writer.write(ASK)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(length[1]) if length else 0)
    finally:
        writer.close()


async def again(client: Callable[[int], Awaitable[None]], port: int) -> None:
    """Reconnect whenever the connection ends."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            await client(port)


def attack(port: int, trickling: int, wrong: int) -> None:
    """Do both until this process is ended."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def all_of_them() -> None:
        await asyncio.gather(*(again(each, port) for each in [trickle] * trickling + [guess] * wrong))

    asyncio.run(all_of_them())


def asked(client: httpx.Client, seconds: float) -> list[float]:
    """The milliseconds that searches took, one after the other."""
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        client.post("/search", json={"query": "when do backups run", "collection": "wiki"}).raise_for_status()
        took.append((time.perf_counter() - start) * 1_000)
        time.sleep(0.01)
    return took


def main() -> None:
    """Measure and print."""
    parser = option_parser(__doc__)
    for name, default in (("rounds", 3), ("seconds", 10), ("trickling", 500), ("wrong", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, port, key = served(Path(folder))
        try:
            measure(port, key, given).shown("availability", save=given.save)
        finally:
            process.terminate()
            process.communicate()


def measure(port: int, key: str, given: argparse.Namespace) -> Result:
    """Alternate rounds, and compare."""
    idle: list[float] = []
    attacked: list[float] = []
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers, timeout=60) as client:
        client.post("/collections", json={"name": "wiki"}).raise_for_status()
        documents = [{"text": f"Backups of server {number} run at two."} for number in range(500)]
        client.post("/collections/wiki/documents", json={"documents": documents}).raise_for_status()
        asked(client, WARM_UP)
        for _ in range(given.rounds):
            idle += asked(client, given.seconds)
            attackers = multiprocessing.Process(target=attack, args=(port, given.trickling, given.wrong))
            attackers.start()
            asked(client, WARM_UP)
            attacked += asked(client, given.seconds)
            attackers.kill()
            attackers.join()
            asked(client, WARM_UP)
    rows, p95s = [], []
    for name, took in (("idle", idle), ("attacked", attacked)):
        cuts = statistics.quantiles(took, n=20)
        rows.append([name, f"{cuts[9]:.1f} ms", f"{cuts[18]:.1f} ms", f"{len(took):,}"])
        p95s.append(cuts[18])
    title = f"The p95 under attack is {p95s[1] / p95s[0]:.2f} times that without."
    return Result.of(title, ["", "p50", "p95", "searches"], rows)


if __name__ == "__main__":
    main()
