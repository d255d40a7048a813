"""Texts with metadata in a source of a collection, which queries find."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.integrations.best_hits import best_of_each
from conspectus.integrations.one_source import ALL_DOCUMENTS, OneSource, Selection, check_key
from conspectus.model.query import QueryOptions
from conspectus.model.records import Document, NewDocument
from conspectus.model.results import Hit
from conspectus.text.clean import clean

JSON_NUL, JSON_BACKSLASH = "\\u0000", "\\\\"
"""What JSON has for a NUL character, and for a backslash."""


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
class TextMatch:
    """A text that matches a query. `similarity` is the cosine similarity (None: it has no vector)."""

    text: Text
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Texts(OneSource):
    """The texts of one source."""

    async def add(self, engine: AnyEngine, texts: Sequence[Text]) -> None:
        """Add texts, or replace those with the same ids. Returns when they can be found."""
        if texts:
            new = [_new(text) for text in texts]
            await self._create(engine, next((text.vector for text in texts if text.vector), None))
            await engine.documents.add(new, source=self.source, collection=self.collection, wait=True)

    async def get(self, engine: AnyEngine, selection: Selection, limit: int | None = None) -> list[Text]:
        """Return the first selected texts, in the order in which they were added."""
        documents = await self.documents(engine, selection, limit)
        texts = await self.texts_of(engine, [document.id for document in documents])
        return [_text(document, texts[document.id]) for document in documents if document.id in texts]

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
        selection: Selection = ALL_DOCUMENTS,
        options: QueryOptions | None = None,
    ) -> list[TextMatch]:
        """Return the best texts, best first."""
        source = await self.id(engine)
        if source is None or limit == 0:
            return []
        hits: list[Hit] = []
        for where in selection.conditions(source):
            all_options: QueryOptions = {**(options or {}), "collection": self.collection, "filter": where}
            hits += await best_of_each(partial(engine.search.retrieve, query, **all_options), limit)
        hits = sorted(hits, key=lambda hit: -hit.score)[:limit]
        texts = await engine.documents.get_texts([hit.document.id for hit in hits]) if hits else {}
        return [_match(hit, texts[hit.document.id]) for hit in hits if hit.document.id in texts]

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
    json_metadata = json.dumps(text.metadata, ensure_ascii=False, default=str, skipkeys=True)
    if clean(json_metadata) != json_metadata or JSON_NUL in json_metadata.replace(JSON_BACKSLASH, ""):
        raise InvalidInput("metadata", f"of {text.id!r:.80} has characters that cannot be stored")
    return NewDocument(
        text.text, key=check_key(text.id), metadata=text.metadata, spans=spans, vector=text.vector
    )


def _text(document: Document, text: str) -> Text:
    return Text(document.key, text, dict(document.metadata), document=document)


def _match(hit: Hit, text: str) -> TextMatch:
    similarity = None if hit.similarity is None else float(hit.similarity)
    return TextMatch(_text(hit.document, text), float(hit.score), similarity)
