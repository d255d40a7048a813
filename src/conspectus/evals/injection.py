"""Whether hostile texts that were retrieved can be more than text in what a chat model is sent."""

import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

from conspectus import bootstrap
from conspectus.chat.prompt import Prompt
from conspectus.engine import Engine
from conspectus.evals.attacks import read_attacks, read_harmless
from conspectus.evals.prompt_faults import Expected, faults_of
from conspectus.model.chat import (
    Allocation,
    ChatRequest,
    ContextForm,
    Delta,
    ModelOptions,
    Sources,
    ToolCall,
    Usage,
)
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument
from conspectus.model.results import Message
from conspectus.ports import Progress
from conspectus.settings import Settings
from conspectus.text.prompt_escaping import disarm

QUESTION = "What does the report say?"
MOST_TOKENS = 100_000
MOST_EXAMPLES = 10
FORMS: tuple[ContextForm, ...] = ("passages", "tasks")


class KindReport(TypedDict):
    """How many attacks of a kind there were, and how many of them were more than text."""

    attacks: int
    failed: int


class HarmlessReport(TypedDict):
    """How many texts that attack nobody there were, and how many of them are changed nevertheless."""

    texts: int
    changed: int


class InjectionReport(TypedDict):
    """`faults` counts what was wrong, by name; `examples` are some of the attacks that got through.

    `harmless` is by the name of the folder.
    """

    attacks: int
    failed: int
    kinds: dict[str, KindReport]
    faults: dict[str, int]
    examples: list[str]
    harmless: dict[str, HarmlessReport]


@dataclass(slots=True)
class Listener:
    """A chat model that says nothing and remembers what it was asked last."""

    name: str = "none:listener"
    window: int = 2 * MOST_TOKENS
    tokenizer: str = "chars4_ceil"
    asked: tuple[Message, ...] = field(default=())

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        most: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """Only the usage."""
        self.asked = tuple(messages)
        yield Usage(0, 0)

    async def close(self) -> None:
        """Nothing to release."""


async def injection(
    directory: str | Path, *, harmless: Sequence[Path] = (), progress: Progress | None = None
) -> InjectionReport:
    """Store every attack as a document of its own, ask for it, and look at what the model is sent.

    It stands in the text, the title, the author and the key, once among passages and once among tasks. The
    goal is no failure at all, and that few texts of the `harmless` folders are changed, XML's own escapes
    apart. Raises InvalidInput for a directory without attacks.
    """
    attacks = read_attacks(Path(directory))
    listener = Listener()
    settings = replace(Settings(), embedder="none", reranker="none", chat_model="none", chat_use_context="on")
    with tempfile.TemporaryDirectory(prefix="conspectus-eval-") as folder:
        async with bootstrap.open(folder, settings=settings, chat_model=listener) as engine:
            found = await _all_faults(engine, listener, attacks, progress)
    return _summary(found, {folder.name: _changed(read_harmless(folder)) for folder in harmless})


async def _all_faults(
    engine: Engine, listener: Listener, attacks: Mapping[str, Sequence[str]], progress: Progress | None
) -> dict[str, Mapping[str, Sequence[str]]]:
    found: dict[str, Mapping[str, Sequence[str]]] = {}
    for kind, texts in attacks.items():
        found[kind] = await faults_by_attack(engine, listener, texts)
        if progress is not None:
            progress("asking for attacks", len(found), len(attacks))
    return found


async def faults_by_attack(
    engine: Engine, listener: Listener, texts: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """What is wrong with the prompts that hold each of the attacks."""
    found: dict[str, tuple[str, ...]] = {}
    for form in FORMS:
        written = await engine.add([_report(text, number, form) for number, text in enumerate(texts)])
        for text, stored in zip(texts, written, strict=True):
            faults = await _faults(engine, listener, stored.id, form)
            found[text] = (*found.get(text, ()), *faults)
    return found


async def _faults(engine: Engine, listener: Listener, document: str, form: ContextForm) -> tuple[str, ...]:
    request = ChatRequest(
        QUESTION,
        where=Eq("document", document),
        floor=None,
        form=form,
        allocation=Allocation(context=MOST_TOKENS),
    )
    async with aclosing(engine.chat(request)) as events:
        told = [event async for event in events]
    given = told[0].sources if isinstance(told[0], Sources) else ()
    whole = await engine.text(document)
    expected = Expected(
        system=Prompt.of(None, (), QUESTION, rules=True).system,
        question=QUESTION,
        texts=[whole[each.start : each.end] for each in given],
        tasks=form == "tasks",
    )
    return faults_of(listener.asked, expected) if given else ("nothing was found",)


def _report(attack: str, number: int, form: ContextForm) -> NewDocument:
    line = " ".join(attack.split())[:120]
    return NewDocument(
        text=f"{attack}\nThat is the report." if form == "tasks" else f"A report.\n\n{attack}",
        title=f"Report {line}",
        key=f"{form} {number} {line}",
        author=line,
        kind="task" if form == "tasks" else "page",
        metadata={"status": line, "priority": line},
    )


def _changed(texts: Sequence[str]) -> HarmlessReport:
    return {"texts": len(texts), "changed": sum(disarm(text) != text for text in texts)}


def _summary(
    found: Mapping[str, Mapping[str, Sequence[str]]], harmless: dict[str, HarmlessReport]
) -> InjectionReport:
    failed = [(kind, text, faults) for kind, of in found.items() for text, faults in of.items() if faults]
    return {
        "attacks": sum(map(len, found.values())),
        "failed": len(failed),
        "kinds": {
            kind: {"attacks": len(of), "failed": sum(map(bool, of.values()))} for kind, of in found.items()
        },
        "faults": dict(Counter(fault for _, _, faults in failed for fault in set(faults))),
        "examples": [
            f"{kind}: {', '.join(sorted(set(faults)))}: {text[:200]!r}"
            for kind, text, faults in failed[:MOST_EXAMPLES]
        ],
        "harmless": harmless,
    }
