"""Where the tests of agents' contexts keep what is remembered."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import conspectus
from conspectus.facades.agent import AgentContext
from conspectus.settings import Settings
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical")


@contextmanager
def store(path: Path, embedder: Any = None) -> Iterator[BlockingEngine]:
    """An engine without a model, for programs without an event loop."""
    with conspectus.open(path, settings=SETTINGS, embedder=embedder or HashedEmbedder()) as engine:
        yield engine


def contents_of(memories: list[dict[str, Any]]) -> list[str]:
    """The texts of memories."""
    return [memory["content"] for memory in memories]


def talk(context: AgentContext, conversation: str, *texts: str) -> list[str]:
    """Say something in a conversation."""
    return [context.store(text, conversation_id=conversation) for text in texts]
