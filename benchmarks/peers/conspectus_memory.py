"""Conspectus as a memory that peers.memories measures."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path

import numpy as np

import conspectus
from conspectus import Engine
from conspectus.model.memory import MEMORY, Scope
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from peers.memories import BUDGET, DIMENSIONS, TOP, Said

CURRENT_USER = Scope("user0")


class GivenEmbedder:
    """Embeds with a function."""

    space = EmbeddingSpace("given", DIMENSIONS)

    def __init__(self, embedded: Callable[[str], list[float]]) -> None:
        self._embedded = embedded

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows."""
        return np.array([self._embedded(text) for text in texts], dtype=np.float32)

    async def embed_query(self, text: str) -> Vectors:
        """A unit vector."""
        return np.array(self._embedded(text), dtype=np.float32)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ConspectusMemory:
    """The memory of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def fill(self, memories: Sequence[Said]) -> None:
        """Conversation by conversation, until all are embedded and entities are extracted."""
        of_one = sorted(memories, key=_place)
        for (user, conversation), said in groupby(of_one, key=_place):
            scope = Scope(user, None, conversation)
            await self._engine.memory.add([each.text for each in said], scope=scope)
        if memories:
            await self.settle()
            await self._engine.memory.recall("warm", scope=CURRENT_USER)

    async def settle(self) -> None:
        """Wait for what is done in the background."""
        await self._engine.documents.wait_until_embedded(collection=MEMORY)
        await self._engine.graph.wait_until_extracted(collection=MEMORY)

    async def store(self, said: Said) -> None:
        """One memory; found by its words on return, embedded in the background."""
        await self._engine.memory.add(said.text, scope=Scope(said.user, None, said.conversation))

    async def recall(self, question: str) -> int:
        """Short term, words, vectors and graph together."""
        return len((await self._engine.memory.recall(question, scope=CURRENT_USER, limit=TOP)).memories)

    async def window(self, question: str) -> int:
        """A context of so many tokens."""
        return (await self._engine.memory.window(question, BUDGET, scope=CURRENT_USER)).tokens


@asynccontextmanager
async def opened(store: Path, embedded: Callable[[str], list[float]]) -> AsyncIterator[ConspectusMemory]:
    """A new store."""
    async with conspectus.open(store, embedder=GivenEmbedder(embedded)) as engine:
        yield ConspectusMemory(engine)


def _place(said: Said) -> tuple[str, str]:
    return said.user, said.conversation
