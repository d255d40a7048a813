"""Entity mentions in passages."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    select,
    union,
    update,
)

from conspectus.model.graph import EntityCount
from conspectus.model.ids import ChunkId, CollectionId, SourceId
from conspectus.model.memory import fact_ends, stored_entities
from conspectus.model.records import Mention
from conspectus.ports.graphs import SUBJECT, Mentioned, TextPassage, Unread
from conspectus.records.core.collections import state
from conspectus.records.core.dialects import json_list, json_pairs, numbered_list_table
from conspectus.records.core.inline import MAX_INLINE_ROWS
from conspectus.records.core.name_lookup import in_list, select_rare, split_by_cost
from conspectus.records.core.rows import mention_values
from conspectus.records.core.statements import (
    IDS,
    execute_in_blocks,
    fetch_in_blocks,
    fetch_rows,
    insert_rows,
)
from conspectus.records.core.store_methods import SqlStore, cached, reading, writing
from conspectus.records.tables.core import chunks, collections, documents
from conspectus.records.tables.graph import IS_ABOUT, mentions

LAST_CHARACTER = chr(0x10FFFF)

_IN_COLLECTION = mentions.c.collection == bindparam("of")
_MENTIONS_OF_CHUNKS = select(mentions.c.chunk, mentions.c.key, mentions.c.surface, mentions.c.type).where(
    mentions.c.chunk.in_(IDS)
)
_OWNERS = (
    select(chunks.c.id, documents.c.collection, documents.c.source)
    .join(documents, documents.c.number == chunks.c.document)
    .join(collections, collections.c.id == documents.c.collection)
    .where(chunks.c.id.in_(IDS), collections.c.names_to.is_not(None))
)
_IS_FIRST_CHUNK = chunks.c.position == 0
_REMEMBERED = and_(_IS_FIRST_CHUNK, documents.c.kind.in_(("memory", "version")))
# A scalar subquery bounds the index scan; with a join, PostgreSQL scans everything read so far.
_READ_TO = select(collections.c.names_to).where(collections.c.id == bindparam("of")).scalar_subquery()
_NOT_READ = (
    select(
        chunks.c.id,
        case((_IS_FIRST_CHUNK, documents.c.title), else_=""),
        chunks.c.text,
        case((_REMEMBERED, documents.c.metadata), else_="{}"),
    )
    .join(documents, documents.c.number == chunks.c.document)
    .where(
        documents.c.collection == bindparam("of"),
        documents.c.last_chunk > _READ_TO,
        chunks.c.id > _READ_TO,
    )
)
_COLLECTION = collections.c.id == bindparam("of")
_ADVANCE_READ_TO = update(collections).where(_COLLECTION, collections.c.names_to < bindparam("up_to"))


def _select_passages(*, within: bool, by_name: bool = False) -> CompoundSelect[Any]:
    """Return all passages that mention rare names, and those about names that are not too frequent.

    Mentions are counted up to the first that is one too many.
    """

    def in_scope(table: FromClause) -> list[ColumnElement[bool]]:
        inside = [in_list(table.c.source, "sources", by_name=by_name)] if within else []
        return [table.c.collection == bindparam("of"), *inside]

    def count_mentions(key: ColumnElement[str], of: FromClause, most: str) -> ScalarSelect[int]:
        other_mentions = mentions.alias()
        first = (
            select(other_mentions.c.chunk)
            .where(other_mentions.c.key == key, *in_scope(other_mentions))
            .limit(bindparam(most))
        )
        return select(func.count()).select_from(first.correlate(of).subquery("counted")).scalar_subquery()

    names_with_limits = numbered_list_table("ids")
    is_rare = and_(
        names_with_limits.c.number > 0,
        count_mentions(names_with_limits.c.value, names_with_limits, "many") <= names_with_limits.c.number,
    )
    is_about_any = exists().where(IS_ABOUT, *in_scope(mentions)).correlate(None)
    keys = select(names_with_limits.c.value.label("key"))
    # Otherwise SQLite might read the whole collection first.
    rare_names, all_names = (
        keys.where(condition).cte(cte_name).prefix_with("MATERIALIZED")
        for cte_name, condition in (("rare", is_rare), ("asked", is_about_any))
    )
    columns = select(mentions.c.key, mentions.c.chunk, mentions.c.type).where(*in_scope(mentions))
    about = columns.join(all_names, all_names.c.key == mentions.c.key).where(
        IS_ABOUT, count_mentions(mentions.c.key, mentions, "too_many") < bindparam("too_many")
    )
    return union(columns.join(rare_names, rare_names.c.key == mentions.c.key), about)


_PASSAGES = _select_passages(within=False)
_PASSAGES_WITHIN = {by_name: _select_passages(within=True, by_name=by_name) for by_name in (False, True)}
_RARE_NAMES = select_rare(mentions.c.key, _IN_COLLECTION)


def _names_in_passages(connection: Connection, chunks: Sequence[ChunkId]) -> list[TextPassage]:
    """Return the mentions in these passages, without passages that have none."""
    names: dict[int, dict[str, str]] = {}
    about: dict[int, set[str]] = {}
    for chunk, key, surface, kind in fetch_in_blocks(connection, _MENTIONS_OF_CHUNKS, chunks):
        names.setdefault(chunk, {})[key] = surface
        if kind == SUBJECT:
            about.setdefault(chunk, set()).add(key)
    return [
        TextPassage(chunk, names[chunk], frozenset(about.get(chunk, ())))
        for chunk in dict.fromkeys(chunks)
        if chunk in names
    ]


def _names_by_key(
    connection: Connection, keys: Sequence[tuple[Any, ChunkId]]
) -> dict[tuple[Any, ChunkId], TextPassage | None]:
    by_chunk = {
        passage.chunk: passage for passage in _names_in_passages(connection, [chunk for _, chunk in keys])
    }
    return {key: by_chunk.get(key[1]) for key in keys}


def _passages(
    connection: Connection,
    sources: Sequence[SourceId] | None,
    collection: CollectionId,
    keys: Mapping[str, int],
    *,
    maximum: int,
) -> dict[str, Mentioned]:
    # Counting stops at one more than is allowed.
    base_parameters = {"of": collection, "too_many": maximum + 1, "many": max(keys.values(), default=0) + 1}

    def to_parameter(part: Iterable[str]) -> str:
        return json_pairs({key: min(keys[key], maximum) for key in part})

    if sources is None:
        rows = fetch_rows(connection, _PASSAGES, {**base_parameters, "ids": to_parameter(keys)})
    else:
        rows = []
        parts = split_by_cost(connection, _RARE_NAMES, keys, sources, to_parameter, of=collection)
        for by_name, parameters in parts:
            rows += fetch_rows(connection, _PASSAGES_WITHIN[by_name], {**base_parameters, **parameters})
    chunks_by_key: dict[str, list[ChunkId]] = {}
    about: dict[str, list[ChunkId]] = {}
    for key, chunk, kind in rows:
        chunks_by_key.setdefault(key, []).append(ChunkId(chunk))
        if kind == SUBJECT:
            about.setdefault(key, []).append(ChunkId(chunk))
    return {
        key: Mentioned(tuple(sorted(chunks_by_key[key])), frozenset(about.get(key, ())))
        for key in keys
        if key in chunks_by_key
    }


def _counts(
    connection: Connection,
    sources: Sequence[SourceId] | None,
    collection: CollectionId,
    *,
    begins: str,
    limit: int,
) -> list[EntityCount]:
    conditions: list[ColumnElement[bool]] = [_IN_COLLECTION]
    parameters: dict[str, str] = {"of": collection}
    if sources is not None:
        conditions.append(in_list(mentions.c.source, "sources", by_name=False))
        parameters["sources"] = json_list(sorted(set(sources)))
    if begins:
        conditions += [mentions.c.key >= begins, mentions.c.key < begins + LAST_CHARACTER]
    total = func.count().label("total")
    by_key = select(mentions.c.key, total).where(*conditions).group_by(mentions.c.key)
    ordered = by_key.order_by(total.desc(), mentions.c.key).limit(limit)
    totals = {row.key: row.total for row in connection.execute(ordered, parameters)}
    spellings = _spellings(connection, conditions, parameters, totals)
    return [EntityCount(key, *spellings[key], passages=number) for key, number in totals.items()]


def _spellings(
    connection: Connection,
    conditions: Sequence[ColumnElement[bool]],
    parameters: Mapping[str, str],
    keys: Iterable[str],
) -> dict[str, tuple[str, str]]:
    """Return the most frequent spelling and type of each name; titles count least."""
    columns = (mentions.c.key, mentions.c.surface, mentions.c.type)
    query = select(*columns, func.count().label("total")).where(*conditions, mentions.c.key.in_(IDS))
    grouped = query.group_by(*columns)
    best: dict[str, tuple[tuple[bool, int, str], tuple[str, str]]] = {}
    for key, surface, kind, total in fetch_in_blocks(connection, grouped, keys, **parameters):
        rank = (kind != SUBJECT, total, surface)
        if key not in best or rank > best[key][0]:
            best[key] = (rank, (surface, kind))
    return {key: spelling for key, (_, spelling) in best.items()}


def _put(
    connection: Connection, collection: CollectionId, mentions_by_chunk: Mapping[ChunkId, Sequence[Mention]]
) -> int:
    owners = fetch_in_blocks(connection, _OWNERS, sorted(mentions_by_chunk))
    sources = {row.id: row.source for row in owners if row.collection == collection}
    execute_in_blocks(connection, delete(mentions).where(mentions.c.chunk.in_(IDS)), sorted(sources))
    rows = [
        mention_values(mention, chunk, collection, sources[chunk])
        for chunk in sorted(sources)
        for mention in _first_mentions(mentions_by_chunk[chunk])
    ]
    insert_rows(connection, mentions, rows)
    if sources:
        last = max(sources)
        connection.execute(_ADVANCE_READ_TO.values(names_to=last), {"of": collection, "up_to": last})
    return len(rows)


def _first_mentions(passage_mentions: Sequence[Mention]) -> Iterable[Mention]:
    """Return the first mention of each name; mentions in the title come first."""
    first: dict[str, Mention] = {}
    for mention in sorted(passage_mentions, key=lambda mention: (mention.type != SUBJECT, mention.start)):
        first.setdefault(mention.key, mention)
    return first.values()


def _unread(connection: Connection, collection: CollectionId, *, limit: int) -> list[Unread]:
    ordered = _NOT_READ.order_by(documents.c.last_chunk, chunks.c.position).limit(limit)
    rows = connection.execute(ordered, {"of": collection})
    passages = [(chunk, title, text, json.loads(metadata)) for chunk, title, text, metadata in rows]
    return [
        Unread(ChunkId(chunk), title, text, fact_ends(metadata), stored_entities(metadata))
        for chunk, title, text, metadata in passages
    ]


def _has_unread(connection: Connection, collection: CollectionId) -> bool:
    any_row: Select[Any] = _NOT_READ.with_only_columns(literal_column("1"), maintain_column_froms=True)
    return connection.execute(any_row.limit(1), {"of": collection}).first() is not None


def _count_unread(connection: Connection, collection: CollectionId) -> int:
    counted = _NOT_READ.with_only_columns(func.count(), maintain_column_froms=True)
    total: int = connection.execute(counted, {"of": collection}).scalar_one()
    return total


def _enable(connection: Connection, collection: CollectionId, on: bool) -> None:
    state(connection, collection)
    if on:
        new = update(collections).where(_COLLECTION, collections.c.names_to.is_(None))
        connection.execute(new.values(names_to=0), {"of": collection})
        return
    connection.execute(update(collections).where(_COLLECTION).values(names_to=None), {"of": collection})
    connection.execute(delete(mentions).where(_IN_COLLECTION), {"of": collection})


class SqlNames(SqlStore):
    """The methods of the port `MentionStore`, each as one transaction."""

    async def of(self, passages: Sequence[ChunkId]) -> list[TextPassage]:
        keys = [(_names_in_passages, chunk) for chunk in dict.fromkeys(passages)]
        passages_by_key = await self.transactions.lookup(keys, _names_by_key, single=True)
        return [names for key in keys if (names := passages_by_key[key]) is not None]

    async def passages(
        self,
        sources: Sequence[SourceId] | None,
        collection: CollectionId,
        keys: Mapping[str, int],
        *,
        maximum: int,
    ) -> dict[str, Mentioned]:
        def work(connection: Connection) -> dict[str, Mentioned]:
            return _passages(connection, sources, collection, keys, maximum=maximum)

        return await self.transactions.read(work, few=sum(map(bool, keys.values())) <= MAX_INLINE_ROWS)

    counts = reading(_counts)
    put = writing(_put, locks=lambda collection, mentions_by_chunk: {collection})
    unread = reading(_unread)
    has_unread = cached(_has_unread, single=True)
    count_unread = reading(_count_unread)
    enable = writing(_enable, locks=lambda collection, on: {collection})
