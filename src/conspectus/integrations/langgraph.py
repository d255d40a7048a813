"""Conspectus for graphs made with LangGraph: a store of items that search finds, and a checkpointer.

    with conspectus.open("notes") as engine:
        graph = builder.compile(store=ConspectusStore(engine), checkpointer=ConspectusSaver(engine))

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from conspectus.bridge.engine_access import AnyEngineOrPath, access_to
from conspectus.bridge.engine_user import EngineUser, blocking_and_async
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.comparisons import COMPARISONS
from conspectus.integrations.one_source import Selection
from conspectus.integrations.texts import Text, Texts
from conspectus.integrations.values import Value, Values
from conspectus.model.filter import EVERYTHING, And, Between, Eq, Exists, Filter, In, Not
from conspectus.model.records import Document

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
        writes_sort_key,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as missing:
    raise MissingExtra("langgraph", "langgraph-checkpoint") from missing

__all__ = ["ConspectusSaver", "ConspectusStore"]
CheckpointId = tuple[str, str, str]
"""A thread, a namespace and a checkpoint."""
Facts = Mapping[str, Any]


class ConspectusSaver(EngineUser, BaseCheckpointSaver[int]):
    """Checkpoints of threads, in a source of a collection. No search finds them.

    A thread is a document; its checkpoints and writes are documents below it, encoded by `serde`. Pruning
    keeps all checkpoints of a namespace whose latest one is a difference to earlier ones (`DeltaChannel`).
    """

    def __init__(
        self,
        engine: AnyEngineOrPath = None,
        *,
        serde: SerializerProtocol | None = None,
        source: str = "checkpoints",
        collection: str = "langgraph-checkpoints",
    ) -> None:
        super().__init__(serde=serde)
        self._access = access_to(engine)
        self._values = Values(source, collection)

    def get_next_version(self, current: int | str | None, channel: None) -> Any:
        """Return the next version; in a thread copied from another checkpointer, versions are texts."""
        if isinstance(current, str):
            number, _, chance = current.partition(".")
            return f"{int(number) + 1:032}.{chance}"
        return super().get_next_version(current, channel)

    async def _put(
        self,
        engine: AnyEngine,
        /,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and return its config."""
        facts: Facts = {**get_checkpoint_metadata(config, metadata)}
        thread, namespace, before = _id_in(config)
        checkpoint_id = (thread, namespace, checkpoint["id"])
        delta = bool(facts.get("counters_since_delta_snapshot"))
        beside = {"before": before, "run": facts.get("run_id"), "delta": delta}
        await self._values.add(engine, [self._value(checkpoint_id, (), [checkpoint, facts], beside)])
        return _config(*checkpoint_id)

    async def _put_writes(
        self,
        engine: AnyEngine,
        /,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task. Stored ones are kept, but for errors, interrupts and the like."""
        checkpoint_id = _id_in(config)
        values = []
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            beside = {"task": task_id, "index": index, "channel": channel, "path": task_path}
            values.append(self._value(checkpoint_id, (task_id, index), value, beside))
        stored = await self._values.documents(engine, Selection([value.key for value in values]))
        final_keys = {row.key for row in stored if _fact(row, "channel") not in WRITES_IDX_MAP}
        await self._values.add(engine, [value for value in values if value.key not in final_keys])

    async def _get_tuple(self, engine: AnyEngine, /, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint: the latest one of its namespace if the config names none."""
        return next(iter(await self._find(engine, _config(*_id_in(config)), limit=1)), None)

    async def _find(
        self,
        engine: AnyEngine,
        config: RunnableConfig | None,
        *,
        filter: Facts | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Sequence[CheckpointTuple]:
        """Return checkpoints, newest first."""
        rows = await self._rows(engine, config)
        last = get_checkpoint_id(before) if before else None
        heads = [row for row in rows if _is_head(row) and (last is None or _newness(row) < last)]
        ids = [_id_of(row) for row in sorted(heads, key=_newness, reverse=True)]
        selected = set(ids if filter else ids[:limit])
        tuples = await self._tuples(engine, [row for row in rows if _id_of(row) in selected])
        return [head for head in tuples if (filter or {}).items() <= {**head.metadata}.items()][:limit]

    async def _delete_thread(self, engine: AnyEngine, thread_id: str) -> None:
        """Delete a thread with its checkpoints and writes."""
        await self._values.remove(engine, [_key(thread_id)])

    async def _delete_for_runs(self, engine: AnyEngine, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, with their writes."""
        runs = await self._values.documents(engine, Selection(filter=In(("run",), tuple(run_ids))))
        deleted = {_id_of(row) for row in runs}
        for thread in {checkpoint_id[0] for checkpoint_id in deleted}:
            rows = await self._rows(engine, _config(thread))
            await engine.documents.delete([row.id for row in rows if _id_of(row) in deleted])

    async def _copy_thread(self, engine: AnyEngine, source_thread_id: str, target_thread_id: str) -> None:
        """Copy the checkpoints and writes of a thread to another one."""
        rows = await self._rows(engine, _config(source_thread_id))
        encoded = await self._values.read(engine, rows)
        copies, target = [], target_thread_id
        for row in (stored for stored in rows if stored.id in encoded):
            key = _key(target, *json.loads(row.key)[1:])
            copies.append(Value(key, encoded[row.id], {**row.metadata, "thread": target}, _key(target)))
        await self._values.add(engine, copies)

    async def _prune(
        self, engine: AnyEngine, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Delete threads (`delete`), or all but the latest checkpoint of each namespace (`keep_latest`)."""
        if strategy not in {"delete", "keep_latest"}:
            raise InvalidInput("strategy", f"is {strategy!r:.80}; must be keep_latest or delete")
        for thread in thread_ids:
            if strategy == "delete":
                await self._delete_thread(engine, thread)
                continue
            rows = await self._rows(engine, _config(thread))
            latest = {_id_of(row)[1]: row for row in sorted(filter(_is_head, rows), key=_newness)}
            spare = [row for row in rows if _is_spare(row, latest.get(_id_of(row)[1]))]
            await engine.documents.delete([row.id for row in spare])

    put, aput = blocking_and_async(_put)
    put_writes, aput_writes = blocking_and_async(_put_writes)
    get_tuple, aget_tuple = blocking_and_async(_get_tuple)
    delete_thread, adelete_thread = blocking_and_async(_delete_thread)
    delete_for_runs, adelete_for_runs = blocking_and_async(_delete_for_runs)
    copy_thread, acopy_thread = blocking_and_async(_copy_thread)
    prune, aprune = blocking_and_async(_prune)
    _search, _asearch = blocking_and_async(_find)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; the options are `filter`, `before` and `limit`."""
        yield from self._search(config, **options)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """Asynchronous version of list."""
        for checkpoint in await self._asearch(config, **options):
            yield checkpoint

    def _value(
        self, checkpoint_id: CheckpointId, more: Sequence[str | int], value: object, beside: Facts
    ) -> Value:
        form, data = self.serde.dumps_typed(value)
        names = dict(zip(("thread", "namespace", "checkpoint"), checkpoint_id, strict=True))
        return Value(
            _key(*checkpoint_id, *more), data, {**names, "form": form, **beside}, _key(checkpoint_id[0])
        )

    async def _rows(self, engine: AnyEngine, config: RunnableConfig | None) -> Sequence[Document]:
        """Return the checkpoints and writes of a config, which may leave out namespace and checkpoint."""
        if config is None:
            return await self._values.documents(engine, Selection(filter=Exists(("checkpoint",))))
        namespace, checkpoint = config["configurable"].get("checkpoint_ns"), get_checkpoint_id(config)
        parts = [] if namespace is None else [Eq(("namespace",), namespace)]
        parts += [Eq(("checkpoint",), checkpoint)] if checkpoint else []
        selection = Selection(filter=And(tuple(parts)), below=_key(_id_in(config)[0]))
        return await self._values.documents(engine, selection)

    async def _tuples(self, engine: AnyEngine, rows: Sequence[Document]) -> Sequence[CheckpointTuple]:
        """Return checkpoints with their writes, newest first."""
        encoded = await self._values.read(engine, rows)
        stored = [row for row in rows if row.id in encoded]
        loaded = {
            str(row.id): self.serde.loads_typed((_fact(row, "form"), encoded[row.id])) for row in stored
        }
        writes: dict[CheckpointId, Sequence[Document]] = {}
        for row in sorted((row for row in stored if not _is_head(row)), key=_writes_order):
            writes[_id_of(row)] = [*writes.get(_id_of(row), ()), row]
        heads = sorted(filter(_is_head, stored), key=_newness, reverse=True)
        return [_tuple(head, writes.get(_id_of(head), ()), loaded) for head in heads]


def _key(*parts: str | int) -> str:
    return json.dumps(parts, ensure_ascii=False)


def _id_in(config: RunnableConfig) -> CheckpointId:
    options = config["configurable"]
    return str(options["thread_id"]), options.get("checkpoint_ns") or "", get_checkpoint_id(config) or ""


def _config(thread: str, namespace: str | None = None, checkpoint: str | None = None) -> RunnableConfig:
    named = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
    return {"configurable": named}


def _fact(row: Document, name: str) -> str:
    return str(row.metadata[name])


def _id_of(row: Document) -> CheckpointId:
    return _fact(row, "thread"), _fact(row, "namespace"), _fact(row, "checkpoint")


def _newness(row: Document) -> str:
    return _fact(row, "checkpoint")


def _is_head(row: Document) -> bool:
    return "task" not in row.metadata


def _is_spare(row: Document, latest: Document | None) -> bool:
    return latest is not None and not latest.metadata["delta"] and _newness(row) != _newness(latest)


def _writes_order(row: Document) -> tuple[str, str, int]:
    return writes_sort_key(_fact(row, "path"), _fact(row, "task"), int(_fact(row, "index")))


def _tuple(head: Document, writes: Sequence[Document], loaded: Facts) -> CheckpointTuple:
    checkpoint_id, before = _id_of(head), _fact(head, "before")
    checkpoint, metadata = loaded[head.id]
    return CheckpointTuple(
        config=_config(*checkpoint_id),
        checkpoint=checkpoint,
        metadata=metadata,
        parent_config=_config(*checkpoint_id[:2], before) if before else None,
        pending_writes=[(_fact(row, "task"), _fact(row, "channel"), loaded[row.id]) for row in writes],
    )


OPERATORS = {"$eq": "==", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
"""Operators of a filter, by their names in the other libraries."""
Namespace = tuple[str, ...]
AnyItem = TypeVar("AnyItem", bound=Item)


class ConspectusStore(EngineUser, BaseStore):
    """Items by namespace and key, in a source of a collection. Keyword and vector search find their texts.

    `fields` are the paths of the texts that are indexed (`$`: the whole value). The collection's embedding
    model makes the vectors. A value has at most the size of a document's metadata, 64 KiB by default.
    """

    def __init__(
        self,
        engine: AnyEngineOrPath = None,
        *,
        fields: Sequence[str] = ("$",),
        source: str = "items",
        collection: str = "langgraph",
    ) -> None:
        self._access = access_to(engine)
        self._fields = fields
        self._texts = Texts(source, collection)

    async def _batch(self, engine: AnyEngine, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see what was stored before; of writes to the same key, the last one holds."""
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        read = [None if isinstance(op, PutOp) else await self._read(engine, op) for op in operations]
        puts = {_key(*op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        texts = [self._as_text(key, op) for key, op in puts.items() if op.value is not None]
        await self._texts.add(engine, texts)
        await self._texts.remove(engine, puts.keys() - {text.id for text in texts})
        return read

    batch, abatch = blocking_and_async(_batch)

    async def _read(self, engine: AnyEngine, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(engine, op)
        if isinstance(op, SearchOp):
            return await self._search(engine, op)
        documents = await self._texts.documents(engine, Selection([_key(*op.namespace, op.key)]))
        return _item(Item, documents[0]) if documents else None

    async def _search(self, engine: AnyEngine, op: SearchOp) -> list[SearchItem]:
        if min(op.offset, op.limit) < 0:
            raise InvalidInput("limit", "and offset must be at least 0")
        last = op.offset + op.limit if op.limit else 0
        parts = [_condition(("value", name), value) for name, value in (op.filter or {}).items()]
        selection = Selection(filter=And((_below(op.namespace_prefix), *parts)))
        if not op.query:
            documents = await self._texts.documents(engine, selection, last)
            return [_item(SearchItem, document) for document in documents[op.offset :]]
        matches = await self._texts.search(engine, op.query, last, selection)
        hits = [(match.text.document, match.score) for match in matches[op.offset :]]
        return [_item(SearchItem, stored, score=score) for stored, score in hits if stored is not None]

    async def _namespaces(self, engine: AnyEngine, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        prefixes = [(*match.path, "*") for match in conditions if match.match_type == "prefix"]
        first = [_below(path[: path.index("*")]) for path in prefixes]
        documents = await self._texts.documents(engine, Selection(filter=And(tuple(first))))
        namespaces = {tuple(str(row.metadata["namespace"]).split(".")[:-1]) for row in documents}
        matching = [
            name for name in namespaces if all(_matches_condition(match, name) for match in conditions)
        ]
        cut = sorted({name[: op.max_depth] for name in matching})
        return cut[op.offset : op.offset + op.limit]

    def _as_text(self, key: str, op: PutOp) -> Text:
        paths = self._fields if op.index is None else op.index or ()
        texts = chain.from_iterable(get_text_at_path(op.value, path) for path in paths)
        namespace = ".".join((*op.namespace, ""))
        return Text(key, "\n".join(texts), {"namespace": namespace, "key": op.key, "value": op.value})


def _item(kind: Callable[..., AnyItem], stored: Document, **more: float) -> AnyItem:
    metadata = stored.metadata
    namespace = tuple(str(metadata["namespace"]).split(".")[:-1])
    return kind(
        namespace=namespace,
        key=metadata["key"],
        value=metadata["value"],
        created_at=stored.recorded,
        updated_at=stored.updated,
        **more,
    )


def _below(prefix: Namespace) -> Filter:
    """Return the filter of a namespace and those below it. `/` is the character after `.`."""
    start = ".".join(prefix)
    if prefix:
        return Between(("namespace",), f"{start}.", f"{start}/")
    return EVERYTHING


def _matches_condition(condition: MatchCondition, name: Namespace) -> bool:
    size = len(condition.path)
    compared = name[:size] if condition.match_type == "prefix" else name[len(name) - size :]
    return len(name) >= size and all(
        want in ("*", label) for want, label in zip(condition.path, compared, strict=True)
    )


def _condition(path: tuple[str, ...], condition: object) -> Filter:
    """Return a filter of LangGraph as one of Conspectus. Raises InvalidInput."""
    if condition is None:
        return Not(Exists(path))
    if not isinstance(condition, Mapping):
        return COMPARISONS["=="](path, condition)
    if not any(name.startswith("$") for name in condition):
        return And((Exists(path), *(_condition((*path, name), value) for name, value in condition.items())))
    for name in condition.keys() - OPERATORS:
        raise InvalidInput("filter", f"{name!r:.80} is not one of {', '.join(OPERATORS)}")
    return And(tuple(COMPARISONS[OPERATORS[name]](path, value) for name, value in condition.items()))
