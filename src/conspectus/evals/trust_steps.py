"""The steps of attack histories: ways to write a text, and ways to copy it at a higher level."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.evals.trust_statements import PLACE, SCOPE, VIDEO, History, HistoryStore
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.chat import ChatRequest, Delta, ModelOptions
from conspectus.model.graph import NewNode
from conspectus.model.memory import GivenKind, NewMemory, Scope
from conspectus.model.records import NewDocument
from conspectus.model.results import Message
from conspectus.model.trust import Origin, Trust
from conspectus.text.prompt_frame import passages

Step = Callable[[HistoryStore, Sequence[History]], Awaitable[None]]
"""A step of some histories of a store, which take it together."""


class EchoModel:
    """A chat model that repeats what it was given, as an agent does that is led by a text."""

    name, window, tokenizer = "eval:echo", 8_192, "o200k_base"

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta, None]:
        """Answer with the passages of the prompt."""
        texts = [text for _, text in passages(messages[-1].content)]
        yield Delta(" ".join(texts)[: 3 * max_tokens] or "Nothing.")

    async def close(self) -> None:
        """Release nothing."""


def _document(origin: Origin | None, level: Trust) -> Step:
    async def write(store: HistoryStore, histories: Sequence[History]) -> None:
        statements = [history.statement(level) for history in histories]
        claims: list[Trust | None] = [history.chance.choice(("trusted", None)) for history in histories]
        new = [
            NewDocument(statement.text, key=statement.word, origin=origin, trust=claim)
            for statement, claim in zip(statements, claims, strict=True)
        ]
        written = await store.engine.add(new, source=PLACE)
        for history, one, done in zip(histories, statements, written, strict=True):
            history.documents += [] if one.hidden else [str(done.id)]

    return write


def _memory(role: str, level: Trust) -> Step:
    async def write(store: HistoryStore, histories: Sequence[History]) -> None:
        statements = [history.statement(level) for history in histories]
        kinds: list[GivenKind] = [history.chance.choice(("turn", "note")) for history in histories]
        new = [
            NewMemory(
                statement.text, key=statement.word, role=role, kind=kind, trust="trusted", origin="user"
            )
            for statement, kind in zip(statements, kinds, strict=True)
        ]
        written = await store.engine.memory.add(new, scope=SCOPE)
        store.scopes[SCOPE] = None
        for history, one, done in zip(histories, statements, written, strict=True):
            history.memories += [] if one.hidden else [str(done.id)]

    return write


async def _add_messages(store: HistoryStore, histories: Sequence[History]) -> None:
    statements = [history.statement("standard") for history in histories]
    new = [NewMessage(statement.text, key=statement.word, author="mallory") for statement in statements]
    await store.engine.channels.add_messages(new, channel=f"{PLACE}-chat")


async def _add_captions(store: HistoryStore, histories: Sequence[History]) -> None:
    statements = [history.statement("standard") for history in histories]
    new = [NewCaption(statement.text, start=0.0, end=1.0, key=statement.word) for statement in statements]
    await store.engine.streams.add_captions(new, stream=VIDEO)


async def _line(store: HistoryStore, histories: Sequence[History]) -> None:
    """Import memories that say nothing of their level."""
    statements = [history.statement("standard") for history in histories]
    lines = [
        f'{{"format": 1, "key": "{statement.word}", "user": "{PLACE}", "text": "{statement.text}",'
        ' "kind": "note", "known_from": "2026-01-01T00:00:00Z"}'
        for statement in statements
    ]
    await store.engine.memory.import_lines(lines)
    store.scopes[Scope(PLACE)] = None


async def _add_facts(store: HistoryStore, histories: Sequence[History]) -> None:
    """Write nodes as an agent, which are refused if they are attacks."""
    graph = store.engine.with_origin("agent").graph
    for history in histories:
        statement = history.statement("standard")
        with suppress(InvalidInput):
            await graph.add_nodes([NewNode(statement.word, name=statement.text)], graph=PLACE)


async def _carry(store: HistoryStore, _: Sequence[History]) -> None:
    """Export the memories of a scope and import them for another user, twice."""
    if not store.scopes:
        return
    scope = store.chance.choice(list(store.scopes))
    to = Scope(f"{PLACE}{len(store.scopes)}")
    exported = await store.engine.memory.export(scope=scope)
    for _time in range(2):
        await store.engine.memory.import_lines(exported.lines, scope=to)
    store.scopes[to] = None


async def _raise_document(store: HistoryStore, histories: Sequence[History]) -> None:
    """Change documents, and claim a higher level."""
    for history in histories:
        if history.documents:
            name = history.chance.choice(history.documents)
            await store.engine.documents.update(name, title="Reviewed", trust="trusted", origin="user")


async def _raise_memory(store: HistoryStore, histories: Sequence[History]) -> None:
    """Change memories to trusted notes that repeat them."""
    for history in histories:
        if history.memories:
            name = history.chance.choice(history.memories)
            text = (await store.engine.memory.get(name, scope=SCOPE)).text
            await store.engine.memory.update(
                name, scope=SCOPE, text=f"{text} So it is.", kind="note", trust="trusted", origin="user"
            )


async def _repeat(store: HistoryStore, histories: Sequence[History]) -> None:
    """Write memories again as they are stored, now as the user."""
    again = []
    for history in histories:
        if history.memories:
            stored = await store.engine.memory.get(history.chance.choice(history.memories), scope=SCOPE)
            kind: GivenKind = "note" if stored.kind == "note" else "turn"
            key, role = stored.document.key, stored.document.role
            again.append(NewMemory(stored.text, key=key, role=role, kind=kind, trust="trusted"))
    if again:
        await store.engine.memory.add(again, scope=SCOPE)


async def _ask_model(store: HistoryStore, histories: Sequence[History]) -> None:
    """Let a model repeat what is stored, and store its answers."""
    for history in histories:
        statement = history.chance.choice(history.statements)
        request = ChatRequest(statement.word, store_in=f"{PLACE}-answers", min_similarity=None)
        async for _ in store.engine.chat.stream(request):
            pass


async def _summarize(store: HistoryStore, _: Sequence[History]) -> None:
    """Summarize the captions, and store the summary at its level."""
    names = [stream.source.name for stream in await store.engine.streams.list()]
    if VIDEO in names:
        summary = await store.engine.summaries.summarize(VIDEO, extractive=True)
        new = NewDocument(summary.text or "Empty.", key="summary", origin="agent", trust=summary.trust)
        await store.engine.add(new, source=PLACE)


WRITES: Final[Sequence[Step]] = (
    _document(None, "trusted"),
    _document("agent", "standard"),
    _document("web", "untrusted"),
    _document("tool", "untrusted"),
    _memory("user", "trusted"),
    _memory("assistant", "standard"),
    _memory("tool", "untrusted"),
    _add_messages,
    _add_captions,
    _line,
    _add_facts,
)
STEPS: Final[Sequence[Step]] = (
    _carry, _raise_document, _raise_memory, _repeat, _ask_model, _summarize
)  # fmt: skip
