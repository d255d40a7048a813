"""An agent's memory: a short term, limited in turns and tokens, and an unlimited long term."""

from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import EllipsisType
from typing import Any, Final, TypeVar, Unpack

from conspectus.bootstrap import local_counter
from conspectus.errors import InvalidInput, NotFound, ProviderError
from conspectus.facades.agent.arguments import (
    SCOPE_KEYS,
    AgentScope,
    Owner,
    RecordList,
    StoredWith,
    instant_of,
    number,
    require_known,
    scope_of,
    split_arguments,
)
from conspectus.facades.agent.json_files import read_lines, write_lines
from conspectus.facades.agent.memory_items import (
    Document,
    MemoryItem,
    fact_of,
    hit_dict,
    names_of,
    new_memory,
    parse_item,
)
from conspectus.facades.agent.memory_reads import TURNS_ONLY, MemoryReads
from conspectus.facades.agent.named_options import with_named_options
from conspectus.facades.agent.parts import has_own_storage, storage_of
from conspectus.facades.agent.queries import MAX_QUERY_CHARACTERS, AgentQuery, query_options, query_scope
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

DEFAULT_SHORT_TERM_LIMIT: Final = 10
SHORT_TERM_SOURCE: Final = "short_term"
DEFAULT_TOKENIZER: Final = "o200k_base"


class MemoryOptions(AgentScope, total=False):
    """Options of an agent's memory.

    The short term is the last `short_term_limit` turns within `token_limit` tokens, counted by `tokenizer`
    (default: CONTEXT_TOKEN_LIMIT of the environment, or 2,000). Retention deletes memories older than
    `retention_days` and the oldest ones beyond `max_memories`. `collection` is the collection of the store.
    """

    token_limit: int | None
    short_term_limit: int
    retention_days: float | None
    max_memories: int | None
    tokenizer: str
    collection: str


MEMORY_DEFAULTS: Final[Mapping[str, Any]] = {
    "short_term_limit": DEFAULT_SHORT_TERM_LIMIT,
    "tokenizer": DEFAULT_TOKENIZER,
    "collection": MEMORY,
}
MEMORIES_FILE: Final = "memories.jsonl"
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
RETAINED: Final[Filter] = And((TURNS_ONLY, Not(Eq((PINNED,), True))))
"""Memories that retention may delete."""


class AsyncAgentMemory(MemoryReads):
    """Memories of a user, an agent and a conversation. Each call may name another scope.

    `vector_store` is a path, an engine of conspectus.open, connect or sync, another part of an agent's
    context, or None for a temporary store.
    """

    @with_named_options(MemoryOptions, MEMORY_DEFAULTS)
    def __init__(self, vector_store: Any = None, **options: Unpack[MemoryOptions]) -> None:
        require_known(options, frozenset(MemoryOptions.__annotations__))
        super().__init__(
            storage_of(vector_store, options.get("collection", MEMORY)),
            scope_of(Scope(), {name: option for name, option in options.items() if name in SCOPE_KEYS}),
            token_limit=number("token_limit", options.get("token_limit"), _default_token_limit()),
            short_term_limit=number(
                "short_term_limit", options.get("short_term_limit"), DEFAULT_SHORT_TERM_LIMIT
            ),
            tokenizer=options.get("tokenizer", DEFAULT_TOKENIZER),
        )
        self.owns = has_own_storage(vector_store)
        self._count = local_counter(self.tokenizer)
        self.retention = _retention(options.get("retention_days"), options.get("max_memories"))

    async def store(self, content: str, **options: Unpack[StoredWith]) -> str:
        """Store one text and return its id."""
        return (await self._store([(content, dict(options))]))[0].id

    async def batch_store(self, items: Iterable[Document], **options: Unpack[StoredWith]) -> list[str]:
        """Store texts, or dictionaries with `content`, and return their ids in order."""
        done = await self._store([parse_item(document, options) for document in items])
        return [memory.id for memory in done]

    async def store_vectors(self, items: Iterable[MemoryItem], **scope: Unpack[AgentScope]) -> list[str]:
        """Store items with their vectors; items without a vector are embedded.

        Raises InvalidInput for vectors of another size than the collection's.
        """
        return await self.batch_store(items, **scope)

    async def update(self, memory_id: str, content: str | None = None, **options: Unpack[StoredWith]) -> bool:
        """Change a memory, which keeps its id; return whether it exists.

        Given keys of the metadata are changed, None removes a key. The old state is stored as a version.
        """
        scope_options, changes = split_arguments(options)
        scope, metadata = scope_of(self.scope, scope_options), changes.pop("metadata", None)
        stored = await self._find(memory_id, scope)
        if stored is None:
            return False
        if unknown := changes.keys() - CHANGES.keys() - {"entities", "fact"}:
            raise InvalidInput(min(unknown), "can only be given when a memory is added")
        if content is not None:
            changes["content"] = content
        fields: dict[str, Any] = {
            CHANGES[name]: change for name, change in changes.items() if name in CHANGES
        }
        if "entities" in changes:
            fields["entities"] = names_of(changes["entities"])
        if changes.get("fact") is not None:
            fields["fact"] = fact_of(changes["fact"])
        if metadata is not None:
            merged = {**stored.metadata, **metadata}
            fields["metadata"] = {name: value for name, value in merged.items() if value is not None}
        self.storage.writes += 1
        try:
            await self.storage.run(
                lambda engine: engine.memory.update(memory_id, **self._address(scope), **fields)
            )
        except NotFound:
            return False
        return True

    async def batch_update(self, changes: Iterable[Mapping[str, Any]], **scope: Unpack[AgentScope]) -> int:
        """Apply dictionaries with `id` and arguments of `update`; return the number of existing memories."""
        done = 0
        for change in changes:
            if not isinstance(change.get("id"), str):
                raise InvalidInput("id", "is missing: each change needs the id of its memory")
            fields = {name: content for name, content in change.items() if name != "id"}
            done += await self.update(change["id"], **{**scope, **fields})
        return done

    async def batch_delete(self, memory_ids: Iterable[str], **scope_options: Unpack[AgentScope]) -> int:
        """Delete memories, pinned ones too, and return their number."""
        ids = tuple(memory_ids)
        scope = scope_of(self.scope, scope_options)
        return (await self._forget(MemorySelection(ids=ids), scope)).memories if ids else 0

    async def forget(
        self,
        memory_id: str | EllipsisType = ...,
        *,
        days_old: float | EllipsisType = ...,
        before: datetime | str | EllipsisType = ...,
        pinned: bool = False,
        **scope_options: Unpack[AgentScope],
    ) -> int:
        """Delete one memory, old ones, or all of a conversation or user, and return their number.

        An id outside the scope counts 0. By age, pinned memories are deleted only with `pinned`. Raises
        ValueError for a negative age, and InvalidInput without arguments or with None for an id or an age,
        which must not select everything, and for an empty id.
        """
        scope = scope_of(self.scope, scope_options)
        if memory_id is not ...:
            what = MemorySelection(ids=(_require("memory_id", memory_id),))
        elif days_old is not ...:
            what = MemorySelection(older_than_days=_check_age(days_old), pinned=pinned)
        elif before is not ...:
            what = MemorySelection(before=instant_of(_require("before", before)), pinned=pinned)
        elif any(part is not None for part in scope_options.values()):
            what = MemorySelection(everything=True, pinned=True)
        else:
            raise InvalidInput("forget", "give an id, a conversation, a user or an age; clear() deletes all")
        return (await self._forget(what, scope)).memories

    async def delete_conversation(self, conversation_id: str, **owner: Unpack[Owner]) -> int:
        """Delete all memories of a conversation and return their number."""
        return await self.forget(conversation_id=_require("conversation_id", conversation_id), **owner)

    async def clear(self, **scope: Unpack[AgentScope]) -> int:
        """Delete all memories of the scope and return their number."""
        what = MemorySelection(everything=True, pinned=True)
        return (await self._forget(what, scope_of(self.scope, scope))).memories

    async def prune(self, *, preview: bool = False, **scope_options: Unpack[AgentScope]) -> list[str]:
        """Apply the retention of this context and return the ids of the deleted memories.

        With `preview` nothing is deleted. `max_memories` counts all conversations of the scope together.
        Pinned memories and notes are not deleted.
        """
        scope = scope_of(self.scope, scope_options)
        gone: list[str] = []
        if self.retention.days is not None:
            what = MemorySelection(older_than_days=self.retention.days)
            gone += (await self._forget(what, scope, preview=preview)).ids
        if self.retention.max_count is not None:
            over = await self._oldest_beyond(
                scope, self.retention.max_count, frozenset(gone if preview else ())
            )
            if over and not preview:
                await self._forget(MemorySelection(ids=tuple(over)), scope)
            gone += over
        return gone

    async def retrieve(self, query: str, max_results: int = 5, **arguments: Unpack[AgentQuery]) -> RecordList:
        """Return the memories for a query, best first, with the parts of their scores.

        Together they have at most `max_tokens` (default: the token limit; None: unlimited). By default the
        best one is always returned.
        """
        scope, options = query_scope(arguments, self.scope), query_options(max_results, arguments)
        return self.within(await self.search_scope(query, scope, options), arguments)

    async def search(self, query: str, limit: int = 10, **arguments: Unpack[AgentQuery]) -> RecordList:
        """An alias of `retrieve`."""
        return await self.retrieve(query, limit, **arguments)

    async def find_similar(
        self, content: str, limit: int = 5, **scope_options: Unpack[AgentScope]
    ) -> RecordList:
        """Return memories that are similar to a text, or to a memory with that id; none for a blank text."""
        scope = scope_of(self.scope, scope_options)
        if not content.strip():
            return []
        stored = await self._find(content, scope)
        text = content if stored is None else stored.text
        memories = await self.search_scope(text[:MAX_QUERY_CHARACTERS], scope, query_options(limit + 1, {}))
        return [memory for memory in memories if stored is None or memory["id"] != stored.id][:limit]

    async def search_scope(self, query: str, scope: Scope, options: MemoryQueryOptions) -> RecordList:
        """Return the memories for a query in a scope, best first."""
        if not options["limit"]:
            return []
        recall_options: MemoryQueryOptions = {**options, "collection": self.storage.collection}
        await self.wait_until_embedded()
        retrieval = await self.storage.run(
            lambda engine: engine.memory.recall(query, scope=scope, **recall_options)
        )
        answers = [hit_dict(hit) for hit in retrieval.memories]
        if answers and options.get("as_of") is None:
            last = {memory.id for memory in await self._recent_turns(scope)}
            for answer in answers:
                if answer["id"] in last:
                    answer["source"], answer["sources"] = (
                        SHORT_TERM_SOURCE,
                        [SHORT_TERM_SOURCE, *answer["sources"]],
                    )
        return answers

    async def wait_until_embedded(self) -> None:
        """Wait until stored memories are embedded. Without an embedder only keyword search finds them."""
        writes = self.storage.writes
        if self.storage.embedded_writes < writes:
            with suppress(ProviderError):
                await self.flush()
            self.storage.embedded_writes = max(self.storage.embedded_writes, writes)

    def within(self, records: RecordList, arguments: AgentQuery) -> RecordList:
        """Return the first results that fit into the token limit together."""
        allowed = arguments.get("max_tokens", self.token_limit)
        if allowed is None:
            return records
        left, fitting = number("max_tokens", allowed, 0), []
        for rank, record in enumerate(records):
            cost = self._count(record["content"])
            if (cost <= left and left) or (rank == 0 and "max_tokens" not in arguments):
                fitting.append(record)
                left -= cost
        return fitting

    async def apply_retention(self, *, preview: bool = False, **scope: Unpack[AgentScope]) -> dict[str, Any]:
        """Apply the retention of this context and return the receipt; with `preview`, nothing is deleted."""
        gone = await self.prune(preview=preview, **scope)
        return {"deleted": 0 if preview else len(gone), "ids": gone, "preview": preview}

    async def retain(self, **scope_options: Unpack[AgentScope]) -> None:
        """Store this retention as a rule that the engine applies on its schedule.

        As a rule, `max_memories` counts each conversation. Without a retention, the stored rule is deleted.
        """
        scope = scope_of(self.scope, scope_options)
        rule = self.retention
        if rule == Retention():
            await self.storage.run(lambda engine: engine.retention.delete(**self._address(scope)))
        else:
            await self.storage.run(lambda engine: engine.retention.set(rule, **self._address(scope)))

    async def flush(self) -> int:
        """Wait until all memories are embedded and return the number of new vectors."""
        return await self.storage.run(
            lambda engine: engine.documents.wait_until_embedded(collection=self.storage.collection)
        )

    async def health(self) -> dict[str, Any]:
        """Return whether the store can be read and how many chunks are pending. Raises its errors."""
        numbers = await self._numbers(self.scope)
        return {"status": "ok", "memories": numbers["memories"], "pending": numbers["pending"]}

    async def _prune_short_term_memory(self, **scope: Unpack[AgentScope]) -> int:
        """Return the number of turns outside the short term; they remain in the long term.

        The short term is computed from both limits at each read, so there is nothing to delete.
        """
        turns = await self._count_where(scope_of(self.scope, scope), TURNS_ONLY)
        return turns - len(await self._recent_turns(scope_of(self.scope, scope)))

    async def export(self, **scope: Unpack[AgentScope]) -> list[str]:
        """Return all memories as lines of JSON."""
        return [line async for line in self._lines(scope_of(self.scope, scope))]

    async def export_to(self, path: str | Path, **scope: Unpack[AgentScope]) -> int:
        """Write all memories to a file and return their number."""
        return await write_lines(Path(path), self._lines(scope_of(self.scope, scope)))

    async def import_memories(
        self, options: str | Path | Iterable[str], **scope_options: Unpack[AgentScope]
    ) -> int:
        """Import a file or lines and return the number of new or changed memories.

        They are stored in this scope; importing a memory twice has no effect. Raises InvalidInput for an
        invalid line and for a pickle.
        """
        scope = scope_of(self.scope, scope_options)
        lines = (
            await to_thread(read_lines, Path(options)) if isinstance(options, str | Path) else list(options)
        )
        self.storage.writes += 1
        done = await self.storage.run(
            lambda engine: engine.memory.import_lines(lines, **self._address(scope))
        )
        return sum(memory.outcome != "unchanged" for memory in done)

    async def save(self, folder: str | Path, **scope: Unpack[AgentScope]) -> int:
        """Write all memories to a folder, which is created, and return their number."""
        target = Path(folder)
        await to_thread(target.mkdir, parents=True, exist_ok=True)
        return await self.export_to(target / MEMORIES_FILE, **scope)

    async def load(self, folder: str | Path, **scope: Unpack[AgentScope]) -> int:
        """Import a folder written by `save` and return the number of new or changed memories."""
        return await self.import_memories(Path(folder) / MEMORIES_FILE, **scope)

    async def backup(self, folder: str | Path, **scope: Unpack[AgentScope]) -> Path:
        """Save to a new subfolder named after the current time and return its path."""
        target = Path(folder) / f"memory-{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
        await self.save(target, **scope)
        return target

    async def _oldest_beyond(self, scope: Scope, maximum: int, gone: frozenset[str]) -> list[str]:
        """Return the ids of the oldest turns beyond `maximum`, without those in `gone`."""
        excess = await self._count_where(scope, RETAINED) - len(gone) - maximum
        over: list[str] = []
        if excess <= 0:
            return over
        async for memory in self._walk(scope, RETAINED):
            if memory.id not in gone:
                over.append(memory.id)
            if len(over) == excess:
                break
        return over

    async def _forget(self, what: MemorySelection, scope: Scope, *, preview: bool = False) -> MemoryReceipt:
        return await self.storage.run(
            lambda engine: engine.memory.forget(what, **self._address(scope), dry_run=preview)
        )

    async def _store(self, items: list[tuple[str, dict[str, Any]]]) -> list[MemoryWritten]:
        """Store items in order; consecutive items of one scope are stored together."""
        done: list[MemoryWritten] = []
        for scope, batch in _group_by_scope(self.scope, items):
            done += await self._remember(batch, scope)
            if self.retention != Retention():
                await self.prune(user_id=scope.user, agent_id=scope.agent, conversation_id=None)
        return done

    async def _remember(self, batch: list[NewMemory], scope: Scope) -> Sequence[MemoryWritten]:
        self.storage.writes += 1
        return await self.storage.run(lambda engine: engine.memory.add(batch, **self._address(scope)))

    async def _lines(self, scope: Scope) -> AsyncIterator[str]:
        async def read(after: str | None = None) -> MemoryExport:
            return await self.storage.run(
                lambda engine: engine.memory.export(**self._address(scope), after=after)
            )

        async for page in pages(read):
            for line in page.lines:
                yield line


def _default_token_limit() -> int:
    options = context_token_limit()
    return Settings().recent_memory_tokens if options is None else options


def _retention(days: float | None, maximum: int | None) -> Retention:
    if days is not None and days < 0:
        raise InvalidInput("retention_days", "must not be negative")
    return Retention(days, None if maximum is None else number("max_memories", maximum, 0))


def _group_by_scope(
    default: Scope, items: list[tuple[str, dict[str, Any]]]
) -> list[tuple[Scope, list[NewMemory]]]:
    runs: list[tuple[Scope, list[NewMemory]]] = []
    for content, options in items:
        scope_options, beside = split_arguments(options)
        scope = scope_of(default, scope_options)
        if not runs or runs[-1][0] != scope:
            runs.append((scope, []))
        runs[-1][1].append(new_memory(content, beside, scope))
    return runs


def _require(name: str, value: T) -> T:
    """Return a given value. Raises InvalidInput for None, which must not select everything."""
    if value is None:
        raise InvalidInput(name, "is None; leave it out or give a value")
    return value


def _check_age(days: float) -> float:
    if _require("days_old", days) < 0:
        raise ValueError("days_old must not be negative")
    return days
