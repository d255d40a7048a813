"""A day of a live stream, faster than it happens: python benchmarks/live.py --speed 50 --save.

Captions arrive as from a camera: each up to two minutes late, so in no order, and one in twenty comes twice.
A follower listens, questions are asked, and the server is killed with -9 three times; who sends or listens
just tries again. At the end the stream is exported, and so is one into which the same captions were put in
their order: the two must be the same bytes, and the follower must have seen every caption.
"""

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import numpy as np
from results import Result, option_parser
from rich.console import Console
from video import DAY, STREAM, texts

import conspectus
from conspectus import RemoteEngine
from conspectus.errors import ConspectusError, ServerUnavailable
from conspectus.model.captions import NewCaption
from conspectus.streams.caption_format import line_of

CAPTIONS = 20_000
LATEST = 120.0
AGAIN = 0.05
KILLS = 3
TICK = 0.5
ASK_EVERY = 1.0
PORT = 8_653
SERVE = [sys.executable, "-c", "from conspectus.cli.entry import main; main()", "serve", "--port", str(PORT)]
CONSOLE = Console(stderr=True)


@dataclass
class Seen:
    """The results."""

    searches: list[float] = field(default_factory=list)
    away: int = 0
    wrong: list[str] = field(default_factory=list)
    heard: set[str] = field(default_factory=set)
    sent: int = 0
    after: int = 0
    outages: list[float] = field(default_factory=list)


class Server:
    """A server that can be killed and started again."""

    def __init__(self, path: Path) -> None:
        settings = {"path": str(path), "log_level": "error"}
        self._environment = os.environ | {f"CONSPECTUS_{k.upper()}": v for k, v in settings.items()}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it listens."""
        self._process = subprocess.Popen(SERVE, env=self._environment, stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        line = self._process.stderr.readline().decode()
        if not re.match(r"listening on", line):
            raise SystemExit(f"the server did not start: {line}")

    def kill(self) -> None:
        """Kill the process at once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def day(number: int) -> list[NewCaption]:
    """The captions in their order."""
    step = DAY / number
    return [NewCaption(text, n * step, (n + 1) * step, index=n) for n, text in enumerate(texts(number))]


def arrivals(captions: list[NewCaption], chance: random.Random) -> list[tuple[float, NewCaption]]:
    """When each arrives, in seconds of the stream; some arrive twice."""
    arrivals_in_time = []
    for caption in captions:
        assert isinstance(caption.end, float)
        at = caption.end + chance.uniform(0, LATEST)
        arrivals_in_time.append((at, caption))
        if chance.random() < AGAIN:
            arrivals_in_time.append((at + chance.uniform(0, LATEST), caption))
    return sorted(arrivals_in_time, key=lambda pair: pair[0])


async def send(remote: RemoteEngine, due: list[tuple[float, NewCaption]], speed: float, seen: Seen) -> None:
    """Each when it is due; what could not be sent is sent again, as long as it takes."""
    began, position = time.monotonic(), 0
    while position < len(due):
        now = (time.monotonic() - began) * speed
        batch = [caption for at, caption in due[position : position + 500] if at <= now]
        if not batch:
            await asyncio.sleep(TICK)
            continue
        try:
            await remote.streams.add_captions(batch, stream=STREAM)
        except ServerUnavailable:
            seen.away += 1
            await asyncio.sleep(TICK)
            continue
        position += len(batch)
        seen.sent = position


async def ask(remote: RemoteEngine, due: list[tuple[float, NewCaption]], seen: Seen) -> None:
    """Check that the last captions can be found, at their times."""
    chance = random.Random(4)
    while True:
        await asyncio.sleep(ASK_EVERY)
        if not seen.sent:
            continue
        caption = due[chance.randrange(seen.sent)][1]
        start = time.perf_counter()
        try:
            answer = await remote.streams.search(caption.text, streams=(STREAM,), limit=3, read_times=False)
        except ServerUnavailable:
            continue
        except ConspectusError as fault:
            seen.wrong.append(f"{fault.code}: {fault}")
            continue
        seen.searches.append((time.perf_counter() - start) * 1_000)
        if caption.text not in {
            shown_caption.text for moment in answer.moments for shown_caption in moment.captions
        }:
            seen.wrong.append(f"not found: {caption.text}")


async def listen(remote: RemoteEngine, seen: Seen) -> None:
    """Every caption, over all that happens to the server."""
    events = remote.streams.subscribe(stream=STREAM, after=0)
    while True:
        try:
            event = await anext(events)
        except ServerUnavailable:
            await asyncio.sleep(TICK)
            events = remote.streams.subscribe(stream=STREAM, after=seen.after)
            continue
        seen.heard.add(event.caption.document.key)
        seen.after = event.sequence


async def kill(server: Server, duration: float, seen: Seen) -> None:
    """Kill the server three times, at random moments."""
    chance = random.Random(5)
    for number in range(KILLS):
        await asyncio.sleep(duration / (KILLS + 1) * chance.uniform(0.7, 1.1))
        server.kill()
        CONSOLE.log(f"killed, for the {number + 1}. time, after {seen.sent:,} captions")
        start = time.perf_counter()
        await asyncio.to_thread(server.start)
        seen.outages.append(time.perf_counter() - start)


async def export(engine: conspectus.Engine | RemoteEngine) -> list[str]:
    """The stream as lines that can be imported again."""
    lines: list[str] = []
    after = None
    while True:
        page = await engine.streams.list_captions(stream=STREAM, after=after)
        lines += map(line_of, page.captions)
        after = page.next
        if after is None:
            return lines


async def run(folder: Path, captions: list[NewCaption], speed: float) -> tuple[Seen, list[str]]:
    """The whole day."""
    seen, server = Seen(), Server(folder / "live")
    async with conspectus.open(folder / "live") as engine:
        owner = await engine.keys.create_first()
        await engine.streams.put(STREAM)
    assert owner is not None
    server.start()
    due = arrivals(captions, random.Random(3))
    try:
        async with conspectus.connect(f"http://127.0.0.1:{PORT}", api_key=owner.secret) as remote:
            others = [asyncio.create_task(work) for work in (ask(remote, due, seen), listen(remote, seen))]
            killing = asyncio.create_task(kill(server, DAY / speed, seen))
            sending = asyncio.create_task(send(remote, due, speed, seen))
            while not sending.done():
                await asyncio.wait([sending], timeout=60)
                CONSOLE.log(f"sent {seen.sent:,} of {len(due):,}, heard {len(seen.heard):,}")
            await sending
            await killing
            await asyncio.sleep(5)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            return seen, await export(remote)
    finally:
        server.kill()


async def clean(folder: Path, captions: list[NewCaption]) -> list[str]:
    """The same captions, in their order, into another store."""
    async with conspectus.open(folder / "clean") as engine:
        await engine.streams.add_captions(captions, stream=STREAM)
        return await export(engine)


def result(seen: Seen, captions: int) -> Result:
    """The times of searches and of starts, and below them what arrived."""
    searches, outages = seen.searches, [1e3 * seconds for seconds in seen.outages]
    rows = [
        [name, f"{len(times):,}", *(f"{np.percentile(times, share):,.1f} ms" for share in (50, 95))]
        for name, times in (("searches, over HTTP", searches), ("server killed, until it listened", outages))
    ]
    below = (
        f"Captions sent, with those that came again: {seen.sent:,}. Captions that the follower heard:"
        f" {len(seen.heard):,} of {captions:,}. Searches that failed, or did not find the caption whose words"
        f" were asked for: {len(seen.wrong)}. The export equals that of a clean import."
    )
    title = f"A day of {captions:,} captions as it comes."
    return Result.of(title, ["", "number", "p50", "p95"], rows, below=(below,))


def main() -> None:
    """A day, or a shorter one."""
    parser = option_parser(__doc__)
    parser.add_argument("--speed", type=float, default=50.0)
    parser.add_argument("--captions", type=int, default=CAPTIONS)
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks/live"))
    arguments = parser.parse_args()
    rmtree(arguments.folder, ignore_errors=True)
    captions = day(arguments.captions)
    seen, exported = asyncio.run(run(arguments.folder, captions, arguments.speed))
    expected = asyncio.run(clean(arguments.folder, captions))
    for problem in seen.wrong:
        CONSOLE.log(problem)
    if exported != expected or len(seen.heard) != len(captions):
        raise SystemExit(f"{len(seen.heard):,} captions heard, exports are equal: {exported == expected}")
    result(seen, len(captions)).shown("live", save=arguments.save)


if __name__ == "__main__":
    main()
