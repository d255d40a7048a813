"""What other programs keep as documents of a source, texts and bytes, and passages as they retrieve them."""

import base64
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias

from conspectus.bridge.engine_access import Work
from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.filter import EVERYTHING, And, Between, Eq, Filter, In, Not, Or
from conspectus.model.pages import pages
from conspectus.model.query import Budget, QueryOptions
from conspectus.model.records import Document, NewDocument
from conspectus.model.results import Citation, ContextWindow, Hit, Retrieval
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

CODED = "base64:"
"""The prefix of a text that encodes bytes."""
LETTERS = str.maketrans("+/", "äö"), str.maketrans("äö", "+/")
"""With letters alone, an encoded value is one word, so that it takes no room in an index of words."""
NUL, BACKSLASHES = "\\u0000", "\\\\"
"""What JSON has for a NUL character, and for a backslash."""
BATCH = 1_000
PAGE = 500


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
        found: list[Document] = []
        if source is None or limit == 0:
            return found
        size = min(PAGE, limit or PAGE)
        for where in selection.conditions(source):
            listed = pages(engine.documents.list, collection=self.collection, filter=where, limit=size)
            async for page in listed:
                found += page.documents
                if limit is not None and len(found) >= limit:
                    return found[:limit]
        return found

    async def count(self, engine: AnyEngine, selection: "Selection") -> int:
        """Count the selected documents."""
        source = await self.id(engine)
        where = None if source is None else selection.condition(source)
        return 0 if where is None else await engine.documents.count(collection=self.collection, filter=where)

    async def texts_of(self, engine: AnyEngine, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of documents by id, without those that were deleted meanwhile."""
        texts: dict[str, str] = {}
        for start in range(0, len(ids), PAGE):
            texts |= await engine.documents.get_texts(ids[start : start + PAGE])
        return texts

    async def remove(self, engine: AnyEngine, keys: Iterable[str]) -> None:
        """Delete the documents of keys, with those that are below them. Missing keys are ignored."""
        gone = list(keys)
        source = await self.id(engine) if gone else None
        if source is not None:
            await engine.documents.delete([stable_id("document", source, key) for key in gone])


@dataclass(frozen=True, slots=True)
class Value:
    """Bytes with their key and metadata. One `below` another key, an empty value, is deleted with it."""

    key: str
    value: bytes
    metadata: Mapping[str, Any] = field(default_factory=dict)
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Values(OneSource):
    """The values of one source. With `searchable`, values that are texts are stored as texts."""

    searchable: bool = False

    async def get(self, engine: AnyEngine, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of keys in order; None for missing ones."""
        source = await self.id(engine)
        if source is None:
            return [None] * len(keys)
        ids = [stable_id("document", source, key) for key in keys]
        texts = await self.texts_of(engine, list(dict.fromkeys(ids)))
        return [self.decoded(texts[each]) if each in texts else None for each in ids]

    async def read(self, engine: AnyEngine, documents: Sequence[Document]) -> dict[str, bytes]:
        """Return the values of documents by id, without those that were deleted meanwhile."""
        texts = await self.texts_of(engine, [each.id for each in documents])
        return {name: self.decoded(text) for name, text in texts.items()}

    async def add(self, engine: AnyEngine, values: Iterable[Value]) -> None:
        """Set values, in one transaction for up to 500. Of duplicate keys, the last one is stored."""
        given = {each.key: each for each in values}
        above = dict.fromkeys(each.below for each in given.values() if each.below is not None)
        new = [*(Value(key, b"") for key in above), *given.values()]
        if not new:
            return
        await engine.collections.get_or_create(self.collection, words_only=True, language="none")
        source = await engine.collections.get_or_create_source(
            self.source, collection=self.collection, kind="api"
        )
        documents = [self._document(each, source.id) for each in new]
        await engine.documents.add(documents, source=self.source, collection=self.collection)

    def page_of_keys(self, prefix: str, after: str) -> Work[tuple[list[str], str | None]]:
        """Return a reader of a page of keys with a prefix, and the next cursor (``: the first page)."""

        async def work(engine: AnyEngine) -> tuple[list[str], str | None]:
            source = await self.id(engine)
            if source is None:
                return [], None
            where = Eq("source", source)
            page = await engine.documents.list(
                collection=self.collection, filter=where, after=after or None, limit=BATCH
            )
            return [each.key for each in page.documents if each.key.startswith(prefix)], page.next

        return work

    def _document(self, value: Value, source: str) -> NewDocument:
        text = self.encoded(value.value)
        return NewDocument(
            text,
            key=checked_key(value.key),
            metadata=value.metadata,
            spans=((0, len(text)),) if text.startswith(CODED) else (),
            parent=None if value.below is None else stable_id("document", source, value.below),
        )

    def encoded(self, value: bytes) -> str:
        """Encode a value as text."""
        if self.searchable:
            text = value.decode("utf-8", "replace")
            kept = text.encode() == value and clean(text) == text and bool(text.strip())
            if kept and not text.startswith(CODED):
                return text
        return CODED + base64.b64encode(value).decode("ascii").translate(LETTERS[0])

    @staticmethod
    def decoded(text: str) -> bytes:
        """Decode a value."""
        coded = text.startswith(CODED)
        return base64.b64decode(text.removeprefix(CODED).translate(LETTERS[1])) if coded else text.encode()


Comparison: TypeAlias = Callable[[tuple[str, ...], Any], Filter]
COMPARISONS: Mapping[str, Comparison] = {
    "==": Eq,
    "!=": lambda path, value: Not(Eq(path, value)),
    ">": lambda path, value: And((Between(path, low=value), Not(Eq(path, value)))),
    ">=": lambda path, value: Between(path, low=value),
    "<": lambda path, value: Between(path, high=value),
    "<=": lambda path, value: Or((Between(path, high=value), Eq(path, value))),
    "in": lambda path, value: In(path, tuple(value)),
    "not in": lambda path, value: Not(In(path, tuple(value))),
}
"""Filters on metadata by their names in other libraries."""


def checked_key(key: str) -> str:
    """Return the key, if it can be stored unchanged. Raises InvalidInput."""
    if clean(key) != key:
        raise InvalidInput("key", f"{key!r:.80} has characters that cannot be stored")
    return key


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
    """A text with its id and metadata. Without a `vector`, the collection's embedding model makes one.

    `document` is the stored one.
    """

    id: str
    text: str
    metadata: Mapping[str, Any]
    vector: tuple[float, ...] | None = None
    document: Document | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FoundText:
    """A text that matches a query. `similarity` is the cosine similarity (None: it has no vector)."""

    text: Text
    score: float
    similarity: float | None


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
            parts.append(In("document", tuple(stable_id("document", source, each) for each in self.ids)))
        if self.below is not None:
            parts.append(Eq("parent", stable_id("document", source, self.below)))
        return And(tuple(parts))

    def conditions(self, source: str) -> Iterator[Filter]:
        """Yield the selection as filters of a few ids each."""
        ids = self.ids
        if ids is None:
            yield self.condition(source)
        for start in range(0, len(ids or ()), PAGE):
            yield replace(self, ids=(ids or ())[start : start + PAGE]).condition(source)


ALL = Selection()


@dataclass(frozen=True, slots=True)
class Texts(OneSource):
    """The texts of one source."""

    async def add(self, engine: AnyEngine, texts: Sequence[Text]) -> None:
        """Add texts, or replace those with the same ids. Returns when they can be found."""
        if texts:
            new = [_new(each) for each in texts]
            await self._create(engine, next((each.vector for each in texts if each.vector), None))
            await engine.documents.add(new, source=self.source, collection=self.collection, wait=True)

    async def get(self, engine: AnyEngine, selection: Selection, limit: int | None = None) -> list[Text]:
        """Return the first selected texts, in the order in which they were added."""
        documents = await self.documents(engine, selection, limit)
        texts = await self.texts_of(engine, [each.id for each in documents])
        return [_text(each, texts[each.id]) for each in documents if each.id in texts]

    async def delete(self, engine: AnyEngine, selection: Selection) -> int:
        """Delete the selected texts, and return their number. Unknown ids are ignored."""
        source, deleted = await self.id(engine), 0
        for where in selection.conditions(source) if source is not None else ():
            receipt = await engine.documents.delete_by_filter(where, collection=self.collection)
            deleted += receipt.documents
        return deleted

    async def search(
        self,
        engine: AnyEngine,
        query: str,
        limit: int,
        selection: Selection = ALL,
        options: QueryOptions | None = None,
    ) -> list[FoundText]:
        """Return the best texts, best first."""
        source = await self.id(engine)
        if source is None or limit == 0:
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


def _new(text: Text) -> NewDocument:
    """Return a text as a document. A vector belongs to the whole text, which is then one chunk."""
    spans = ((0, len(text.text)),) if text.vector is not None and text.text else ()
    given = json.dumps(text.metadata, ensure_ascii=False, default=str, skipkeys=True)
    if clean(given) != given or NUL in given.replace(BACKSLASHES, ""):
        raise InvalidInput("metadata", f"of {text.id!r:.80} has characters that cannot be stored")
    return NewDocument(
        text.text, key=checked_key(text.id), metadata=text.metadata, spans=spans, vector=text.vector
    )


def _text(document: Document, text: str) -> Text:
    return Text(document.key, text, dict(document.metadata), document=document)


def _found(hit: Hit, text: str) -> FoundText:
    similarity = None if hit.similarity is None else float(hit.similarity)
    return FoundText(_text(hit.document, text), float(hit.score), similarity)


LIMIT = 10
BETWEEN = "\n\n"
"""The separator between passages, counted in the token limit."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The options of every query.

    `max_tokens` (None: unlimited) is the maximum tokens of all passages together; `limit` (None: 10, or as
    many as fit into `max_tokens`) the number of hits; `options` are other fields of a Query.
    """

    collection: str = "default"
    filter: Filter = EVERYTHING
    limit: int | None = None
    max_tokens: int | None = None
    tokenizer: str = "o200k_base"
    options: QueryOptions = field(default_factory=QueryOptions)

    async def passages(self, engine: AnyEngine, query: str) -> list["RetrievedPassage"]:
        """Return the best passages, best first; with a token limit, in reading order."""
        if self.limit == 0:
            return []
        options: QueryOptions = {"collection": self.collection, "filter": self.filter, **self.options}
        if self.max_tokens is None:
            options["limit"] = self.limit or LIMIT
            found = await engine.search.retrieve(query, **options)
            return await _named(engine, map(_of_hit, found.hits))
        if self.limit is not None:
            options["limit"] = self.limit
        window = await engine.search.window(query, Budget(self.max_tokens, self.tokenizer), **options)
        passages = await _visible(engine, window)
        count = engine.tokenizer(self.tokenizer)
        while passages and count(BETWEEN.join(each.text for each in passages)) > self.max_tokens:
            passages = passages[:-1]
        return await _named(engine, passages)


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A retrieved passage with the parts of its score."""

    text: str
    document: Document
    citation: Citation
    score: float
    parts: Mapping[str, float]
    similarity: float | None = None
    source: str = ""

    @property
    def id(self) -> str:
        """The id of its first chunk, which is stable while the document is unchanged."""
        return str(self.citation.chunks[0])

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as plain JSON. `stored` is the metadata of its document."""
        document, occurred = self.document, self.document.occurred
        cited = self.citation
        where = {"page": cited.page, "heading": cited.heading}
        known = {name: value for name, value in where.items() if value is not None}
        return {
            "id": self.id,
            "score": float(self.score),
            "parts": {name: float(part) for name, part in self.parts.items()},
            "similarity": None if self.similarity is None else float(self.similarity),
            "source": self.source,
            "document": str(document.id),
            "key": document.key,
            "title": document.title,
            "author": document.author,
            "role": document.role,
            "origin": document.origin,
            "trust": document.trust,
            "occurred": None if occurred is None else occurred.start.isoformat(),
            "citation": {"document": str(cited.document), "start": cited.start, "end": cited.end, **known},
            "stored": dict(document.metadata),
        }


def _of_hit(hit: Hit) -> RetrievedPassage:
    chunk, document = hit.chunk, hit.document
    cited = Citation(
        number=0,
        document=document.id,
        source=document.source,
        key=document.key,
        title=document.title,
        start=chunk.start,
        end=chunk.end,
        chunks=(chunk.id,),
        page=chunk.page,
        heading=chunk.heading,
        location=document.location,
    )
    return RetrievedPassage(chunk.text, document, cited, hit.score, hit.parts, hit.similarity)


async def _visible(engine: AnyEngine, window: ContextWindow) -> list[RetrievedPassage]:
    """Return the passages of a window with the score of their best chunk, without deleted ones."""
    ids = list(dict.fromkeys(str(cited.document) for cited in window.citations))
    texts = await engine.documents.get_texts(ids) if ids else {}
    documents: dict[str, Document] = {}
    for name in texts:
        with suppress(NotFound):
            documents[name] = await engine.documents.get(name)
    ranked = {entry.chunk: entry for entry in window.trace}
    passages = []
    for cited in window.citations:
        if cited.document in documents:
            best = min((ranked[chunk] for chunk in cited.chunks), key=lambda entry: entry.rank)
            text = texts[cited.document][cited.start : cited.end]
            passages.append(RetrievedPassage(text, documents[cited.document], cited, best.score, best.parts))
    return passages


async def _named(engine: AnyEngine, passages: Iterable[RetrievedPassage]) -> list[RetrievedPassage]:
    """Return the passages with the names of their sources; the id of a source that was deleted meanwhile."""
    found, names = list(passages), dict[str, str]()
    for source in {str(each.document.source) for each in found}:
        with suppress(NotFound):
            names[source] = (await engine.collections.get_source(source)).name
    return [replace(each, source=names.get(each.document.source, each.document.source)) for each in found]
