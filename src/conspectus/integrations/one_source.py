"""Documents that another program stores in one source of a collection."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.filter import EVERYTHING, And, Eq, Filter, In
from conspectus.model.pages import pages
from conspectus.model.records import Document
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

DOCUMENTS_PER_PAGE = 500


@dataclass(frozen=True, slots=True)
class OneSource:
    """One source of a collection. Reading creates nothing."""

    source: str
    collection: str

    async def id(self, engine: AnyEngine) -> str | None:
        """Return the id of the source, if anything was stored in it."""
        try:
            return (await engine.collections.get_source(self.source, collection=self.collection)).id
        except NotFound:
            return None

    async def documents(
        self, engine: AnyEngine, selection: "Selection", limit: int | None = None
    ) -> list[Document]:
        """Return the first selected documents, in the order in which they were added."""
        source = await self.id(engine)
        documents: list[Document] = []
        if source is None or limit == 0:
            return documents
        size = min(DOCUMENTS_PER_PAGE, limit or DOCUMENTS_PER_PAGE)
        for where in selection.conditions(source):
            listed = pages(engine.documents.list, collection=self.collection, filter=where, limit=size)
            async for page in listed:
                documents += page.documents
                if limit is not None and len(documents) >= limit:
                    return documents[:limit]
        return documents

    async def count(self, engine: AnyEngine, selection: "Selection") -> int:
        """Count the selected documents."""
        source, documents = await self.id(engine), 0
        for where in selection.conditions(source) if source is not None else ():
            documents += await engine.documents.count(collection=self.collection, filter=where)
        return documents

    async def texts_of(self, engine: AnyEngine, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of documents by id, without those that were deleted meanwhile."""
        texts: dict[str, str] = {}
        for start in range(0, len(ids), DOCUMENTS_PER_PAGE):
            texts |= await engine.documents.get_texts(ids[start : start + DOCUMENTS_PER_PAGE])
        return texts

    async def remove(self, engine: AnyEngine, keys: Iterable[str]) -> None:
        """Delete the documents of keys, with those that are below them. Missing keys are ignored."""
        gone = list(keys)
        source = await self.id(engine) if gone else None
        if source is not None:
            await engine.documents.delete([stable_id("document", source, key) for key in gone])


def check_key(key: str) -> str:
    """Return the key, if it can be stored unchanged. Raises InvalidInput."""
    if clean(key) != key:
        raise InvalidInput("key", f"{key!r:.80} has characters that cannot be stored")
    return key


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects documents by key: those with these (None: any), `below` another, that match a filter."""

    ids: Sequence[str] | None = None
    filter: Filter = EVERYTHING
    below: str | None = None

    def condition(self, source: str) -> Filter:
        """Return the selection as a filter over the documents of a source."""
        parts = [Eq("source", source), self.filter]
        if self.ids is not None:
            parts.append(In("document", tuple(stable_id("document", source, key) for key in self.ids)))
        if self.below is not None:
            parts.append(Eq("parent", stable_id("document", source, self.below)))
        return And(tuple(parts))

    def conditions(self, source: str) -> Iterator[Filter]:
        """Yield the selection as filters of a few ids each."""
        ids = self.ids
        if ids is None:
            yield self.condition(source)
        for start in range(0, len(ids or ()), DOCUMENTS_PER_PAGE):
            yield replace(self, ids=(ids or ())[start : start + DOCUMENTS_PER_PAGE]).condition(source)


ALL_DOCUMENTS = Selection()
