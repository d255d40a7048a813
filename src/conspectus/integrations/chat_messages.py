"""The turns of a conversation as other programs have them: any JSON, given back as it came.

What was said in an item is the text of a memory, so that it can be recalled; the rest goes beside it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.memory import MEMORY, ConversationSummary, Memory, MemorySelection, NewMemory, Scope
from conspectus.text.clean import clean

Item: TypeAlias = dict[str, Any]

SAID = ("content", "text", "output")
"""Fields that hold what was said."""
DEPTH = 8
"""What was said is looked for no deeper than this."""
FORM, ITEM, SPOT = "form", "item", "spot"
"""Metadata of a turn: of what kind its item is, that as JSON without what was said, and the way to where that
was; without the last two the text is the whole item."""
BESIDE_BYTES = 16_384
"""What goes beside a text is at most so long; longer items are texts as a whole."""
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Turns:
    """One conversation; `form` names the kind of its items."""

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
        """Append items, each with the role of who said it; `more` is metadata for each.

        Raises InvalidInput for what is not JSON.
        """
        packed = [self._packed(item, role) for item, role in zip(items, roles, strict=True)]
        new = [replace(each, metadata={**each.metadata, **(more or {})}) for each in packed]
        if new:
            await engine.memory.add(new, scope=self.scope, collection=self.collection)

    async def newest(self, engine: AnyEngine, limit: int | None = None) -> list[Item]:
        """The last items in the order of time (None: all)."""
        found = await self._read(engine, limit)
        return [self.item(memory) for memory in reversed(found)]

    async def pop(self, engine: AnyEngine) -> Item | None:
        """Remove and return the last item. Concurrent callers never get the same one."""
        while found := await self._read(engine, 1):
            if await self.forget(engine, found):
                return self.item(found[0])
        return None

    async def insert(self, engine: AnyEngine, index: int, item: Item, role: str | None) -> None:
        """Insert an item before the place at `index`, as list.insert does. What follows is written again."""
        tail = (await self.memories(engine))[index:]
        items = [item, *map(self.item, tail)]
        await self.add(engine, items, roles=[role, *(each.document.role for each in tail)])
        await self.forget(engine, tail)

    async def take(self, engine: AnyEngine, index: int) -> Item | None:
        """Take the item at a place away, counted from the first or, below 0, from the end."""
        found = await self.memories(engine)
        if not -len(found) <= index < len(found):
            return None
        return self.item(found[index]) if await self.forget(engine, [found[index]]) else None

    async def clear(self, engine: AnyEngine) -> list[Item]:
        """Take all turns away; notes of the conversation stay."""
        found = await self.memories(engine)
        await self.forget(engine, found)
        return [self.item(memory) for memory in found]

    async def memories(self, engine: AnyEngine) -> list[Memory]:
        """All turns in the order of time."""
        return (await self._read(engine, None))[::-1]

    async def forget(self, engine: AnyEngine, memories: Sequence[Memory]) -> int:
        """Forget these turns, and return how many there were."""
        gone = 0
        for start in range(0, len(memories), PAGE):
            what = MemorySelection(ids=tuple(memory.id for memory in memories[start : start + PAGE]))
            gone += (await engine.memory.forget(what, scope=self.scope, collection=self.collection)).memories
        return gone

    async def _read(self, engine: AnyEngine, limit: int | None) -> list[Memory]:
        """The last turns, newest first. Raises InvalidInput where all conversations would be meant."""
        if self.scope.conversation is None:
            raise InvalidInput("conversation", "needs a name")
        found: list[Memory] = []
        after: str | None = None
        with nothing_yet():
            while limit is None or len(found) < limit:
                page = await engine.memory.list(
                    scope=self.scope,
                    collection=self.collection,
                    kind="turn",
                    after=after,
                    limit=PAGE if limit is None else min(PAGE, limit - len(found)),
                    newest_first=True,
                )
                found += page.memories
                after = page.next
                if after is None:
                    break
        return found

    def _packed(self, item: Item, role: str | None) -> NewMemory:
        whole = _json(item)
        text, spot = _said(json.loads(whole))
        if spot is not None:
            rest = _json(_with(json.loads(whole), spot, ""))
            if len(rest.encode()) <= BESIDE_BYTES:
                return NewMemory(text, role=role, metadata={FORM: self.form, ITEM: rest, SPOT: list(spot)})
        return NewMemory(whole, role=role, metadata={FORM: self.form})

    def item(self, memory: Memory) -> Item:
        """The item of a turn; one that was written in another way has its role and its text."""
        beside = memory.metadata
        if beside.get(FORM) != self.form:
            return {"role": memory.document.role or "user", "content": memory.text}
        if ITEM not in beside:
            whole: Item = json.loads(memory.text)
            return whole
        item: Item = json.loads(str(beside[ITEM]))
        spot = beside[SPOT]
        return _with(item, spot if isinstance(spot, list) else [], memory.text)


async def conversations(engine: AnyEngine, scope: Scope, collection: str) -> list[str]:
    """The names of the conversations of a scope, each once, in the order in which they began."""
    found: Sequence[ConversationSummary] = ()
    with nothing_yet():
        found = await engine.memory.list_conversations(scope=scope, collection=collection)
    began = sorted(found, key=lambda each: (each.first is None, each.first))
    names = (each.scope.conversation for each in began)
    return list(dict.fromkeys(name for name in names if name is not None))


@contextmanager
def nothing_yet() -> Iterator[None]:
    """Where the collection is not made yet, nothing is remembered: that is no error to other programs."""
    try:
        yield
    except NotFound as missing:
        if missing.kind != "collection":
            raise


def _json(item: object) -> str:
    """As JSON that any store keeps as it is. Raises InvalidInput."""
    try:
        text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        return text if clean(text) == text else json.dumps(item, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as fault:
        raise InvalidInput("item", f"is not JSON: {fault}") from fault


def _said(item: Item) -> tuple[str, Sequence[str | int] | None]:
    """The text that was said, and the way to it (None: there is none that can stand alone).

    Of several it is the one that stands highest in the item, and of those the longest.
    """
    said = [(text, way) for text, way in _texts(item, ()) if text.strip() and clean(text) == text]
    return max(said, key=lambda each: (-len(each[1]), len(each[0])), default=("", None))


def _texts(value: object, way: tuple[str | int, ...]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    if isinstance(value, str):
        if way and way[-1] in SAID:
            yield value, way
    elif isinstance(value, dict | list) and len(way) < DEPTH:
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(inner, (*way, step))


def _with(item: Item, spot: Sequence[Any], text: str) -> Item:
    """The item, changed to have another text at a spot."""
    inner: Any = item
    for step in spot[:-1]:
        inner = inner[step]
    inner[spot[-1]] = text
    return item
