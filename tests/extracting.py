"""What tests of extraction share: a scripted model that finds the facts that are told in a simple form.

A sentence `Ann lives_in Köln.` is a relation whose subject has one such object; `Ann likes: tea.` is a
preference; `To bake: heat the oven.` is a procedure.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import conspectus
from conspectus import Engine, Settings
from conspectus.model.jobs import Job
from conspectus.model.memory import Memory, Scope
from conspectus.model.results import Message
from conspectus.testing.chat_models import ScriptedChatModel
from tests.memories import ANN

SETTINGS = replace(
    Settings(),
    embedder="none",
    log_level="critical",
    job_backoff_ms=1,
    job_grace_seconds=1,
    summary_concurrency=2,
    summary_max_attempts=2,
)
_SAID = re.compile(r"<retrieved>\n[^\n]*\n(.*)\n</retrieved>", re.DOTALL)
_RELATION = re.compile(r"(\w+) ([a-z]+_[a-z]+) (\w+)\.")
_PREFERENCE = re.compile(r"(\w+) likes: ([\w ]+)\.")
_PROCEDURE = re.compile(r"To \w+: [\w ]+\.")


def message_in(messages: Sequence[Message]) -> str:
    """The memory that a model was asked about."""
    found = _SAID.search(messages[-1].content)
    assert found is not None
    return found[1]


def facts_in(text: str) -> list[dict[str, Any]]:
    """The facts that a text tells."""
    found: list[dict[str, Any]] = []
    for each in _RELATION.finditer(text):
        ends = {"subject": each[1], "predicate": each[2], "object": each[3], "single": True}
        found.append({"kind": "relation", "text": f"So {each[0]}", "quote": each[0], **ends})
    for each in _PREFERENCE.finditer(text):
        ends = {"subject": each[1], "predicate": "likes", "object": each[2]}
        found.append({"kind": "preference", "text": f"So {each[0]}", "quote": each[0], **ends})
    for each in _PROCEDURE.finditer(text):
        found.append({"kind": "procedure", "text": f"So {each[0]}", "quote": each[0]})
    return found


def found(messages: Sequence[Message]) -> list[str]:
    """The answer of a model that finds all facts."""
    return [json.dumps({"facts": facts_in(message_in(messages))})]


def opened(path: Path, model: ScriptedChatModel | None, **settings: Any) -> Any:
    """A store with a chat model."""
    return conspectus.open(path, settings=replace(SETTINGS, **settings), chat_model=model)


async def extracted(engine: Engine, scope: Scope | None = None, **options: Any) -> Job:
    """A run of extraction, when it has ended."""
    job = await engine.memory.extract(scope=scope, **options)
    return await engine.jobs.wait(job.id)


async def facts_of(engine: Engine, scope: Scope = ANN) -> list[Memory]:
    """The extracted facts of a scope, in order."""
    return [each for each in (await engine.memory.list(scope=scope)).memories if each.cites is not None]


def report(job: Job) -> dict[str, Any]:
    """The numbers in the result of a run."""
    names = ("outcome", "memories", "calls", "facts", "refused", "deleted")
    return {name: (job.result or {}).get(name) for name in names}
