"""Conspectus itself, through the engine that users call: from a question to ranked hits with texts."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import conspectus
from conspectus import NewDocument, Query, Settings
from conspectus.model.filter import EVERYTHING, Eq, Filter
from conspectus.model.query import Retriever
from peers.work import DIMENSIONS, TOP, WANTED, Effort, Hits, Question, Rows

Result = TypeVar("Result")
BOTH: tuple[Retriever, ...] = ("keyword", "vector")


class Adapter:
    """One collection with the defaults of the settings; there is nothing to tune in a search."""

    package = "conspectus"
    inside: float | None = None
    efforts: Sequence[Effort] = ()
    filter_efforts = efforts

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()

    def build(self, store: Path, rows: Rows) -> None:
        self.open(store)
        self.insert(rows)
        self._runner.run(self._stack.aclose())

    def open(self, store: Path) -> None:
        settings = Settings(path=str(store), embedder=f"vectors:{DIMENSIONS}")
        opened = conspectus.open(store, settings=settings)
        self._engine = self._runner.run(self._stack.enter_async_context(opened))

    def hybrid(self, question: Question, effort: Effort) -> Hits | None:
        return self._search(question, EVERYTHING, BOTH)

    def vectors(self, question: Question, effort: Effort) -> Hits:
        return self._search(question, EVERYTHING, ("vector",))

    def filtered(self, question: Question, effort: Effort) -> Hits:
        return self._search(question, Eq(("bucket",), WANTED), ("vector",))

    def insert(self, rows: Rows) -> None:
        documents = (
            NewDocument(text, key=str(number), vector=tuple(vector.tolist()), metadata={"bucket": bucket})
            for number, text, vector, bucket in zip(
                rows.numbers, rows.texts, rows.vectors, rows.buckets, strict=True
            )
        )
        self._run(self._engine.add(documents, wait=True))

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of the work. `Runner.run` would handle signals anew, and print each result."""
        return self._runner.get_loop().run_until_complete(work)

    def _search(self, question: Question, where: Filter, arms: tuple[Retriever, ...]) -> Hits:
        vector = tuple(question.vector.tolist())
        query = Query(question.text, filter=where, limit=TOP, retrievers=arms, vector=vector)
        retrieval = self._run(self._engine.retrieve(query))
        self.inside = retrieval.timings["index_search"]
        return [(int(hit.document.key or -1), hit.chunk.text) for hit in retrieval.hits]
