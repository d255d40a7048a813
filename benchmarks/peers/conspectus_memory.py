"""Conspectus as a memory that peers.memories measures."""

import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import conspectus
from conspectus import Engine
from conspectus.model.memory import MEMORY, NewMemory, Scope
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
        for (user, conversation), turns in groupby(of_one, key=_place):
            scope = Scope(user, None, conversation)
            await self._engine.memory.add(list(map(_memory, turns)), scope=scope)
        if memories:
            await self.settle()
            await self._engine.memory.recall("warm", scope=CURRENT_USER)

    async def settle(self) -> None:
        """Wait for what is done in the background."""
        await self._engine.documents.wait_until_embedded(collection=MEMORY)
        await self._engine.graph.wait_until_extracted(collection=MEMORY)

    async def store(self, memory: Said) -> None:
        """One memory; found by its words on return, embedded in the background."""
        scope = Scope(memory.user, None, memory.conversation)
        await self._engine.memory.add([_memory(memory)], scope=scope)

    async def recall(self, question: str, user: str) -> list[str]:
        """Short term, words, vectors and graph together."""
        recalled = await self._engine.memory.recall(question, scope=Scope(user), limit=TOP)
        return [str(hit.memory.metadata["name"]) for hit in recalled.memories]

    async def window(self, question: str) -> int:
        """A context of so many tokens."""
        return (await self._engine.memory.window(question, BUDGET, scope=CURRENT_USER)).tokens


def tools() -> list[dict[str, Any]]:
    """Those that `conspectus mcp` lists, documents and graphs included."""
    # A program that only recalls does not import the MCP server.
    server = importlib.import_module("conspectus.mcp.tool_list")
    options = importlib.import_module("conspectus.mcp.tool").ToolOptions(BUDGET)
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in server.list_tools(options)
    ]


@asynccontextmanager
async def opened(store: Path, embed: Callable[[str], list[float]] | None) -> AsyncIterator[ConspectusMemory]:
    """A store; without a function, with the included model."""
    embedder = None if embed is None else GivenEmbedder(embed)
    async with conspectus.open(store, embedder=embedder) as engine:
        yield ConspectusMemory(engine)


def _memory(memory: Said) -> NewMemory:
    beside = {"name": memory.name}
    return NewMemory(memory.text, speaker=memory.speaker, role=memory.role, at=memory.at, metadata=beside)


def _place(memory: Said) -> tuple[str, str]:
    return memory.user, memory.conversation
