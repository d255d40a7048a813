"""A server under mixed load for hours: python benchmarks/endurance.py --minutes 120.

Clients write, replace, delete and purge documents, post messages, remember and forget, search, and ask for
windows and explanations, while as much is deleted as is written. Every minute a line with the memory,
descriptors, processes and files of the server goes to a log. After the first WARM_MINUTES they should be
flat: the last quarter of the minutes is compared with the first quarter after that. A run that was stopped
goes on behind its log on the same store, with a new server, whose first minutes do not count either.
"""

import argparse
import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Final

import httpx
from results import Result, option_parser
from tests.faults.test_server_killed import create_store_with_key, running_server

WARM_MINUTES: Final = 20
CLIENTS: Final = 4
DOCUMENTS: Final = 200
"""Each client keeps so many documents and as many memories."""
PAUSE_SECONDS: Final = 0.2
FOLDER: Final = Path(".benchmarks") / "endurance"
LOG: Final = FOLDER / "log.jsonl"
MEASURES: Final = (
    *("server_megabytes", "memory_megabytes", "descriptors", "processes"),
    *("files", "megabytes_on_disk"),
)
WORDS: Final = ("lamp", "harbour", "ledger", "foghorn", "keeper", "stairs", "lens", "storm", "boat", "oil")


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a server after so many minutes of its own, and what it answered so far."""

    run: int
    minutes: float
    server_megabytes: float
    """Memory of the server alone."""
    memory_megabytes: float
    """Memory of the server and of all that it started, which come and go."""
    descriptors: int
    processes: int
    files: int
    megabytes_on_disk: float
    requests: int
    failures: int


@dataclass
class Client:
    """One client with its documents and memories."""

    http: httpx.AsyncClient
    number: int
    chance: random.Random
    answers: Counter[int]
    documents: list[str] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)
    texts: int = 0

    async def work(self, until: float) -> None:
        """Do one thing after the other."""
        acts: Sequence[Callable[[], Awaitable[None]]] = (
            self.write,
            self.write,
            self.remember,
            self.post,
            self.search,
            self.window,
            self.explain,
            self.recall,
        )
        while time.monotonic() < until:
            try:
                await self.chance.choice(acts)()
            except httpx.HTTPError:
                self.answers[0] += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def ask(self, method: str, path: str, **parts: object) -> httpx.Response:
        """Send a request, and count its status."""
        answer = await self.http.request(method, path, **parts)  # type: ignore[arg-type]
        self.answers[answer.status_code] += 1
        if answer.status_code == 422:
            raise SystemExit(f"{method} {path}: {answer.text}")
        return answer

    def text(self) -> str:
        """A text that no other is equal to."""
        self.texts += 1
        return f"{' '.join(self.chance.choices(WORDS, k=60))} {self.number}-{self.texts}"

    async def write(self) -> None:
        """Add a document, or replace one; then delete or purge the oldest, once there are enough."""
        key = f"{self.number}-{self.chance.randrange(2 * DOCUMENTS)}"
        body = {"documents": [{"text": self.text(), "key": key, "title": key}]}
        answer = await self.ask("POST", "/collections/default/documents", json=body)
        if answer.is_success and answer.json()[0]["id"] not in self.documents:
            self.documents.append(answer.json()[0]["id"])
        if len(self.documents) > DOCUMENTS:
            purge = {"purge": self.chance.random() < 0.02}
            await self.ask("DELETE", f"/documents/{self.documents.pop(0)}", params=purge)

    async def remember(self) -> None:
        """Store a memory, and forget the oldest, once there are enough."""
        user = f"user{self.number}"
        body = {"memories": [{"text": self.text()}], "user": user}
        answer = await self.ask("POST", "/memories", json=body)
        if answer.is_success:
            self.memories.append(answer.json()[0]["id"])
        if len(self.memories) > DOCUMENTS:
            body = {"ids": [self.memories.pop(0)], "user": user}
            await self.ask("POST", "/memories/forget", json=body)

    async def post(self) -> None:
        """Post a message under one of a few keys, so that messages are edited."""
        message = {"text": self.text(), "key": str(self.chance.randrange(DOCUMENTS)), "author": "ann"}
        body = {"messages": [message], "channel": f"channel{self.number}", "collection": "chat"}
        await self.ask("POST", "/messages", json=body)

    async def search(self) -> None:
        """Search by words and vectors."""
        await self.ask("POST", "/search", json={"query": " ".join(self.chance.choices(WORDS, k=3))})

    async def window(self) -> None:
        """Ask for a window of a random size."""
        body = {"query": self.chance.choice(WORDS), "max_tokens": self.chance.choice((200, 2_000, 20_000))}
        await self.ask("POST", "/context", json=body)

    async def explain(self) -> None:
        """Ask for an explanation."""
        await self.ask("POST", "/explain", json={"query": self.chance.choice(WORDS), "max_tokens": 500})

    async def recall(self) -> None:
        """Recall memories of a user."""
        body = {"query": self.chance.choice(WORDS), "user": f"user{self.number}"}
        await self.ask("POST", "/memories/recall", json=body)


def family_of(process: int) -> list[Path]:
    """The folders in /proc of a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(folder.name))
    family = [process]
    for member in family:
        family += parents.get(member, [])
    return [Path("/proc") / str(member) for member in family]


def sample(run: int, minutes: float, answers: Counter[int], store: Path) -> Sample:
    """Measure the servers that this process started, and their store."""
    servers = family_of(os.getpid())[1:]
    memory: list[int] = []
    descriptors = 0
    for folder in servers:
        try:
            memory.append(int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            descriptors += len(list((folder / "fd").iterdir()))
        except OSError:
            continue
    sizes = [path.stat().st_size for path in store.rglob("*") if path.is_file()]
    failures = sum(number for status, number in answers.items() if status == 0 or status >= 500)
    return Sample(
        run=run,
        minutes=round(minutes, 1),
        server_megabytes=round(memory[0] / 1e6, 1),
        memory_megabytes=round(sum(memory) / 1e6, 1),
        descriptors=descriptors,
        processes=len(servers),
        files=len(sizes),
        megabytes_on_disk=round(sum(sizes) / 1e6, 1),
        requests=answers.total(),
        failures=failures,
    )


async def load(run: int, minutes: float, key: str) -> None:
    """Start a server on the store, load it, and log a sample each minute."""
    answers: Counter[int] = Counter()
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        running_server(FOLDER / "store", embedder="minilm") as address,
        httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as http,
        asyncio.TaskGroup() as group,
    ):
        begun = time.monotonic()
        until = begun + minutes * 60
        for number in range(CLIENTS):
            client = Client(http, number, random.Random(f"{run} {number}"), answers)
            group.create_task(client.work(until))
        while time.monotonic() < until:
            await asyncio.sleep(60)
            log_sample(sample(run, (time.monotonic() - begun) / 60, answers, FOLDER / "store"))
    print(dict(answers))


def log_sample(sample: Sample) -> None:
    """Append a sample to the log."""
    with LOG.open("a") as log:
        log.write(json.dumps(asdict(sample)) + "\n")


def logged() -> list[Sample]:
    """All samples of the log."""
    return [Sample(**json.loads(line)) for line in LOG.read_text().splitlines()] if LOG.exists() else []


def table(samples: Sequence[Sample]) -> Result:
    """The first and the last quarter of the minutes after the warm ones, of each run."""
    runs = [
        [sample for sample in samples if sample.run == run]
        for run in sorted({sample.run for sample in samples})
    ]
    rows = [row for run in runs for row in rows_of(run)]
    requests, failures = sum(run[-1].requests for run in runs), sum(run[-1].failures for run in runs)
    columns = ("run", "minutes", "measure", "first quarter", "last quarter", "ratio")
    below = [f"{requests:,} requests, {failures} failures."]
    return Result.of("Mixed load on one server", columns, rows, below=below)


def rows_of(run: Sequence[Sample]) -> list[tuple[str, ...]]:
    """A row for each measure of a run, if it was longer than the warm minutes."""
    warm = [sample for sample in run if sample.minutes > WARM_MINUTES]
    quarter = max(1, len(warm) // 4)
    rows: list[tuple[str, ...]] = []
    for measure in MEASURES if warm else ():
        first = fmean(getattr(sample, measure) for sample in warm[:quarter])
        last = fmean(getattr(sample, measure) for sample in warm[-quarter:])
        figures = (f"{first:,.1f}", f"{last:,.1f}", f"{last / max(first, 0.1):.2f}")
        rows.append((str(run[-1].run), f"{warm[-1].minutes:.0f}", measure.replace("_", " "), *figures))
    return rows


def main(options: argparse.Namespace) -> None:
    """Load for the minutes that the log lacks, and show the table."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    key_file = FOLDER / "key"
    if not key_file.exists():
        key_file.write_text(asyncio.run(create_store_with_key(FOLDER / "store")))
    samples = logged()
    done = len(samples)
    if done < options.minutes:
        run = max((sample.run for sample in samples), default=0) + 1
        asyncio.run(load(run, options.minutes - done, key_file.read_text()))
    result = table(logged())
    print(result.markdown())
    if options.save:
        result.save("endurance")


def parsed() -> argparse.Namespace:
    """The options."""
    parser = option_parser(__doc__)
    parser.add_argument("--minutes", type=int, default=120, help="minutes in all, with the logged ones")
    return parser.parse_args()


if __name__ == "__main__":
    main(parsed())
