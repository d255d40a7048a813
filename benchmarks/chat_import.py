"""Speed of chat imports, and the time until a message can be found: python benchmarks/chat_import.py.

A Slack export is made up from a seed: messages of a few words to a few sentences in common and rare words,
with threads and mentions. Measured are reading it alone, importing it until its last message is found by
words, with and without looking for what each message answers, and single messages from being posted until a
question finds them, in a store that holds others.
"""

import asyncio
import json
import random
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from results import Result, option_parser

import conspectus
from conspectus import Engine, Settings
from conspectus.model.channels import NewMessage
from conspectus.sources.chats.archives import LocalArchives

WORDS = replace(Settings(), embedder="none")
BEGUN = datetime(2024, 1, 1, 9, tzinfo=UTC)
SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprstvwxz" for vowel in ("a", "e", "i", "o", "u")]
CHANNELS, PEOPLE, VOCABULARY = 10, 50, 20_000
MENTIONED, ANSWERED = 0.15, 0.3


@dataclass(frozen=True, slots=True)
class Speech:
    """Made-up words, the first ones common, the last ones rare."""

    chance: random.Random
    words: list[str]
    weights: list[float]

    @classmethod
    def seeded(cls, seed: int) -> "Speech":
        """The same words for the same seed."""
        chance = random.Random(seed)
        words = list(
            {"".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))): None for _ in range(VOCABULARY)}
        )
        weights = list(np.cumsum(1 / np.arange(1, len(words) + 1)))
        return cls(chance, words, weights)

    def sentence(self) -> str:
        """As long as messages are: most have about ten words, some have a hundred."""
        length = max(1, min(150, round(self.chance.lognormvariate(2.3, 0.8))))
        return " ".join(self.chance.choices(self.words, cum_weights=self.weights, k=length))


def make_export(path: Path, number: int, seed: int = 4) -> str:
    """Write an export of so many messages; returns the text of the last one."""
    speech = Speech.seeded(seed)
    users = [{"id": f"U{n:03}", "name": f"person{n}", "real_name": f"Person {n}"} for n in range(PEOPLE)]
    channels = [{"id": f"C{n:03}", "name": f"channel-{n}", "members": []} for n in range(CHANNELS)]
    share = -(-number // CHANNELS)
    last = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", json.dumps(users))
        archive.writestr("channels.json", json.dumps(channels))
        for channel in channels:
            messages = list(_messages(speech, share))
            last = str(messages[-1]["text"])
            for first in range(0, share, 200):
                day = BEGUN + timedelta(days=first // 200)
                name = f"{channel['name']}/{day:%Y-%m-%d}.json"
                archive.writestr(name, json.dumps(messages[first : first + 200]))
    return last


def _messages(speech: Speech, number: int) -> Iterator[dict[str, object]]:
    chance, root = speech.chance, ""
    for position in range(number):
        moment = BEGUN + timedelta(days=position // 200, seconds=position % 200 * 120, microseconds=position)
        stamp, text = f"{moment.timestamp():.6f}", speech.sentence()
        if chance.random() < MENTIONED:
            text = f"<@U{chance.randrange(PEOPLE):03}> {text}"
        message: dict[str, object] = {
            "type": "message",
            "user": f"U{chance.randrange(PEOPLE):03}",
            "ts": stamp,
            "text": text,
        }
        answers = root != "" and chance.random() < ANSWERED
        root = root if answers else stamp
        yield message | ({"thread_ts": root} if answers else {})


@asynccontextmanager
async def fresh() -> AsyncIterator[Engine]:
    """A new store with keyword search, deleted at the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        async with conspectus.open(Path(folder), settings=WORDS) as engine:
            yield engine


async def importing(path: Path, last: str, number: int, *, link: bool) -> float:
    """Messages per second from the file to an answer that knows the last one."""
    async with fresh() as engine:
        start = time.perf_counter()
        report = await engine.channels.import_archive(path, link=link)
        assert (await engine.retrieve(last[:200], retrievers=("keyword",), limit=1)).outcome == "found"
        seconds = time.perf_counter() - start
        assert report.added == sum(report.channels.values()) >= number
        return report.added / seconds


async def posting(path: Path, posts: int) -> list[float]:
    """Milliseconds from posting each message until a question for its own word finds it."""
    speech = Speech.seeded(5)
    async with fresh() as engine:
        await engine.channels.import_archive(path)
        times = []
        for position in range(posts):
            unique_word = "q" + "".join(SYLLABLES[int(digit)] for digit in f"{position:05}")
            message = NewMessage(
                f"{unique_word} {speech.sentence()}", key=f"new{position}", author="Person 1"
            )
            start = time.perf_counter()
            await engine.channels.add_messages(message, channel="channel-1")
            retrieval = await engine.retrieve(unique_word, retrievers=("keyword",), limit=1)
            times.append((time.perf_counter() - start) * 1_000)
            assert retrieval.hits[0].document.key == message.key
        return times


def rates(path: Path, last: str, number: int) -> Iterator[list[str]]:
    """A row for each way to take an export in."""
    start = time.perf_counter()
    read = sum(len(channel.messages) for channel in LocalArchives().read(path).channels)
    yield ["the export read alone", f"{read / (time.perf_counter() - start):,.0f}"]
    for link, name in ((True, "imported and found by keywords"), (False, "the same, replies not looked for")):
        yield [name, f"{asyncio.run(importing(path, last, number, link=link)):,.0f}"]


def main() -> None:
    """Print the table."""
    parser = option_parser(__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--stored", type=int, default=10_000)
    parser.add_argument("--posts", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, stored = Path(folder) / "export.zip", Path(folder) / "stored.zip"
        last = make_export(path, arguments.messages)
        make_export(stored, arguments.stored)
        rows = [[*row, "-", "-", "-"] for row in rates(path, last, arguments.messages)]
        times = asyncio.run(posting(stored, arguments.posts))
    figures = [f"{float(np.percentile(times, share)):.1f} ms" for share in (50, 95, 100)]
    rows.append([f"one message until found ({len(times)})", "-", *figures])
    title = f"{arguments.messages:,} messages; single ones beside {arguments.stored:,} others."
    columns = ["", "messages a second", "p50", "p95", "longest"]
    Result.of(title, columns, rows).shown("chats", save=arguments.save)


if __name__ == "__main__":
    main()
