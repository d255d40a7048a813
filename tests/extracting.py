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
    match = _SAID.search(messages[-1].content)
    assert match is not None
    return match[1]


def facts_in(text: str) -> list[dict[str, Any]]:
    """The facts that a text tells."""
    facts: list[dict[str, Any]] = []
    for match in _RELATION.finditer(text):
        ends = {"subject": match[1], "predicate": match[2], "object": match[3], "single": True}
        facts.append({"kind": "relation", "text": f"So {match[0]}", "quote": match[0], **ends})
    for match in _PREFERENCE.finditer(text):
        ends = {"subject": match[1], "predicate": "likes", "object": match[2]}
        facts.append({"kind": "preference", "text": f"So {match[0]}", "quote": match[0], **ends})
    for match in _PROCEDURE.finditer(text):
        facts.append({"kind": "procedure", "text": f"So {match[0]}", "quote": match[0]})
    return facts


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
    return [memory for memory in (await engine.memory.list(scope=scope)).memories if memory.cites is not None]


def report(job: Job) -> dict[str, Any]:
    """The numbers in the result of a run."""
    names = ("outcome", "memories", "calls", "facts", "refused", "deleted")
    return {name: (job.result or {}).get(name) for name in names}
