"""One memory of agents at work, in a process of its own.

python -m peers.memories PEER STORE times WORK NUMBER CONVERSATIONS
python -m peers.memories PEER STORE evidence WORK VECTORS
python -m peers.memories PEER STORE cold WORK
python -m peers.memories PEER STORE tools

All are given the same memories and the same embedder. For `times` these are of 10 users in as many
conversations each, and the embedder takes next to no time: each word has a fixed random vector, and a text
is the sum of those of its words. For `evidence` the vectors of a real model are given with the texts. `cold`
asks one question of a store that `times` filled. The last line of the output is JSON, with times in
milliseconds.
"""

import asyncio
import importlib
import json
import re
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
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
Embed: TypeAlias = Callable[[str], list[float]]


@dataclass(frozen=True)
class Said:
    """A text, and whose it is. Memories without fields for speaker and time get the speaker in the text."""

    name: str
    text: str
    user: str
    conversation: str
    speaker: str | None = None
    role: str | None = None
    at: str | None = None

    @property
    def spoken(self) -> str:
        """The text with its speaker."""
        return self.text if self.speaker is None else f"{self.speaker}: {self.text}"


def numbered(number: int, text: str, conversations: int) -> Said:
    """A text of one of ten users, in one of the user's conversations."""
    return Said(str(number), text, f"user{number % USERS}", f"talk{number // USERS % conversations}")


@dataclass(frozen=True)
class Size:
    """How many memories there are, and in how many conversations of each user."""

    number: int
    conversations: int


class Peer(Protocol):
    """A memory that is open."""

    async def fill(self, memories: Sequence[Said]) -> None:
        """Store many, as fast as it can."""
        ...

    async def store(self, memory: Said) -> None:
        """Store one; on return it is on disk."""
        ...

    async def recall(self, question: str, user: str) -> list[str]:
        """The names of the memories that come with their texts, best first."""
        ...


def embedded(text: str) -> list[float]:
    """The unit vector of a text."""
    words = [zlib.crc32(word.encode("utf-8", "replace")) % ROWS for word in WORD.findall(text.lower())]
    total = TABLE[words].sum(axis=0) if words else np.eye(1, DIMENSIONS, dtype=np.float32)[0]
    return list(map(float, total / np.linalg.norm(total)))


async def measured(peer: Peer, work: Any, size: Size) -> Times:
    """Fill the store, then store and ask one at a time."""
    number, last = size.number, size.number + SINGLES + WARMING
    texts = [numbered(number, text, size.conversations) for number, text in enumerate(work["texts"])]
    start = time.perf_counter()
    await peer.fill(texts[:number])
    filled = time.perf_counter() - start
    singles = [partial(peer.store, memory) for memory in texts[number:last]]
    paced = [partial(peer.store, memory) for memory in texts[last : last + PACED + WARMING]]
    times = {"fill seconds": [filled]}
    before = time.process_time()
    times["remember"] = await timed(singles)
    times["remember, processor"] = [(time.process_time() - before) * 1_000 / len(singles)]
    times["remember, 20 a second"] = await timed(paced, pace=PACE)
    settle = getattr(peer, "settle", None)
    if settle is not None:
        await settle()
    queries = work["questions"][: QUESTIONS + WARMING]
    before = time.process_time()
    times["recall"] = await timed([partial(peer.recall, text, "user0") for text in queries])
    times["recall, processor"] = [(time.process_time() - before) * 1_000 / len(queries)]
    window = getattr(peer, "window", None)
    if window is not None:
        times["memory_window"] = await timed([partial(window, text) for text in queries])
    return times


async def timed(work: Sequence[Callable[[], Awaitable[Any]]], *, pace: float = 0.0) -> list[float]:
    """Milliseconds of each, but for the first ones; begun no sooner after each other than the pace is."""
    times = []
    for call in work:
        start = time.perf_counter()
        await call()
        took = time.perf_counter() - start
        times.append(took * 1_000)
        if took < pace:
            await asyncio.sleep(pace - took)
    return times[WARMING:]


def batches(memories: Sequence[Said]) -> Iterator[Sequence[Said]]:
    """So many at a time."""
    for start in range(0, len(memories), BATCH):
        yield memories[start : start + BATCH]


async def evidence(peer: Peer, work: Any) -> Any:
    """Store turns one by one, then ask each question in its conversation: times, recall of its evidence."""
    memories = [Said(**turn) for turn in work["turns"]]
    times = {"remember": await timed([partial(peer.store, memory) for memory in memories])}
    settle = getattr(peer, "settle", None)
    if settle is not None:
        await settle()
    recalls: list[float] = []

    async def ask(question: Any) -> None:
        names = await peer.recall(question["text"], question["user"])
        expected = set(question["evidence"])
        recalls.append(len(expected & set(names[:TOP])) / len(expected))

    times["recall"] = await timed([partial(ask, question) for question in work["questions"]])
    return {"times": times, "recall@10": 100 * sum(recalls) / len(recalls), "questions": len(recalls)}


def given_vectors(work: Any, path: Path) -> Embed:
    """An embedder that knows the vectors of the turns and of the questions."""
    rows = np.load(path)
    texts = [Said(**turn).spoken for turn in work["turns"]] + [
        question["text"] for question in work["questions"]
    ]
    # mem0 strips what it is asked.
    vectors = dict(zip(map(str.strip, texts), rows, strict=True))
    return lambda text: list(map(float, vectors[text.strip()]))


class LangGraphMemory:
    """LangGraph's store in SQLite, with its vectors; pysqlite3 can load those where sqlite3 cannot."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._put = importlib.import_module("langgraph.store.base").PutOp

    async def fill(self, memories: Sequence[Said]) -> None:
        """In batches."""
        for batch in batches(memories):
            self._store.batch([self._operation(memory) for memory in batch])

    async def store(self, memory: Said) -> None:
        """One put."""
        self._store.batch([self._operation(memory)])

    async def recall(self, question: str, user: str) -> list[str]:
        """A search below the user."""
        return [hit.key for hit in self._store.search((user,), query=question, limit=TOP)]

    def _operation(self, memory: Said) -> Any:
        namespace = (memory.user, memory.conversation)
        return self._put(namespace, memory.name, {"text": memory.spoken}, index=["text"])


class Mem0Memory:
    """mem0 without a language model, with Qdrant in this process and on disk, as it is set up by default."""

    def __init__(self, memory: Any, embed: Embed) -> None:
        self._memory = memory
        self._embed = embed
        self._memory.embedding_model = self

    def embed(self, text: str, action: str | None = None) -> list[float]:
        """The embedder interface of mem0."""
        return self._embed(text)

    async def fill(self, memories: Sequence[Said]) -> None:
        """Straight into its vector store, in batches: by `add` it would take hours."""
        numbers = count(1)
        for batch in batches(memories):
            beside = [
                {"data": s.spoken, "user_id": s.user, "run_id": s.conversation, "name": s.name} for s in batch
            ]
            ids = [f"00000000-0000-0000-0000-{next(numbers):012}" for _ in batch]
            vectors = [self._embed(memory.spoken) for memory in batch]
            self._memory.vector_store.insert(vectors=vectors, payloads=beside, ids=ids)

    async def store(self, memory: Said) -> None:
        """One add, word for word."""
        beside = {"name": memory.name}
        self._memory.add(
            memory.spoken, user_id=memory.user, run_id=memory.conversation, metadata=beside, infer=False
        )

    async def recall(self, question: str, user: str) -> list[str]:
        """A search for the user."""
        response = self._memory.search(question, filters={"user_id": user}, top_k=TOP)
        return [hit["metadata"]["name"] for hit in response["results"]]


class McpMemory:
    """mcp-memory-service with its default storage, SQLite with vectors; each user has a store of it."""

    def __init__(self, storage: Any, embed: Embed) -> None:
        self._storage = storage
        self._embed = embed
        self._memory = importlib.import_module("mcp_memory_service.models.memory").Memory
        self._hash = importlib.import_module("mcp_memory_service.utils.hashing").generate_content_hash
        storage.embedding_model = self

    def encode(self, texts: Sequence[str], convert_to_numpy: bool = False) -> Any:
        """The embedder interface of sentence-transformers."""
        return np.array([self._embed(text) for text in texts], dtype=np.float32)

    async def fill(self, memories: Sequence[Said]) -> None:
        """In its batches, user by user."""
        for user in sorted({memory.user for memory in memories}):
            for batch in batches([memory for memory in memories if memory.user == user]):
                await self._storage.store_batch(list(map(self._made, batch)), store=user)

    async def store(self, memory: Said) -> None:
        """One memory; it refuses what says nearly the same as another of the last day."""
        await self._storage.store(self._made(memory), store=memory.user)

    async def recall(self, question: str, user: str) -> list[str]:
        """A search by vectors in the user's store."""
        hits = await self._storage.retrieve(question, n_results=TOP, store=user)
        return [hit.memory.metadata["name"] for hit in hits]

    def _made(self, memory: Said) -> Any:
        text, beside = memory.spoken, {"name": memory.name}
        return self._memory(text, self._hash(text), tags=[memory.conversation], metadata=beside)


@asynccontextmanager
async def langgraph_opened(store: Path, embed: Embed) -> AsyncIterator[Peer]:
    """LangGraph's."""
    kind = importlib.import_module("langgraph.store.sqlite").SqliteStore
    index = {"dims": DIMENSIONS, "embed": lambda texts: list(map(embed, texts)), "fields": ["text"]}
    connect = importlib.import_module("pysqlite3").connect
    with closing(connect(store / "store.sqlite", check_same_thread=False, isolation_level=None)) as opened:
        langgraph = kind(opened, index=index)
        langgraph.setup()
        yield LangGraphMemory(langgraph)


@asynccontextmanager
async def mem0_opened(store: Path, embed: Embed) -> AsyncIterator[Peer]:
    """mem0's; the key is never used."""
    vectors = {"path": str(store / "qdrant"), "embedding_model_dims": DIMENSIONS, "on_disk": True}
    settings = {
        "vector_store": {"provider": "qdrant", "config": vectors},
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "embedder": {"provider": "openai", "config": {"api_key": "none"}},
        "history_db_path": str(store / "history.sqlite"),
    }
    yield Mem0Memory(importlib.import_module("mem0").Memory.from_config(settings), embed)


@asynccontextmanager
async def mcp_memory_opened(store: Path, embed: Embed) -> AsyncIterator[Peer]:
    """mcp-memory-service's, without the model that it would download."""
    sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
    storage = importlib.import_module("mcp_memory_service.storage.sqlite_vec").SqliteVecMemoryStorage(
        str(store / "memories.sqlite")
    )
    await storage.initialize()
    yield McpMemory(storage, embed)


def conspectus_opened(store: Path, embed: Embed | None) -> AbstractAsyncContextManager[Peer]:
    """Ours."""
    opened: AbstractAsyncContextManager[Peer] = importlib.import_module("peers.conspectus_memory").opened(
        store, embed
    )
    return opened


def langgraph_tools() -> list[Any]:
    """The tools that langmem has for LangGraph's store."""
    langmem = importlib.import_module("langmem")
    namespace = ("memories",)
    tools = (langmem.create_manage_memory_tool(namespace), langmem.create_search_memory_tool(namespace))
    as_openai_tool = importlib.import_module("langchain_core.utils.function_calling").convert_to_openai_tool
    return [as_openai_tool(tool)["function"] for tool in tools]


def mcp_memory_tools() -> list[Any]:
    """The tools of mcp-memory-service's server."""
    registry = importlib.import_module("mcp_memory_service.tools.registry").TOOL_REGISTRY
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in registry
    ]


def no_tools() -> list[Any]:
    """None that work without a server of the vendor."""
    return []


def conspectus_tools() -> list[Any]:
    """Those of `conspectus mcp`."""
    tools: list[Any] = importlib.import_module("peers.conspectus_memory").tools()
    return tools


Opened = Callable[[Path, Any], AbstractAsyncContextManager[Peer]]
PEERS: dict[str, tuple[str, Opened, Callable[[], list[Any]]]] = {
    "conspectus": ("conspectus", conspectus_opened, conspectus_tools),
    "langgraph": ("langgraph-checkpoint-sqlite", langgraph_opened, langgraph_tools),
    "mem0": ("mem0ai", mem0_opened, no_tools),
    "mcp-memory": ("mcp-memory-service", mcp_memory_opened, mcp_memory_tools),
}


async def run(name: str, store: Path, what: str, work: Any, rest: Sequence[str]) -> Any:
    """What the command line asks for."""
    opened = PEERS[name][1]
    if what == "evidence":
        # Ours embeds chunks of texts, so it has the model itself.
        embed = None if name == "conspectus" else given_vectors(work, Path(rest[0]))
        async with opened(store, embed) as peer:
            return await evidence(peer, work)
    async with opened(store, embedded) as peer:
        if what == "times":
            return {"times": await measured(peer, work, Size(*map(int, rest)))}
        return {"found": await peer.recall(work["questions"][0], "user0")}


def main(name: str, folder: str, what: str, *rest: str) -> None:
    """Do it, and print JSON."""
    package, _, tools = PEERS[name]
    if what == "tools":
        report: Any = {"tools": tools()}
    else:
        Path(folder).mkdir(parents=True, exist_ok=True)
        work = json.loads(Path(rest[0]).read_text(encoding="utf-8"))
        report = asyncio.run(run(name, Path(folder), what, work, rest[1:]))
    print(json.dumps({"version": version(package), **report}))


if __name__ == "__main__":
    main(*sys.argv[1:])
