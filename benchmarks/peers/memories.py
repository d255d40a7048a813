"""One memory of agents at work, in a process of its own.

python -m peers.memories PEER STORE WORK NUMBER CONVERSATIONS

All are given the same memories, of 10 users in as many conversations each, and the same embedder, which takes
next to no time: each word has a fixed random vector, and a text is the sum of those of its words. The last
line of the output has the times in milliseconds as JSON.
"""

import asyncio
import importlib
import json
import re
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

DIMENSIONS = 384
USERS = 10
BATCH = 500
SINGLES, PACED, QUESTIONS, WARMING = 300, 100, 200, 10
PACE = 0.05
"""Seconds from one memory to the next where they come at the pace of people and tools."""
TOP = 10
BUDGET = 1_000
WORD = re.compile(r"\w+")
ROWS = 1 << 14
TABLE = np.random.default_rng(3).standard_normal((ROWS, DIMENSIONS), dtype=np.float32)

Times: TypeAlias = dict[str, list[float]]


@dataclass(frozen=True)
class Said:
    """A text, and whose it is."""

    number: int
    text: str
    conversations: int

    @property
    def user(self) -> str:
        """One of ten."""
        return f"user{self.number % USERS}"

    @property
    def conversation(self) -> str:
        """One of the user's."""
        return f"talk{self.number // USERS % self.conversations}"


@dataclass(frozen=True)
class Size:
    """How many memories there are, and in how many conversations of each user."""

    number: int
    conversations: int


class Peer(Protocol):
    """A memory that is open; what it is asked is asked by the first user."""

    async def fill(self, memories: Sequence[Said]) -> None:
        """Store many, as fast as it can."""
        ...

    async def store(self, said: Said) -> None:
        """Store one; on return it is on disk."""
        ...

    async def recall(self, question: str) -> int:
        """How many memories come with their texts."""
        ...


def embedded(text: str) -> list[float]:
    """The unit vector of a text."""
    words = [zlib.crc32(word.encode("utf-8", "replace")) % ROWS for word in WORD.findall(text.lower())]
    total = TABLE[words].sum(axis=0) if words else np.eye(1, DIMENSIONS, dtype=np.float32)[0]
    return list(map(float, total / np.linalg.norm(total)))


async def measured(peer: Peer, work: Any, size: Size) -> Times:
    """Fill the store, then store and ask one at a time."""
    number, last = size.number, size.number + SINGLES + WARMING
    texts = [Said(place, text, size.conversations) for place, text in enumerate(work["texts"])]
    start = time.perf_counter()
    await peer.fill(texts[:number])
    filled = time.perf_counter() - start
    singles = [lambda said=said: peer.store(said) for said in texts[number:last]]
    paced = [lambda said=said: peer.store(said) for said in texts[last : last + PACED + WARMING]]
    times = {"fill seconds": [filled]}
    before = time.process_time()
    times["remember"] = await timed(singles)
    times["remember, processor"] = [(time.process_time() - before) * 1_000 / len(singles)]
    times["remember, 20 a second"] = await timed(paced, pace=PACE)
    settle = getattr(peer, "settle", None)
    if settle is not None:
        await settle()
    asked = work["questions"][: QUESTIONS + WARMING]
    before = time.process_time()
    times["recall"] = await timed([lambda text=text: peer.recall(text) for text in asked])
    times["recall, processor"] = [(time.process_time() - before) * 1_000 / len(asked)]
    window = getattr(peer, "window", None)
    if window is not None:
        times["memory_window"] = await timed([lambda text=text: window(text) for text in asked])
    return times


async def timed(work: Sequence[Callable[[], Awaitable[Any]]], *, pace: float = 0.0) -> list[float]:
    """Milliseconds of each, but for the first ones; begun no sooner after each other than the pace is."""
    times = []
    for each in work:
        start = time.perf_counter()
        await each()
        took = time.perf_counter() - start
        times.append(took * 1_000)
        if took < pace:
            await asyncio.sleep(pace - took)
    return times[WARMING:]


def batches(memories: Sequence[Said]) -> Iterator[Sequence[Said]]:
    """So many at a time."""
    for start in range(0, len(memories), BATCH):
        yield memories[start : start + BATCH]


class LangGraphMemory:
    """LangGraph's store in SQLite, with its vectors; pysqlite3 can load those where sqlite3 cannot."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._put = importlib.import_module("langgraph.store.base").PutOp
        self._keys = count()

    async def fill(self, memories: Sequence[Said]) -> None:
        """In batches."""
        for batch in batches(memories):
            self._store.batch([self._operation(said) for said in batch])

    async def store(self, said: Said) -> None:
        """One put."""
        self._store.batch([self._operation(said)])

    async def recall(self, question: str) -> int:
        """A search below the user."""
        return len(self._store.search(("user0",), query=question, limit=TOP))

    def _operation(self, said: Said) -> Any:
        return self._put((said.user, said.conversation), str(next(self._keys)), {"text": said.text})


class Mem0Memory:
    """mem0 without a language model, with Qdrant in this process and on disk, as it is set up by default."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._memory.embedding_model = self

    def embed(self, text: str, action: str | None = None) -> list[float]:
        """The embedder interface of mem0."""
        return embedded(text)

    async def fill(self, memories: Sequence[Said]) -> None:
        """Straight into its vector store, in batches: by `add` it would take hours."""
        numbers = count(1)
        for batch in batches(memories):
            beside = [{"data": s.text, "user_id": s.user, "run_id": s.conversation} for s in batch]
            ids = [f"00000000-0000-0000-0000-{next(numbers):012}" for _ in batch]
            vectors = [embedded(said.text) for said in batch]
            self._memory.vector_store.insert(vectors=vectors, payloads=beside, ids=ids)

    async def store(self, said: Said) -> None:
        """One add, word for word."""
        self._memory.add(said.text, user_id=said.user, run_id=said.conversation, infer=False)

    async def recall(self, question: str) -> int:
        """A search for the user."""
        found = self._memory.search(question, filters={"user_id": "user0"}, top_k=TOP)
        return len(found["results"])


async def conspectus_times(store: Path, work: Any, size: Size) -> Times:
    """Ours."""
    ours = importlib.import_module("peers.conspectus_memory")
    async with ours.opened(store, embedded) as peer:
        return await measured(peer, work, size)


async def langgraph_times(store: Path, work: Any, size: Size) -> Times:
    """LangGraph's."""
    kind = importlib.import_module("langgraph.store.sqlite").SqliteStore
    index = {"dims": DIMENSIONS, "embed": lambda texts: list(map(embedded, texts)), "fields": ["text"]}
    connect = importlib.import_module("pysqlite3").connect
    with closing(connect(store / "store.sqlite", check_same_thread=False, isolation_level=None)) as opened:
        langgraph = kind(opened, index=index)
        langgraph.setup()
        return await measured(LangGraphMemory(langgraph), work, size)


async def mem0_times(store: Path, work: Any, size: Size) -> Times:
    """mem0's; the key is never used."""
    vectors = {"path": str(store / "qdrant"), "embedding_model_dims": DIMENSIONS, "on_disk": True}
    settings = {
        "vector_store": {"provider": "qdrant", "config": vectors},
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "embedder": {"provider": "openai", "config": {"api_key": "none"}},
        "history_db_path": str(store / "history.sqlite"),
    }
    memory = importlib.import_module("mem0").Memory.from_config(settings)
    return await measured(Mem0Memory(memory), work, size)


PEERS = {
    "conspectus": ("conspectus", conspectus_times),
    "langgraph": ("langgraph-checkpoint-sqlite", langgraph_times),
    "mem0": ("mem0ai", mem0_times),
}


if __name__ == "__main__":
    name, place, given, number, conversations = sys.argv[1:]
    package, times_of = PEERS[name]
    Path(place).mkdir(parents=True)
    told = json.loads(Path(given).read_text(encoding="utf-8"))
    times = asyncio.run(times_of(Path(place), told, Size(int(number), int(conversations))))
    print(json.dumps({"version": version(package), "times": times}))
