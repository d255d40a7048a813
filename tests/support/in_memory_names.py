"""Names that passages mention, held in memory: the plain meaning of the port."""

from collections import Counter
from collections.abc import Mapping, Sequence

from conspectus.errors import NotFound
from conspectus.model.graph import EntityCount
from conspectus.model.ids import ChunkId, CollectionId, SourceId
from conspectus.model.memory import fact_ends, stored_entities
from conspectus.model.records import Chunk, Document, Mention
from conspectus.ports import Records
from conspectus.ports.graphs import SUBJECT, Mentioned, MentionStore, TextPassage, Unread


class MemoryNames(MentionStore):
    """The port over any records, which it reads anew each time; it says what each method does."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._read_to: dict[CollectionId, int] = {}
        self._found: dict[ChunkId, dict[str, Mention]] = {}

    async def of(self, chunks: Sequence[ChunkId]) -> Sequence[TextPassage]:
        there = {row.chunk.id for row in await self._records.hydrate(list(chunks))}
        mentions_by_chunk = {
            chunk: self._found.get(chunk, {}) for chunk in dict.fromkeys(chunks) if chunk in there
        }
        return [
            TextPassage(
                chunk,
                {key: name.text for key, name in names.items()},
                frozenset(key for key, name in names.items() if name.type == SUBJECT),
            )
            for chunk, names in mentions_by_chunk.items()
            if names
        ]

    async def passages(
        self,
        sources: Sequence[SourceId] | None,
        collection: CollectionId,
        keys: Mapping[str, int],
        *,
        maximum: int,
    ) -> Mapping[str, Mentioned]:
        every = await self._within(sources, collection)
        mentions_by_key = {
            key: {chunk: names[key] for chunk, names in every.items() if key in names} for key in keys
        }
        about = {
            key: {chunk for chunk in where if where[chunk].type == SUBJECT}
            for key, where in mentions_by_key.items()
        }
        counted = {
            key: where if len(where) <= keys[key] else about[key] for key, where in mentions_by_key.items()
        }
        return {
            key: Mentioned(tuple(sorted(counted[key])), frozenset(about[key]))
            for key, where in mentions_by_key.items()
            if counted[key] and len(where) <= maximum
        }

    async def counts(
        self, sources: Sequence[SourceId] | None, collection: CollectionId, *, begins: str, limit: int
    ) -> Sequence[EntityCount]:
        spelt: dict[str, list[Mention]] = {}
        for names in (await self._within(sources, collection)).values():
            for key, name in names.items():
                if key.startswith(begins):
                    spelt.setdefault(key, []).append(name)
        ordered = sorted(spelt, key=lambda key: (-len(spelt[key]), key))[:limit]
        return [EntityCount(key, *_mostly(spelt[key]), passages=len(spelt[key])) for key in ordered]

    async def put(self, collection: CollectionId, mentions: Mapping[ChunkId, Sequence[Mention]]) -> int:
        stored = 0
        for row in await self._records.hydrate(list(mentions)):
            chunk = row.chunk.id
            if row.document.collection == collection and collection in self._read_to:
                self._found[chunk] = _first(mentions[chunk])
                self._read_to[collection] = max(self._read_to[collection], chunk)
                stored += len(self._found[chunk])
        return stored

    async def unread(self, collection: CollectionId, *, limit: int) -> Sequence[Unread]:
        return (await self._unread(collection))[:limit]

    async def has_unread(self, collection: CollectionId) -> bool:
        return bool(await self._unread(collection))

    async def count_unread(self, collection: CollectionId) -> int:
        return len(await self._unread(collection))

    async def enable(self, collection: CollectionId, on: bool) -> None:
        if await self._records.collection(collection) is None:
            raise NotFound("collection", collection)
        if on:
            self._read_to.setdefault(collection, 0)
            return
        self._read_to.pop(collection, None)
        for chunk in await self._within(None, collection):
            del self._found[chunk]

    async def _unread(self, collection: CollectionId) -> list[Unread]:
        if collection not in self._read_to:
            return []
        return [
            _unread(indexed.chunk, indexed.document)
            async for batch in self._records.reader(collection, None).scan()
            for indexed in batch
            if indexed.chunk.id > self._read_to[collection]
        ]

    async def _within(
        self, sources: Sequence[SourceId] | None, collection: CollectionId
    ) -> dict[ChunkId, dict[str, Mention]]:
        rows = await self._records.hydrate(sorted(self._found))
        return {
            row.chunk.id: self._found[row.chunk.id]
            for row in rows
            if row.document.collection == collection and (sources is None or row.document.source in sources)
        }


def _unread(chunk: Chunk, document: Document) -> Unread:
    if chunk.position:
        return Unread(chunk.id, "", chunk.text)
    metadata = document.metadata if document.kind in {"memory", "version"} else {}
    return Unread(chunk.id, document.title, chunk.text, fact_ends(metadata), stored_entities(metadata))


def _first(mentions: Sequence[Mention]) -> dict[str, Mention]:
    """The first mention of each name; one in the title comes before those in the text."""
    first: dict[str, Mention] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.type != SUBJECT, mention.start)):
        first.setdefault(mention.key, mention)
    return first


def _mostly(mentions: Sequence[Mention]) -> tuple[str, str]:
    """How a name is mostly spelt, and what it mostly is; a title tells that least of all."""
    counts = Counter((mention.text, mention.type) for mention in mentions)
    return max(counts, key=lambda spelling: (spelling[1] != SUBJECT, counts[spelling], spelling[0]))
