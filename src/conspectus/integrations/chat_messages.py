"""Turns of a conversation in the format of other programs: any JSON, returned as it was given.

The text of an item becomes the text of a memory, so that it can be searched; the rest becomes metadata.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from conspectus.bridge.engine_access import AnyEngineOrPath, access_to
from conspectus.bridge.engine_user import EngineUser
from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.memory import MEMORY, ConversationSummary, Memory, MemorySelection, NewMemory, Scope
from conspectus.text.clean import clean

Item: TypeAlias = dict[str, Any]
TEXT_FIELDS = ("content", "text", "output")
"""Fields that may contain the text."""
MAX_TEXT_DEPTH = 8
"""Maximum depth at which text is searched."""
FORM_KEY, ITEM_KEY, TEXT_PATH_KEY = "form", "item", "spot"
"""Metadata of a turn: the type of its item, the item as JSON without its text, and the path of the text.
Without the last two, the text is the whole item.
"""
MAX_EXTRA_BYTES = 16_384
"""Maximum length of the metadata; longer items are stored entirely as text."""
TURNS_PER_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Turns:
    """One conversation. `form` is the type of its items."""

    scope: Scope
    form: str
    collection: str = MEMORY

    async def add(
        self,
        engine: AnyEngine,
        items: Iterable[Item],
        *,
        roles: Sequence[str | None],
        more: Mapping[str, object] | None = None,
    ) -> None:
        """Append items, each with its role. `more` is metadata for each.

        Raises InvalidInput for values that are not JSON.
        """
        packed = [self._pack(item, role) for item, role in zip(items, roles, strict=True)]
        new = [replace(memory, metadata={**memory.metadata, **(more or {})}) for memory in packed]
        if new:
            await engine.memory.add(new, scope=self.scope, collection=self.collection)

    async def newest(self, engine: AnyEngine, limit: int | None = None) -> list[Item]:
        """Return the last items in the order of time (None: all)."""
        memories = await self._read(engine, limit)
        return [self.item(memory) for memory in reversed(memories)]

    async def pop(self, engine: AnyEngine) -> Item | None:
        """Remove and return the last item. Concurrent callers never get the same one."""
        while newest := await self._read(engine, 1):
            if await self.forget(engine, newest):
                return self.item(newest[0])
        return None

    async def clear(self, engine: AnyEngine) -> None:
        """Delete all turns. Notes of the conversation are kept."""
        await self.forget(engine, await self.memories(engine))

    async def memories(self, engine: AnyEngine) -> list[Memory]:
        """Return all turns in the order of time."""
        return (await self._read(engine, None))[::-1]

    async def forget(self, engine: AnyEngine, memories: Sequence[Memory]) -> int:
        """Delete these turns. Returns their number."""
        gone = 0
        for start in range(0, len(memories), TURNS_PER_PAGE):
            what = MemorySelection(
                ids=tuple(memory.id for memory in memories[start : start + TURNS_PER_PAGE])
            )
            gone += (await engine.memory.forget(what, scope=self.scope, collection=self.collection)).memories
        return gone

    async def _read(self, engine: AnyEngine, limit: int | None) -> list[Memory]:
        """Return the last turns, newest first. Raises InvalidInput without a conversation."""
        if self.scope.conversation is None:
            raise InvalidInput("conversation", "needs a name")
        memories: list[Memory] = []
        after: str | None = None
        with nothing_yet():
            while limit is None or len(memories) < limit:
                page = await engine.memory.list(
                    scope=self.scope,
                    collection=self.collection,
                    kind="turn",
                    after=after,
                    limit=TURNS_PER_PAGE if limit is None else min(TURNS_PER_PAGE, limit - len(memories)),
                    newest_first=True,
                )
                memories += page.memories
                after = page.next
                if after is None:
                    break
        return memories

    def _pack(self, item: Item, role: str | None) -> NewMemory:
        json_text = _json(item)
        candidates = [
            (text, way)
            for text, way in _texts(json.loads(json_text), ())
            if text.strip() and clean(text) == text
        ]
        # Of several texts the least nested is used, and of these the longest.
        text, spot = max(
            candidates, key=lambda candidate: (-len(candidate[1]), len(candidate[0])), default=("", None)
        )
        if spot is not None:
            rest = _json(_with(json.loads(json_text), spot, ""))
            if len(rest.encode()) <= MAX_EXTRA_BYTES:
                return NewMemory(
                    text, role=role, metadata={FORM_KEY: self.form, ITEM_KEY: rest, TEXT_PATH_KEY: list(spot)}
                )
        return NewMemory(json_text, role=role, metadata={FORM_KEY: self.form})

    def item(self, memory: Memory) -> Item:
        """Return the item of a turn. A turn of another origin becomes its role and text."""
        beside = memory.metadata
        if beside.get(FORM_KEY) != self.form:
            return {"role": memory.document.role or "user", "content": memory.text}
        if ITEM_KEY not in beside:
            whole_item: Item = json.loads(memory.text)
            return whole_item
        item: Item = json.loads(str(beside[ITEM_KEY]))
        spot = beside[TEXT_PATH_KEY]
        return _with(item, spot if isinstance(spot, list) else [], memory.text)


class Conversation(EngineUser):
    """A conversation whose turns are stored as memories in the order of time.

    Its messages can be found later, also from other conversations of the same user. Without an `agent`,
    messages of all agents in the conversation are read, and new ones belong to no agent.
    """

    form: ClassVar[str]

    def __init__(
        self,
        conversation: str,
        engine: AnyEngineOrPath = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        collection: str = MEMORY,
    ) -> None:
        self._access = access_to(engine)
        self._turns = Turns(Scope(user, agent, conversation), self.form, collection)

    async def _clear(self, engine: AnyEngine) -> None:
        """Delete all messages. Notes of the conversation are kept."""
        await self._turns.clear(engine)


async def conversations(engine: AnyEngine, scope: Scope, collection: str) -> list[str]:
    """Return the distinct names of the conversations of a scope, in order of their first turn."""
    summaries: Sequence[ConversationSummary] = ()
    with nothing_yet():
        summaries = await engine.memory.list_conversations(scope=scope, collection=collection)
    began = sorted(summaries, key=lambda summary: (summary.first is None, summary.first))
    names = (summary.scope.conversation for summary in began)
    return list(dict.fromkeys(name for name in names if name is not None))


@contextmanager
def nothing_yet() -> Iterator[None]:
    """Treat a missing collection as empty, as other programs expect."""
    try:
        yield
    except NotFound as missing:
        if missing.kind != "collection":
            raise


def _json(item: object) -> str:
    """Return the value as storable JSON. Raises InvalidInput."""
    try:
        text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        if clean(text) == text:
            return text
        return json.dumps(item, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as fault:
        raise InvalidInput("item", f"is not JSON: {fault}") from fault


def _texts(value: object, way: tuple[str | int, ...]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    if isinstance(value, str):
        if way and way[-1] in TEXT_FIELDS:
            yield value, way
    elif isinstance(value, dict | list) and len(way) < MAX_TEXT_DEPTH:
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(inner, (*way, step))


def _with(item: Item, spot: Sequence[Any], text: str) -> Item:
    """Return the item with another text at a path."""
    inner: Any = item
    for step in spot[:-1]:
        inner = inner[step]
    inner[spot[-1]] = text
    return item
