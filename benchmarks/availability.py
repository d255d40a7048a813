"""How long a valid user waits while others attack the server, and how long the server takes to end then.

    python benchmarks/availability.py [--seconds 8] [--rounds 2] [--chunks 100000] [--only NAME …] [--save]

Each row starts a server of its own on one store. Attackers run in a process of their own, and a valid user
searches meanwhile, one search after the other. "Idle" is the same without attackers, beside a process that
burns as much processor time as they did, since all share the cores. At last the server gets SIGTERM while it
is attacked. A row is reached if the p95 is less than twice that of idle, and the server ends within 10 s.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Final

import httpx
from corpus import paragraphs
from results import Result, option_parser

from conspectus import bootstrap
from conspectus.model.access import Principal
from conspectus.model.records import NewDocument
from conspectus.settings import Settings

PROGRAM: Final = [
    sys.executable,
    "-c",
    "from conspectus.cli.main import main; main()",
    "serve",
    "--port",
    "0",
]
WRONG_KEY: Final = f"csp_{'0' * 16}_{'0' * 64}"
WARM_UP_SECONDS: Final = 2.0
EXIT_GOAL_SECONDS: Final = 10.0
EXIT_LIMIT_SECONDS: Final = 60.0
RATIO_GOAL: Final = 2.0
BURN_SECONDS: Final = 0.01
"""The length of a step of the burning process, of which a share is burnt."""
WORD: Final = "harbor"
"""It stands in every document, so that a query for it ranks all of them."""
LAST_KEY: Final = "last"
STATIC_PATHS: Final = ("/console", "/console/docs/", "/docs", "/console/docs/llms.txt", "/")


@dataclass(frozen=True, slots=True)
class Target:
    """What attackers know: the port, the key of a user who may write, and the document ranked last."""

    port: int
    key: str
    document: str


Attacker = Callable[[Target], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Attack:
    """A row: so many clients of one kind, each of which begins anew when its connection ends."""

    name: str
    clients: int
    client: Attacker


def head_of(method: str, path: str, key: str = "", length: int = 0) -> bytes:
    """The head of a request, with a key and a JSON body if it has some."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if length:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


async def read_response(reader: asyncio.StreamReader) -> None:
    """Read one response to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    remaining = int(length[1]) if length else 0
    while remaining > 0:
        piece = await reader.read(min(remaining, 1 << 20))
        if not piece:
            raise ConnectionError
        remaining -= len(piece)


async def repeat(port: int, requests: Sequence[bytes]) -> None:
    """Send requests over one connection, each as soon as the one before is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            for request in requests:
                writer.write(request)
                await writer.drain()
                await read_response(reader)
    finally:
        writer.close()


async def read_document(target: Target) -> None:
    """Read the OpenAPI document without a key."""
    await repeat(target.port, [head_of("GET", "/openapi.json")])


async def read_pages(target: Target) -> None:
    """Read pages without a key."""
    await repeat(target.port, [head_of("GET", path) for path in STATIC_PATHS])


async def guess_key(target: Target) -> None:
    """Send a wrong key."""
    await repeat(target.port, [head_of("GET", "/api/v1/me", WRONG_KEY)])


async def trickle(target: Target) -> None:
    """Hold a connection by a byte now and then, until it is closed."""
    _, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        writer.write(b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nX: ")
        while not writer.is_closing():
            await asyncio.sleep(2.0)
            writer.write(b"x")
            await writer.drain()
    finally:
        writer.close()


def large_body(size: int) -> bytes:
    """A document whose metadata have as many empty texts as fit."""
    start, end = b'{"documents":[{"text":"a","metadata":{"a":[""', b"]}}]}"
    return start + b',""' * ((size - len(start) - len(end)) // 3) + end


def with_body(path: str, body: Callable[[Target], bytes]) -> Attacker:
    """A client that posts a body again and again."""

    async def post(target: Target) -> None:
        content = body(target)
        await repeat(target.port, [head_of("POST", path, target.key, len(content)) + content])

    return post


def explanation(target: Target) -> bytes:
    """Why the last document is not in a window."""
    options = f'"fits_from":true,"document":"{target.document}","collection":"wiki"'
    return f'{{"query":"{WORD}","max_tokens":2000,{options}}}'.encode()


def window(_target: Target) -> bytes:
    """A window as large as all candidates."""
    return f'{{"query":"{WORD}","max_tokens":300000,"limit":1000,"collection":"wiki"}}'.encode()


def attacks(arguments: argparse.Namespace) -> list[Attack]:
    """The rows."""
    body = large_body(arguments.body_bytes)
    mebibytes = arguments.body_bytes // 1_000_000
    large = with_body("/api/v1/collections/wiki/documents", lambda _target: body)
    return [
        Attack(f"{arguments.clients} clients on /openapi.json", arguments.clients, read_document),
        Attack(f"{arguments.clients} clients on static pages", arguments.clients, read_pages),
        Attack(f"{arguments.bodies} bodies of {mebibytes} MB", arguments.bodies, large),
        Attack(f"{arguments.wrong} wrong keys", arguments.wrong, guess_key),
        Attack(f"{arguments.trickling} trickling connections", arguments.trickling, trickle),
        Attack(
            f"{arguments.explanations} explanations of the last document of {arguments.chunks:,} chunks",
            arguments.explanations,
            with_body("/api/v1/explain", explanation),
        ),
        Attack(
            f"{arguments.windows} windows of 300,000 tokens over 1,000 candidates",
            arguments.windows,
            with_body("/api/v1/context", window),
        ),
    ]


def run_attack(attack: Attack, target: Target) -> None:
    """Attack until this process is ended."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def reconnect() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError, ConnectionError):
                await attack.client(target)
            await asyncio.sleep(0.01)

    async def attack_together() -> None:
        await asyncio.gather(*(reconnect() for _ in range(attack.clients)))

    asyncio.run(attack_together())


def burn(share: float) -> None:
    """Burn a share of one core until this process is ended."""
    while True:
        end = time.perf_counter() + BURN_SECONDS * min(share, 1.0)
        while time.perf_counter() < end:
            pass
        time.sleep(BURN_SECONDS * max(1.0 - share, 0.0))


@contextmanager
def beside(program: Callable[..., None], *arguments: object) -> Iterator[ForkProcess]:
    """A process that runs during the block."""
    process = multiprocessing.get_context("fork").Process(target=program, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def processor_seconds(process: ForkProcess) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def fill(folder: Path, chunks: int) -> str:
    """A collection of so many chunks that all have one word; the id of the one that is ranked last."""
    texts = [f"{text} {WORD}" for text in paragraphs(chunks - 1)]
    settings = Settings(embedder="none")
    async with bootstrap.open(folder, settings=settings) as engine:
        collection = await engine.collections.create("wiki")
        for start in range(0, len(texts), 1_000):
            await engine.add([NewDocument(text) for text in texts[start : start + 1_000]], collection="wiki")
        filler = "pebble " * 200
        last = NewDocument(f"{WORD} {filler}", key=LAST_KEY)
        return (await engine.add([last], collection=collection.id, wait=True))[0].id


class Served:
    """A server on a folder, and the valid user of it."""

    def __init__(self, folder: Path, owner_key: str) -> None:
        environment = {**os.environ, "CONSPECTUS_PATH": str(folder), "CONSPECTUS_EMBEDDER": "none"}
        log = folder.parent / "log"
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                PROGRAM, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        while (port := re.search(r"listening on http://127.0.0.1:(\d+)", log.read_text())) is None:
            if self.process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        self.port = int(port[1])
        headers = {"Authorization": f"Bearer {owner_key}"}
        address = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=f"{address}/api/v1", headers=headers, timeout=EXIT_LIMIT_SECONDS)
        while httpx.get(f"{address}/readyz").status_code != 200:
            time.sleep(0.1)

    def search(self, seconds: float) -> list[float]:
        """The milliseconds that searches took, one after the other; one that failed took its timeout."""
        milliseconds, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            with suppress(httpx.HTTPError):
                answer = self.client.post(
                    "/search", json={"query": "when do backups run", "collection": "own"}
                )
                answer.raise_for_status()
            milliseconds.append((time.perf_counter() - start) * 1_000)
            time.sleep(0.01)
        return milliseconds

    def end(self) -> float:
        """Ask the server to end, and return the seconds until it has."""
        start = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(EXIT_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.client.close()
        return time.perf_counter() - start


async def prepare(folder: Path, chunks: int) -> tuple[str, str, str]:
    """The key of the owner, that of a user who may write, and the id of the document that is ranked last."""
    last = await fill(folder, chunks)
    async with bootstrap.open(folder, settings=Settings(embedder="none")) as engine:
        owner = await engine.keys.create_first()
        assert owner is not None
        await engine.collections.create("own")
        texts = [f"Backups of server {number} run at two." for number in range(500)]
        await engine.add([NewDocument(text) for text in texts], collection="own", wait=True)
        user = await engine.people.create_user("mallory")
        key = await engine.keys.create("mallory")
        await engine.access.grant("wiki", Principal("user", user.id), "editor")
    return owner.secret, key.secret, last


@dataclass(frozen=True, slots=True)
class Measured:
    """What a row measured: milliseconds of searches, and the seconds from SIGTERM to the end."""

    idle: Sequence[float]
    attacked: Sequence[float]
    exit_seconds: float

    @property
    def ratio(self) -> float:
        """The p95 under attack against that of idle."""
        return p95(self.attacked) / p95(self.idle)

    def row(self, name: str) -> list[str]:
        """The row of the table."""
        times = [f"{statistics.median(self.attacked):.1f} ms", f"{p95(self.idle):.1f} ms"]
        times += [f"{p95(self.attacked):.1f} ms", f"{self.ratio:.2f}", f"{self.exit_seconds:.1f} s"]
        return [name, *times, f"{len(self.attacked):,}"]


def p95(milliseconds: Sequence[float]) -> float:
    """The 95th percentile."""
    if len(milliseconds) < 2:
        return max(milliseconds, default=0.0)
    return statistics.quantiles(milliseconds, n=20, method="inclusive")[18]


def measure(
    attack: Attack, folder: Path, keys: tuple[str, str, str], arguments: argparse.Namespace
) -> Measured:
    """Attack and idle in turn, and end the server while it is attacked."""
    owner, key, document = keys
    server = Served(folder, owner)
    target = Target(server.port, key, document)
    server.search(WARM_UP_SECONDS)
    idle: list[float] = []
    attacked: list[float] = []
    for _ in range(arguments.rounds):
        with beside(run_attack, attack, target) as attackers:
            attacked_first = server.search(WARM_UP_SECONDS)
            start, used = time.perf_counter(), processor_seconds(attackers)
            attacked += server.search(arguments.seconds) or attacked_first
            share = (processor_seconds(attackers) - used) / (time.perf_counter() - start)
        server.search(WARM_UP_SECONDS)
        with beside(burn, share):
            idle += server.search(arguments.seconds)
    with beside(run_attack, attack, target):
        server.search(WARM_UP_SECONDS)
        return Measured(idle, attacked, server.end())


def main() -> None:
    """Measure all rows and print them."""
    parser = option_parser(__doc__)
    numbers: Mapping[str, int] = {
        "rounds": 2, "seconds": 8, "clients": 60, "bodies": 4, "body-bytes": 90_000_000, "wrong": 400,
        "trickling": 500, "explanations": 6, "windows": 6, "chunks": 100_000,
    }  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", nargs="+", default=[], help="words of the names of rows")
    arguments = parser.parse_args()
    selected = [
        attack
        for attack in attacks(arguments)
        if not arguments.only or any(w in attack.name for w in arguments.only)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        keys = asyncio.run(prepare(store, arguments.chunks))
        measured = {}
        for attack in selected:
            measured[attack.name] = measure(attack, store, keys, arguments)
            print(measured[attack.name].row(attack.name), file=sys.stderr, flush=True)
    result_of(measured).shown("availability", save=arguments.save)


def result_of(measured: Mapping[str, Measured]) -> Result:
    """The table, and how many rows reach their goal."""
    reached = [
        row for row in measured.values() if row.ratio < RATIO_GOAL and row.exit_seconds < EXIT_GOAL_SECONDS
    ]
    title = (
        f"{len(reached)} of {len(measured)} rows have a p95 below twice that of idle, and end within 10 s."
    )
    columns = ["attack", "p50", "p95, idle", "p95", "times idle", "SIGTERM to end", "searches"]
    return Result.of(title, columns, [row.row(name) for name, row in measured.items()])


if __name__ == "__main__":
    main()
