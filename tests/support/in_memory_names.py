"""Names that passages mention, held in memory: the plain meaning of the port."""

from collections import Counter
from collections.abc import Mapping, Sequence

from conspectus.errors import NotFound
from conspectus.model.graph import EntityCount
from conspectus.model.ids import ChunkId, CollectionId, SourceId
from conspectus.model.memory import fact_ends, stored_entities
from conspectus.model.records import Chunk, Document, Mention
from conspectus.ports import Records
from conspectus.ports.graphs import SUBJECT, Mentioned, TextPassage, Unread


class MemoryNames:
    """A keeper of names beside any records, which it asks for what there is each time."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._read_to: dict[CollectionId, int] = {}
        self._found: dict[ChunkId, dict[str, Mention]] = {}

    async def of(self, chunks: Sequence[ChunkId]) -> Sequence[TextPassage]:
        """The names in these passages; those without any are left out."""
        there = {row.chunk.id for row in await self._records.hydrate(list(chunks))}
        found = {each: self._found.get(each, {}) for each in dict.fromkeys(chunks) if each in there}
        return [
            TextPassage(
                each,
                {key: name.text for key, name in names.items()},
                frozenset(key for key, name in names.items() if name.type == SUBJECT),
            )
            for each, names in found.items()
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
        """For each name the passages that mention it, as far as not too many do."""
        every = await self._within(sources, collection)
        found = {key: {each: names[key] for each, names in every.items() if key in names} for key in keys}
        about = {key: {each for each in where if where[each].type == SUBJECT} for key, where in found.items()}
        told = {key: where if len(where) <= keys[key] else about[key] for key, where in found.items()}
        return {
            key: Mentioned(tuple(sorted(told[key])), frozenset(about[key]))
            for key, where in found.items()
            if told[key] and len(where) <= maximum
        }

    async def counts(
        self, sources: Sequence[SourceId] | None, collection: CollectionId, *, begins: str, limit: int
    ) -> Sequence[EntityCount]:
        """The names that most passages mention, those whose key begins so."""
        spelt: dict[str, list[Mention]] = {}
        for names in (await self._within(sources, collection)).values():
            for key, name in names.items():
                if key.startswith(begins):
                    spelt.setdefault(key, []).append(name)
        ordered = sorted(spelt, key=lambda key: (-len(spelt[key]), key))[:limit]
        return [EntityCount(key, *_mostly(spelt[key]), passages=len(spelt[key])) for key in ordered]

    async def put(self, collection: CollectionId, found: Mapping[ChunkId, Sequence[Mention]]) -> int:
        """Store what passages mention in the place of what they did, and say how many names that is."""
        stored = 0
        for row in await self._records.hydrate(list(found)):
            chunk = row.chunk.id
            if row.document.collection == collection and collection in self._read_to:
                self._found[chunk] = _first(found[chunk])
                self._read_to[collection] = max(self._read_to[collection], chunk)
                stored += len(self._found[chunk])
        return stored

    async def unread(self, collection: CollectionId, *, limit: int) -> Sequence[Unread]:
        """Passages in which no name was looked for yet, oldest first."""
        return (await self._unread(collection))[:limit]

    async def has_unread(self, collection: CollectionId) -> bool:
        """Whether `unread` has any to give."""
        return bool(await self._unread(collection))

    async def count_unread(self, collection: CollectionId) -> int:
        """How many passages `unread` has still to give."""
        return len(await self._unread(collection))

    async def enable(self, collection: CollectionId, on: bool) -> None:
        """Have a collection's passages looked through from the first on, or no more. Raises NotFound."""
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
            _unread(each.chunk, each.document)
            async for batch in self._records.reader(collection, None).scan()
            for each in batch
            if each.chunk.id > self._read_to[collection]
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
    told = document.metadata if document.kind in {"memory", "version"} else {}
    return Unread(chunk.id, document.title, chunk.text, fact_ends(told), stored_entities(told))


def _first(found: Sequence[Mention]) -> dict[str, Mention]:
    """The first mention of each name; one in the title comes before those in the text."""
    first: dict[str, Mention] = {}
    for each in sorted(found, key=lambda mention: (mention.type != SUBJECT, mention.start)):
        first.setdefault(each.key, each)
    return first


def _mostly(found: Sequence[Mention]) -> tuple[str, str]:
    """How a name is mostly spelt, and what it mostly is; a title tells that least of all."""
    counts = Counter((each.text, each.type) for each in found)
    return max(counts, key=lambda told: (told[1] != SUBJECT, counts[told], told[0]))
