"""How soon a chat begins, how many go on at once, and whether memory stays flat: python benchmarks/chat.py.

The server is a process of its own with the shipped model for questions, and a chat model that says one word
every so often and costs nothing, so that all that is measured is ours. Each chat is a connection of its
own. The store is made once, with vectors made beforehand (see `vectors.py`), and kept.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from corpus import paragraphs, questions
from latency import Given, fill
from results import Result, option_parser
from vectors import vectors

import conspectus
from conspectus import Settings
from conspectus.model.chat import Delta, ModelOptions, Usage
from conspectus.model.results import Message
from conspectus.web.app import application
from conspectus.web.serve import Server, address_of, bound

ASKED = 300
WARM = 50
WORDS = 100


class Speaking:
    """Answers with as many words as allowed, each after a pause of so many seconds as the temperature."""

    name, window, tokenizer = "speaking:model", 8_192, "o200k_base"

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | Usage, None]:
        """The words and their number."""
        for _ in range(max_tokens):
            await asyncio.sleep(temperature or 0.0)
            yield Delta("word ")
        yield Usage(len(messages), max_tokens)

    async def close(self) -> None:
        """Do nothing: nothing is held."""


@dataclass
class Times:
    """Milliseconds until the first event of each chat, and what went wrong."""

    first: list[float] = field(default_factory=list)
    events: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def at(self, share: int) -> float:
        """The percentile of sorted values."""
        return float(np.percentile(self.first, share)) if self.first else float("nan")


@dataclass(frozen=True, slots=True)
class Client:
    """Asks one server, a connection for each chat."""

    port: int
    key: str
    questions: Sequence[str]

    async def chat(self, number: int, times: Times, *, pause: float = 0.0, words: int = WORDS) -> None:
        """One chat from its connection to its end."""
        question = self.questions[number % len(self.questions)]
        body = {"message": question, "temperature": pause, "budget": {"answer": words}}
        start = time.perf_counter()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
            writer.write(self._request(json.dumps(body).encode()))
            head = await reader.readuntil(b"event: sources")
            times.first.append((time.perf_counter() - start) * 1_000)
            rest = await reader.read(-1)
            writer.close()
        except (OSError, asyncio.IncompleteReadError) as fault:
            times.faults.append(str(getattr(fault, "partial", fault))[:200])
            return
        times.events += rest.count(b"id: ")
        if not head.startswith(b"HTTP/1.1 200") or b"data: [DONE]" not in rest or b"event: error" in rest:
            times.faults.append(head[:200].decode("utf-8", "replace"))

    def _request(self, data: bytes) -> bytes:
        head = f"POST /api/v1/chat HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
        head += f"Authorization: Bearer {self.key}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def one_by_one(client: Client) -> Times:
    """One chat at a time, whose model answers with one word."""
    for number in range(WARM):
        await client.chat(number, Times(), words=1)
    times, start = Times(), time.perf_counter()
    for number in range(ASKED):
        await client.chat(number, times, words=1)
    times.seconds = time.perf_counter() - start
    return times


async def at_once(client: Client, number: int, pause: float) -> Times:
    """So many chats begun in the same moment."""
    times, start = Times(), time.perf_counter()
    await asyncio.gather(*(client.chat(first, times, pause=pause) for first in range(number)))
    times.seconds = time.perf_counter() - start
    return times


async def going_on(client: Client, number: int, pause: float, seconds: float) -> Times:
    """So many clients, each of which begins a chat when its last one is complete."""
    times, start = Times(), time.perf_counter()

    async def work(first: int) -> None:
        await asyncio.sleep(first / number * WORDS * pause)
        question = first
        while time.perf_counter() - start < seconds:
            await client.chat(question, times, pause=pause)
            question += number

    await asyncio.gather(*map(work, range(number)))
    times.seconds = time.perf_counter() - start
    return times


async def one_after_another(client: Client, number: int, server: int) -> tuple[Times, list[float]]:
    """Many chats, eight at a time, and the server's memory before them and after each tenth of them."""
    times, memory = Times(), [resident_megabytes(server)]
    start = time.perf_counter()
    for tenth in range(10):
        places = iter(range(tenth * number // 10, (tenth + 1) * number // 10))

        async def work(places: Iterator[int] = places) -> None:
            for question in places:
                await client.chat(question, times)

        await asyncio.gather(*(work() for _ in range(8)))
        memory.append(resident_megabytes(server))
    times.seconds = time.perf_counter() - start
    return times, memory


def resident_megabytes(process: int) -> float:
    """Memory of a process that is its own or mapped in, as the system counts it."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


async def serve(path: Path) -> None:
    """Serve the store until standard input is closed; tells the port and a key."""
    settings = Settings(path=str(path), log_level="critical", max_user_chats=1_000, max_queued_requests=1_000)
    opened = conspectus.open(path, settings=settings, embedder=Given({}), chat_model=Speaking())
    async with opened as engine:
        api_key = await engine.keys.create_first() or await engine.keys.create("owner")
        app = application(engine, settings)
        with closing(bound("127.0.0.1", 0)) as listener:
            listener.listen(2_048)
            server = Server(app, settings)
            port = int(address_of(listener, "127.0.0.1").rpartition(":")[2])
            print(json.dumps({"port": port, "key": api_key.secret}), flush=True)
            await server.serve(sockets=[listener])


async def measure(client: Client, server: int, arguments: argparse.Namespace) -> Result:
    """A row for each load."""
    number, pause = arguments.clients, arguments.pause
    loads = {
        "one at a time": await one_by_one(client),
        f"{number} in the same moment": await at_once(client, number, pause),
        f"{number} all the time": await going_on(client, number, pause, arguments.seconds),
    }
    loads["eight at a time"], memory = await one_after_another(client, arguments.chats, server)
    rows = []
    for name, times in loads.items():
        rates = (f"{count / times.seconds:,.1f}" for count in (len(times.first), times.events))
        ends = (f"{times.at(share):,.1f} ms" for share in (50, 95))
        rows.append([name, f"{len(times.first):,}", *rates, *ends, describe_faults(times)])
    columns = ["", "chats", "chats a second", "events a second", "first event, p50", "p95", "faults"]
    below = f"The server's memory before the last row, and after each tenth of it: {_listed(memory)} MB."
    return Result.of(f"{arguments.chunks:,} chunks.", columns, rows, below=(below,))


def _listed(memory: Sequence[float]) -> str:
    return ", ".join(f"{megabytes:,.0f}" for megabytes in memory)


def describe_faults(times: Times) -> str:
    """How many chats went wrong, and the first of them."""
    return f"{len(times.faults)} {times.faults[0]}" if times.faults else "0"


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two words of the model")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--path", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--step", choices=["serve"], help="serve the store in this process")
    arguments = parser.parse_args()
    store = arguments.path / f"chat-{arguments.chunks}"
    if arguments.step == "serve":
        asyncio.run(serve(store))
        return
    texts = paragraphs(arguments.chunks)
    if not store.exists():
        asyncio.run(fill(store, texts, dict(zip(texts, vectors(texts, arguments.path), strict=True))))
    command = [sys.executable, __file__, "--chunks", str(arguments.chunks), "--path", str(arguments.path)]
    with subprocess.Popen([*command, "--step", "serve"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        opened = json.loads(process.stdout.readline())
        client = Client(opened["port"], opened["key"], questions(texts, ASKED))
        table = asyncio.run(measure(client, process.pid, arguments))
        process.terminate()
    table.shown("chat", save=arguments.save)


if __name__ == "__main__":
    main()
