"""Conspectus for graphs made with LangGraph: a store of items that search finds, and a checkpointer.

    with conspectus.open("notes") as engine:
        graph = builder.compile(store=ConspectusStore(engine), checkpointer=ConspectusSaver(engine))

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.event_loop import Closing, Given, both, calls_to
from conspectus.integrations.langgraph_checkpoints import ConspectusSaver, key_of
from conspectus.integrations.texts import COMPARISONS, Selection, Text, Texts
from conspectus.model.filter import EVERYTHING, And, Between, Exists, Filter, Not
from conspectus.model.records import Document

try:
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
OPERATORS = {"$eq": "==", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
"""Operators of a filter, by their names in the other libraries."""
Namespace = tuple[str, ...]
AnyItem = TypeVar("AnyItem", bound=Item)


class ConspectusStore(Closing, BaseStore):
    """Items by namespace and key, in a source of a collection. Keyword and vector search find their texts.

    `fields` are the paths of the texts that are indexed (`$`: the whole value). The collection's embedding
    model makes the vectors. A value has at most the size of a document's metadata, 64 KiB by default.
    """

    def __init__(
        self,
        engine: Given = None,
        *,
        fields: Sequence[str] = ("$",),
        source: str = "items",
        collection: str = "langgraph",
    ) -> None:
        self._calls = calls_to(engine)
        self._fields = fields
        self._texts = Texts(source, collection)

    async def _batch(self, engine: AnyEngine, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see what was stored before; of writes to the same key, the last one holds."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        read = [None if isinstance(op, PutOp) else await self._read(engine, op) for op in asked]
        puts = {key_of(*op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        kept = [self._text(key, op) for key, op in puts.items() if op.value is not None]
        await self._texts.add(engine, kept)
        await self._texts.remove(engine, puts.keys() - {each.id for each in kept})
        return read

    batch, abatch = both(_batch)

    async def _read(self, engine: AnyEngine, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(engine, op)
        if isinstance(op, SearchOp):
            return await self._search(engine, op)
        found = await self._texts.documents(engine, Selection([key_of(*op.namespace, op.key)]))
        return _item(Item, found[0]) if found else None

    async def _search(self, engine: AnyEngine, op: SearchOp) -> list[SearchItem]:
        if min(op.offset, op.limit) < 0:
            raise InvalidInput("limit", "and offset must be at least 0")
        last = op.offset + op.limit if op.limit else 0
        parts = [_condition(("value", name), value) for name, value in (op.filter or {}).items()]
        selection = Selection(filter=And((_below(op.namespace_prefix), *parts)))
        if not op.query:
            documents = await self._texts.documents(engine, selection, last)
            return [_item(SearchItem, each) for each in documents[op.offset :]]
        found = await self._texts.search(engine, op.query, last, selection)
        hits = [(each.text.document, each.score) for each in found[op.offset :]]
        return [_item(SearchItem, stored, score=score) for stored, score in hits if stored is not None]

    async def _namespaces(self, engine: AnyEngine, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        fixed = [(*each.path, "*") for each in conditions if each.match_type == "prefix"]
        first = [_below(path[: path.index("*")]) for path in fixed]
        documents = await self._texts.documents(engine, Selection(filter=And(tuple(first))))
        named = {tuple(str(each.metadata["namespace"]).split(".")[:-1]) for each in documents}
        matching = [name for name in named if all(_fits(each, name) for each in conditions)]
        found = sorted({name[: op.max_depth] for name in matching})
        return found[op.offset : op.offset + op.limit]

    def _text(self, key: str, op: PutOp) -> Text:
        paths = self._fields if op.index is None else op.index or ()
        texts = chain.from_iterable(get_text_at_path(op.value, path) for path in paths)
        namespace = ".".join((*op.namespace, ""))
        return Text(key, "\n".join(texts), {"namespace": namespace, "key": op.key, "value": op.value})


def _item(kind: Callable[..., AnyItem], stored: Document, **more: float) -> AnyItem:
    known = stored.metadata
    namespace = tuple(str(known["namespace"]).split(".")[:-1])
    return kind(
        namespace=namespace,
        key=known["key"],
        value=known["value"],
        created_at=stored.recorded,
        updated_at=stored.updated,
        **more,
    )


def _below(prefix: Namespace) -> Filter:
    """Return the filter of a namespace and those below it. `/` is the character after `.`."""
    start = ".".join(prefix)
    return Between(("namespace",), f"{start}.", f"{start}/") if prefix else EVERYTHING


def _fits(condition: MatchCondition, name: Namespace) -> bool:
    size = len(condition.path)
    compared = name[:size] if condition.match_type == "prefix" else name[len(name) - size :]
    return len(name) >= size and all(
        want in ("*", label) for want, label in zip(condition.path, compared, strict=True)
    )


def _condition(path: tuple[str, ...], wanted: object) -> Filter:
    """Return a filter of LangGraph as one of Conspectus. Raises InvalidInput."""
    if wanted is None:
        return Not(Exists(path))
    if not isinstance(wanted, Mapping):
        return COMPARISONS["=="](path, wanted)
    if not any(name.startswith("$") for name in wanted):
        return And((Exists(path), *(_condition((*path, name), value) for name, value in wanted.items())))
    for name in wanted.keys() - OPERATORS:
        raise InvalidInput("filter", f"{name!r:.80} is not one of {', '.join(OPERATORS)}")
    return And(tuple(COMPARISONS[OPERATORS[name]](path, value) for name, value in wanted.items()))
