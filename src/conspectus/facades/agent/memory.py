"""An agent's memory: a short term of so many turns and tokens, and a long term of everything."""

from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import EllipsisType
from typing import Any, Final, TypeVar, Unpack

from conspectus.bootstrap import local_counter
from conspectus.errors import InvalidInput, NotFound, ProviderError
from conspectus.facades.agent.mapping import (
    MAX_LIMIT,
    WHOSE,
    AgentQuery,
    AgentScope,
    Beside,
    Document,
    MemoryItem,
    Owner,
    Told,
    divided,
    fact_of,
    instant_of,
    known,
    names_of,
    new_memory,
    number,
    query_options,
    recalled,
    scope_asked,
    scope_of,
    worded,
)
from conspectus.facades.agent.memory_reads import TURN, MemoryReads
from conspectus.facades.agent.session import desk_of, is_new, read_lines, write_lines
from conspectus.model.filter import And, Eq, Filter, Not
from conspectus.model.memory import (
    MEMORY,
    PINNED,
    MemoryExport,
    MemoryQueryOptions,
    MemoryReceipt,
    MemorySelection,
    MemoryWritten,
    NewMemory,
    Retention,
    Scope,
)
from conspectus.model.pages import pages
from conspectus.settings import Settings, context_token_limit

SHORT_TERM: Final = 10
SHORT: Final = "short_term"
TOKENIZER: Final = "o200k_base"


class MemoryOptions(AgentScope, total=False):
    """How an agent's memory is made.

    The short term are the last `short_term_limit` turns of at most `token_limit` tokens, as the `tokenizer`
    counts (default: CONTEXT_TOKEN_LIMIT of the environment, else 2,000). With `retention_days` older ones are
    deleted, with `max_memories` the oldest beyond that number. `collection` is where in the store they are.
    """

    token_limit: int | None
    short_term_limit: int
    retention_days: float | None
    max_memories: int | None
    tokenizer: str
    collection: str


MEMORIES: Final = "memories.jsonl"
T = TypeVar("T")
CHANGES: Final = {
    "content": "text",
    "timestamp": "at",
    "role": "role",
    "speaker": "speaker",
    "kind": "kind",
    "pinned": "pinned",
    "valid_from": "valid_from",
    "valid_until": "valid_until",
}
COUNTED: Final[Filter] = And((TURN, Not(Eq((PINNED,), True))))
"""What retention is about."""


class AsyncAgentMemory(MemoryReads):
    """Memories of a user, an agent and a conversation; each call may name others than it was made with.

    `vector_store` is a path, an engine of conspectus.open, connect or sync, another part of an agent's
    context, or None for a store that is gone when it is closed.
    """

    def __init__(self, vector_store: Any = None, **options: Unpack[MemoryOptions]) -> None:
        known(options, frozenset(MemoryOptions.__annotations__))
        super().__init__(
            desk_of(vector_store, options.get("collection", MEMORY)),
            scope_of(Scope(), {name: value for name, value in options.items() if name in WHOSE}),
            token_limit=number("token_limit", options.get("token_limit"), _default_token_limit()),
            short_term_limit=number("short_term_limit", options.get("short_term_limit"), SHORT_TERM),
            tokenizer=options.get("tokenizer", TOKENIZER),
        )
        self.owns = is_new(vector_store)
        self._count = local_counter(self.tokenizer)
        self.retention = _retention(options.get("retention_days"), options.get("max_memories"))

    async def store(self, content: str, **given: Unpack[Beside]) -> str:
        """Remember one text and return its id."""
        return (await self._store([(content, dict(given))]))[0].id

    async def batch_store(self, items: Iterable[Document], **given: Unpack[Beside]) -> list[str]:
        """Remember many, texts or dictionaries with a `content`; their ids in the order given."""
        return [each.id for each in await self._store([worded(each, given) for each in items])]

    async def store_vectors(self, items: Iterable[MemoryItem], **whose: Unpack[AgentScope]) -> list[str]:
        """Remember items with the vectors that they have; those without one are embedded.

        Raises InvalidInput for vectors that are not of the collection's space.
        """
        return await self.batch_store(items, **whose)

    async def update(self, memory_id: str, content: str | None = None, **given: Unpack[Beside]) -> bool:
        """Change a memory, which keeps its id; whether there was one.

        Of the metadata those named are changed, None takes one away. What it was is kept as a version.
        """
        whose, changes = divided(given)
        scope, metadata = scope_of(self.scope, whose), changes.pop("metadata", None)
        stored = await self._find(memory_id, scope)
        if stored is None:
            return False
        if unknown := changes.keys() - CHANGES.keys() - {"entities", "fact"}:
            raise InvalidInput(min(unknown), "can only be given when a memory is added")
        if content is not None:
            changes["content"] = content
        fields: dict[str, Any] = {CHANGES[name]: value for name, value in changes.items() if name in CHANGES}
        if "entities" in changes:
            fields["entities"] = names_of(changes["entities"])
        if changes.get("fact") is not None:
            fields["fact"] = fact_of(changes["fact"])
        if metadata is not None:
            merged = {**stored.metadata, **metadata}
            fields["metadata"] = {name: value for name, value in merged.items() if value is not None}
        self.desk.home.written += 1
        try:
            await self.desk.run(lambda engine: engine.memory.update(memory_id, **self._at(scope), **fields))
        except NotFound:
            return False
        return True

    async def batch_update(self, changes: Iterable[Mapping[str, Any]], **whose: Unpack[AgentScope]) -> int:
        """Change many: dictionaries with an `id` and what `update` takes; how many there were."""
        done = 0
        for each in changes:
            if not isinstance(each.get("id"), str):
                raise InvalidInput("id", "is missing: each change needs the id of its memory")
            done += await self.update(each["id"], **{**whose, **{k: v for k, v in each.items() if k != "id"}})
        return done

    async def batch_delete(self, memory_ids: Iterable[str], **whose: Unpack[AgentScope]) -> int:
        """Delete many, pinned ones too, and say how many there were."""
        ids = tuple(memory_ids)
        scope = scope_of(self.scope, whose)
        return (await self._forget(MemorySelection(ids=ids), scope)).memories if ids else 0

    async def forget(
        self,
        memory_id: str | EllipsisType = ...,
        *,
        days_old: float | EllipsisType = ...,
        before: datetime | str | EllipsisType = ...,
        pinned: bool = False,
        **whose: Unpack[AgentScope],
    ) -> int:
        """Delete one memory, or those older than so many days, or all of a conversation or user.

        How many there were: 0 for an id that is unknown to the scope. By age pinned ones stay, unless
        `pinned` says otherwise. Raises ValueError for a negative age, and InvalidInput where nothing is said,
        also where None is given for an id or an age: that must not come to mean everything.
        """
        scope = scope_of(self.scope, whose)
        if memory_id is not ...:
            what = MemorySelection(ids=(_said("memory_id", memory_id),))
        elif days_old is not ...:
            what = MemorySelection(older_than_days=_age(days_old), pinned=pinned)
        elif before is not ...:
            what = MemorySelection(before=instant_of(_said("before", before)), pinned=pinned)
        elif any(each is not None for each in whose.values()):
            what = MemorySelection(everything=True, pinned=True)
        else:
            raise InvalidInput("forget", "give an id, a conversation, a user or an age; clear() deletes all")
        return (await self._forget(what, scope)).memories

    async def delete_conversation(self, conversation_id: str, **owner: Unpack[Owner]) -> int:
        """Delete a conversation with everything in it, and say how many memories there were."""
        return await self.forget(conversation_id=_said("conversation_id", conversation_id), **owner)

    async def clear(self, **whose: Unpack[AgentScope]) -> int:
        """Delete everything of the scope, and nothing else; how many memories there were."""
        what = MemorySelection(everything=True, pinned=True)
        return (await self._forget(what, scope_of(self.scope, whose))).memories

    async def prune(self, *, preview: bool = False, **whose: Unpack[AgentScope]) -> list[str]:
        """Delete what the retention of this context does not keep, and say which; pinned ones stay.

        With `preview` nothing is deleted. `retention_days` is an age, `max_memories` a number for all
        conversations of the scope together, of which the oldest go first; notes do not count.
        """
        scope = scope_of(self.scope, whose)
        gone: list[str] = []
        if self.retention.days is not None:
            what = MemorySelection(older_than_days=self.retention.days)
            gone += (await self._forget(what, scope, preview=preview)).ids
        if self.retention.max_count is not None:
            over = await self._beyond(scope, self.retention.max_count, frozenset(gone if preview else ()))
            if over and not preview:
                await self._forget(MemorySelection(ids=tuple(over)), scope)
            gone += over
        return gone

    async def retrieve(self, query: str, max_results: int = 5, **asking: Unpack[AgentQuery]) -> Told:
        """The memories that answer a question, best first, with what their scores are made of.

        They cost at most `max_tokens` together (None: any number), by default the token limit; only the best
        one is given in any case by default.
        """
        scope, options = scope_asked(asking, self.scope), query_options(max_results, asking)
        return self.within(await self.recalled(query, scope, options), asking)

    async def search(self, query: str, limit: int = 10, **asking: Unpack[AgentQuery]) -> Told:
        """The same under another name."""
        return await self.retrieve(query, limit, **asking)

    async def find_similar(self, content: str, limit: int = 5, **whose: Unpack[AgentScope]) -> Told:
        """Memories that are like a text, or like the memory of that id, which is left out."""
        scope = scope_of(self.scope, whose)
        stored = await self._find(content, scope)
        text = content if stored is None else stored.text
        found = await self.recalled(text[:MAX_LIMIT], scope, query_options(limit + 1, {}))
        return [each for each in found if stored is None or each["id"] != stored.id][:limit]

    async def recalled(self, query: str, scope: Scope, options: MemoryQueryOptions) -> Told:
        """The memories that answer a query, best first."""
        if not options["limit"]:
            return []
        given: MemoryQueryOptions = {**options, "collection": self.desk.collection}
        await self.wait_until_embedded()
        found = await self.desk.run(lambda engine: engine.memory.recall(query, scope=scope, **given))
        answers = [recalled(each) for each in found.memories]
        if answers and options.get("as_of") is None:
            last = {each.id for each in await self._short_term(scope)}
            for each in answers:
                if each["id"] in last:
                    each["source"], each["sources"] = SHORT, [SHORT, *each["sources"]]
        return answers

    async def wait_until_embedded(self) -> None:
        """Wait until what was stored here is embedded; without an embedder it is found by its words alone."""
        place = self.desk.home
        written = place.written
        if place.embedded < written:
            with suppress(ProviderError):
                await self.flush()
            place.embedded = max(place.embedded, written)

    def within(self, found: Told, asking: AgentQuery) -> Told:
        """Those that fit into so many tokens together, whole, the first ones first."""
        allowed = asking.get("max_tokens", self.token_limit)
        if allowed is None:
            return found
        left, kept = number("max_tokens", allowed, 0), []
        for rank, each in enumerate(found):
            cost = self._count(each["content"])
            if (cost <= left and left) or (rank == 0 and "max_tokens" not in asking):
                kept.append(each)
                left -= cost
        return kept

    async def apply_retention(self, *, preview: bool = False, **whose: Unpack[AgentScope]) -> dict[str, Any]:
        """Carry out the retention of this context now, and say what went; with `preview`, what would."""
        gone = await self.prune(preview=preview, **whose)
        return {"deleted": 0 if preview else len(gone), "ids": gone, "preview": preview}

    async def retain(self, **whose: Unpack[AgentScope]) -> None:
        """Have the store itself keep to this retention from now on, on its own schedule.

        There `max_memories` counts for each conversation. Without a retention, one that it keeps ends.
        """
        scope = scope_of(self.scope, whose)
        rule = self.retention
        if rule == Retention():
            await self.desk.run(lambda engine: engine.retention.delete(**self._at(scope)))
        else:
            await self.desk.run(lambda engine: engine.retention.set(rule, **self._at(scope)))

    async def flush(self) -> int:
        """Wait until everything is found by meaning too, and say how many passages came meanwhile."""
        return await self.desk.run(
            lambda engine: engine.documents.wait_until_embedded(collection=self.desk.collection)
        )

    async def health(self) -> dict[str, Any]:
        """Whether the store can be read, and how much waits to be found by meaning. Raises what is wrong."""
        numbers = await self._numbers(self.scope)
        return {"status": "ok", "memories": numbers["memories"], "pending": numbers["pending"]}

    async def _prune_short_term_memory(self, **whose: Unpack[AgentScope]) -> int:
        """How many turns stand behind the short term now; they stay in the long term.

        Which turns these are follows from the two limits at every look: there is nothing to carry out.
        """
        turns = await self._count_where(scope_of(self.scope, whose), TURN)
        return turns - len(await self.short_term(**whose))

    async def export(self, **whose: Unpack[AgentScope]) -> list[str]:
        """All memories as lines of JSON."""
        return [each async for each in self._lines(scope_of(self.scope, whose))]

    async def export_to(self, path: str | Path, **whose: Unpack[AgentScope]) -> int:
        """Write all memories into a file, and say how many they are."""
        return await write_lines(Path(path), self._lines(scope_of(self.scope, whose)))

    async def import_memories(self, given: str | Path | Iterable[str], **whose: Unpack[AgentScope]) -> int:
        """Import such a file, or such lines, and say how many memories came or changed.

        They become memories of this scope, whosever they were, and a memory that is there already is not
        doubled. Raises InvalidInput for a line that cannot be read, and for a pickle.
        """
        scope = scope_of(self.scope, whose)
        lines = await to_thread(read_lines, Path(given)) if isinstance(given, str | Path) else list(given)
        self.desk.home.written += 1
        done = await self.desk.run(lambda engine: engine.memory.import_lines(lines, **self._at(scope)))
        return sum(each.outcome != "unchanged" for each in done)

    async def save(self, folder: str | Path, **whose: Unpack[AgentScope]) -> int:
        """Write all memories into a folder, which is made, and say how many they are."""
        place = Path(folder)
        await to_thread(place.mkdir, parents=True, exist_ok=True)
        return await self.export_to(place / MEMORIES, **whose)

    async def load(self, folder: str | Path, **whose: Unpack[AgentScope]) -> int:
        """Import what `save` wrote, and say how many memories came or changed."""
        return await self.import_memories(Path(folder) / MEMORIES, **whose)

    async def backup(self, folder: str | Path, **whose: Unpack[AgentScope]) -> Path:
        """Save into a new folder below this one, named after the time, and say where that is."""
        place = Path(folder) / f"memory-{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
        await self.save(place, **whose)
        return place

    async def _beyond(self, scope: Scope, most: int, gone: frozenset[str]) -> list[str]:
        """The ids of the oldest turns that are more than so many, not counting those that are gone."""
        excess = await self._count_where(scope, COUNTED) - len(gone) - most
        over: list[str] = []
        if excess <= 0:
            return over
        async for each in self._walk(scope, COUNTED):
            if each.id not in gone:
                over.append(each.id)
            if len(over) == excess:
                break
        return over

    async def _forget(self, what: MemorySelection, scope: Scope, *, preview: bool = False) -> MemoryReceipt:
        return await self.desk.run(
            lambda engine: engine.memory.forget(what, **self._at(scope), dry_run=preview)
        )

    async def _store(self, items: list[tuple[str, dict[str, Any]]]) -> list[MemoryWritten]:
        """Store in order; neighbors of one scope go together."""
        done: list[MemoryWritten] = []
        for scope, batch in _runs(self.scope, items):
            done += await self._remember(batch, scope)
            await self._keep_to_retention(scope)
        return done

    async def _remember(self, batch: list[NewMemory], scope: Scope) -> Sequence[MemoryWritten]:
        self.desk.home.written += 1
        return await self.desk.run(lambda engine: engine.memory.add(batch, **self._at(scope)))

    async def _keep_to_retention(self, scope: Scope) -> None:
        if self.retention != Retention():
            await self.prune(user_id=scope.user, agent_id=scope.agent, conversation_id=None)

    async def _lines(self, scope: Scope) -> AsyncIterator[str]:
        async for page in pages(self._export_page, scope):
            for line in page.lines:
                yield line

    async def _export_page(self, scope: Scope, after: str | None = None) -> MemoryExport:
        return await self.desk.run(lambda engine: engine.memory.export(**self._at(scope), after=after))


def _default_token_limit() -> int:
    given = context_token_limit()
    return Settings().recent_memory_tokens if given is None else given


def _retention(days: float | None, most: int | None) -> Retention:
    if days is not None and days < 0:
        raise InvalidInput("retention_days", "must not be negative")
    return Retention(days, None if most is None else number("max_memories", most, 0))


def _runs(default: Scope, items: list[tuple[str, dict[str, Any]]]) -> list[tuple[Scope, list[NewMemory]]]:
    runs: list[tuple[Scope, list[NewMemory]]] = []
    for content, given in items:
        whose, beside = divided(given)
        scope = scope_of(default, whose)
        if not runs or runs[-1][0] != scope:
            runs.append((scope, []))
        runs[-1][1].append(new_memory(content, beside, scope))
    return runs


def _said(name: str, value: T) -> T:
    """What is given, if anything is: None must not come to mean everything. Raises InvalidInput."""
    if value is None:
        raise InvalidInput(name, "is None; leave it out or give a value")
    return value


def _age(days: float) -> float:
    if _said("days_old", days) < 0:
        raise ValueError("days_old must not be negative")
    return days
