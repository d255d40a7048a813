"""Texts with metadata and vectors, and byte values by key, as documents of one source."""

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.integrations.event_loop import Work
from conspectus.model.filter import EVERYTHING, And, Eq, Filter, In
from conspectus.model.pages import pages
from conspectus.model.query import QueryOptions
from conspectus.model.records import Document, NewDocument
from conspectus.model.results import Hit, Retrieval
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

CODED = "base64:"
"""The prefix of a text that encodes bytes."""
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one source. With `searchable`, values that are texts are stored as texts."""

    source: str
    collection: str
    searchable: bool = False

    async def get(self, engine: AnyEngine, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of keys in order; None for missing ones."""
        source = await _source_of(self, engine)
        if source is None:
            return [None] * len(keys)
        ids = [stable_id("document", source, key) for key in keys]
        asked, texts = list(dict.fromkeys(ids)), dict[str, str]()
        for start in range(0, len(asked), BATCH):
            texts |= await engine.documents.get_texts(asked[start : start + BATCH])
        return [self.decoded(texts[each]) if each in texts else None for each in ids]

    async def set(self, engine: AnyEngine, pairs: Iterable[tuple[str, bytes]]) -> None:
        """Set values. Of duplicate keys, the last one is stored."""
        new = [self._document(checked_key(key), value) for key, value in dict(pairs).items()]
        if not new:
            return
        await engine.collections.get_or_create(self.collection, words_only=True, language="none")
        await engine.collections.get_or_create_source(self.source, collection=self.collection, kind="api")
        await engine.documents.add(new, source=self.source, collection=self.collection)

    async def delete(self, engine: AnyEngine, keys: Iterable[str]) -> None:
        """Delete keys. Missing keys are ignored."""
        source = await _source_of(self, engine)
        if source is not None:
            await engine.documents.delete([stable_id("document", source, key) for key in keys])

    def page_of_keys(self, prefix: str, after: str) -> Work[tuple[list[str], str | None]]:
        """Return a reader of a page of keys with a prefix, and the next cursor (``: the first page)."""

        async def work(engine: AnyEngine) -> tuple[list[str], str | None]:
            source = await _source_of(self, engine)
            if source is None:
                return [], None
            where = Eq("source", source)
            page = await engine.documents.list(
                collection=self.collection, filter=where, after=after or None, limit=BATCH
            )
            return [each.key for each in page.documents if each.key.startswith(prefix)], page.next

        return work

    def _document(self, key: str, value: bytes) -> NewDocument:
        text = self.encoded(value)
        spans = ((0, len(text)),) if text.startswith(CODED) else ()
        return NewDocument(text, kind="page", key=key, spans=spans)

    def encoded(self, value: bytes) -> str:
        """Encode a value as text."""
        if self.searchable:
            text = value.decode("utf-8", "replace")
            kept = text.encode() == value and clean(text) == text and bool(text.strip())
            if kept and not text.startswith(CODED):
                return text
        return CODED + base64.b64encode(value).decode("ascii")

    @staticmethod
    def decoded(text: str) -> bytes:
        """Decode a value."""
        coded = text.startswith(CODED)
        return base64.b64decode(text.removeprefix(CODED)) if coded else text.encode()


def checked_key(key: str) -> str:
    """Return the key, if it can be stored unchanged. Raises InvalidInput."""
    if clean(key) != key:
        raise InvalidInput("key", f"{key!r:.80} has characters that cannot be stored")
    return key


PAGE = 500
MAX_HITS = 1_000
DEEPER = 4
"""Factor by which more hits are requested if they are chunks of too few texts."""


async def best_of_each(ask: Callable[..., Awaitable[Retrieval]], number: int) -> list[Hit]:
    """Return the best hit of each document, requesting more hits until there are enough documents."""
    limit = number
    while True:
        hits = (await ask(limit=limit)).hits
        best: dict[str, Hit] = {}
        for hit in hits:
            best.setdefault(hit.document.id, hit)
        if len(best) >= number or len(hits) < limit or limit >= MAX_HITS:
            return list(best.values())[:number]
        limit = min(limit * DEEPER, MAX_HITS)


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its id and metadata. Without a `vector`, the collection's embedding model makes one."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    vector: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class FoundText:
    """A text that matches a query. `similarity` is the cosine similarity (None: it has no vector)."""

    text: Text
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects texts: those with these ids (None: any) that match a filter."""

    ids: Sequence[str] | None = None
    filter: Filter = EVERYTHING

    def condition(self, source: str) -> Filter:
        """Return the selection as a filter over the documents of a source."""
        parts = [Eq("source", source), self.filter]
        if self.ids is not None:
            parts.append(In("document", tuple(stable_id("document", source, each) for each in self.ids)))
        return And(tuple(parts))


ALL = Selection()


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one source. Reading creates nothing."""

    source: str
    collection: str

    async def add(self, engine: AnyEngine, texts: Sequence[Text]) -> None:
        """Add texts, or replace those with the same ids. Returns when they can be found."""
        if texts:
            new = [_new(each) for each in texts]
            await self._create(engine, texts[0].vector)
            await engine.documents.add(new, source=self.source, collection=self.collection, wait=True)

    async def get(self, engine: AnyEngine, selection: Selection) -> list[Text]:
        """Return the selected texts, in the order in which they were added."""
        documents = await self._documents(engine, selection)
        found: list[Text] = []
        for start in range(0, len(documents), PAGE):
            page = documents[start : start + PAGE]
            texts = await engine.documents.get_texts([each.id for each in page])
            found += [_text(each, texts[each.id]) for each in page if each.id in texts]
        return found

    async def delete(self, engine: AnyEngine, selection: Selection) -> None:
        """Delete the selected texts. Unknown ids are ignored."""
        documents = await self._documents(engine, selection)
        if documents:
            await engine.documents.delete([each.id for each in documents])

    async def search(
        self,
        engine: AnyEngine,
        query: str,
        limit: int,
        selection: Selection = ALL,
        options: QueryOptions | None = None,
    ) -> list[FoundText]:
        """Return the best texts, best first."""
        source = await _source_of(self, engine)
        if source is None:
            return []
        given: QueryOptions = {
            **(options or {}),
            "collection": self.collection,
            "filter": selection.condition(source),
        }
        chosen = await best_of_each(partial(engine.search.retrieve, query, **given), limit)
        texts = await engine.documents.get_texts([hit.document.id for hit in chosen]) if chosen else {}
        return [_found(hit, texts[hit.document.id]) for hit in chosen if hit.document.id in texts]

    async def _create(self, engine: AnyEngine, vector: Sequence[float] | None) -> None:
        """Create the collection if it is missing; if vectors are given, for vectors of that size."""
        if vector is None:
            await engine.collections.get_or_create(self.collection)
            return
        try:
            await engine.collections.get(self.collection)
        except NotFound:
            try:
                await engine.collections.create(self.collection, embedder=f"vectors:{len(vector)}")
            except Conflict:
                await engine.collections.get(self.collection)

    async def _documents(self, engine: AnyEngine, selection: Selection) -> list[Document]:
        source = await _source_of(self, engine)
        if source is None:
            return []
        where = selection.condition(source)
        found = pages(engine.documents.list, collection=self.collection, filter=where, limit=PAGE)
        return [each async for page in found for each in page.documents]


def _new(text: Text) -> NewDocument:
    """Return a text as a document. A vector belongs to the whole text, which is then one chunk."""
    spans = ((0, len(text.text)),) if text.vector is not None and text.text else ()
    return NewDocument(
        text.text, key=checked_key(text.id), metadata=text.metadata, spans=spans, vector=text.vector
    )


def _text(document: Document, text: str) -> Text:
    return Text(document.key, text, dict(document.metadata))


def _found(hit: Hit, text: str) -> FoundText:
    similarity = None if hit.similarity is None else float(hit.similarity)
    return FoundText(_text(hit.document, text), float(hit.score), similarity)


async def _source_of(stored: Values | Texts, engine: AnyEngine) -> str | None:
    """Return the id of the source, if anything was stored in it."""
    try:
        return (await engine.collections.get_source(stored.source, collection=stored.collection)).id
    except NotFound:
        return None
