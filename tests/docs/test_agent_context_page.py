"""The manual of agents' contexts names everything there is."""

import re
from pathlib import Path

import pytest

from conspectus.facades import agent
from conspectus.facades.agent.arguments import StoredWith
from conspectus.facades.agent.context import ContextOptions
from conspectus.facades.agent.queries import AgentQuery

ROOT = Path(__file__).resolve().parents[2]
MANUAL = (ROOT / "docs" / "guides" / "agent-context.md").read_text(encoding="utf-8")
BLOCKING = [getattr(agent, name) for name in agent.__all__ if not name.startswith("Async")]


@pytest.mark.parametrize("kind", BLOCKING, ids=lambda kind: kind.__name__)
def test_every_method_is_named(kind: type) -> None:
    named = {name for name in dir(kind) if not name.startswith("_")}
    documented = set(re.findall(r"`([a-z_]+)", MANUAL)) | {
        "place",
        "owns",
        "close",
        "keys",
        "get_memory",
        "short_term",
        "name",
    }
    fields = set(getattr(kind, "__dataclass_fields__", ()))
    assert named - documented - fields == set()
    assert f"`{kind.__name__}`" in MANUAL


@pytest.mark.parametrize("words", [ContextOptions, StoredWith, AgentQuery], ids=lambda words: words.__name__)
def test_every_argument_is_named(words: type) -> None:
    assert {name for name in words.__annotations__ if f"`{name}" not in MANUAL} == set()


def test_blocking_and_asynchronous_classes_have_the_same_methods() -> None:
    for name in agent.__all__:
        if not name.startswith("Async"):
            continue
        blocking, asynchronous = getattr(agent, name.removeprefix("Async")), getattr(agent, name)
        methods = {
            name for name in dir(asynchronous) if callable(getattr(asynchronous, name)) and name[0] != "_"
        }
        inner = {"run", "move", "import_dict", "source", "exists", "search_scope", "within", "graph_for"}
        inner |= {"window", "source_if_not_empty", "wait_until_embedded"}
        assert methods - set(dir(blocking)) - inner == set()
