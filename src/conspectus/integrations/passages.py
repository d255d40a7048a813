"""Passages as other programs retrieve them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import NotFound
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.query import Budget, QueryOptions
from conspectus.model.records import Document, Syntax
from conspectus.model.results import Citation, ContextWindow, Hit
from conspectus.text.tables import TableHeaders, find_tables

DEFAULT_LIMIT = 10
PASSAGE_SEPARATOR = "\n\n"
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
            options["limit"] = self.limit or DEFAULT_LIMIT
            retrieval = await engine.search.retrieve(query, **options)
            return await _name_sources(engine, map(_make_passage, retrieval.hits))
        if self.limit is not None:
            options["limit"] = self.limit
        window = await engine.search.window(query, Budget(self.max_tokens, self.tokenizer), **options)
        passages = await _visible(engine, window)
        count = engine.tokenizer(self.tokenizer)
        while (
            passages and count(PASSAGE_SEPARATOR.join(passage.text for passage in passages)) > self.max_tokens
        ):
            passages = passages[:-1]
        return await _name_sources(engine, passages)


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A retrieved passage with the parts of its score. Rows of a table stand below its header rows."""

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
        location = {name: value for name, value in where.items() if value is not None}
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
            "read_by": document.read_by,
            "occurred": None if occurred is None else occurred.start.isoformat(),
            "citation": {"document": str(cited.document), "start": cited.start, "end": cited.end, **location},
            "stored": dict(document.metadata),
        }


def _make_passage(hit: Hit) -> RetrievedPassage:
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
        read_by=document.read_by,
        box=chunk.box,
        table_header=chunk.table_header,
    )
    return RetrievedPassage(chunk.text_with_header, document, cited, hit.score, hit.parts, hit.similarity)


async def _visible(engine: AnyEngine, window: ContextWindow) -> list[RetrievedPassage]:
    """Return the passages of a window with the score of their best chunk, without deleted ones."""
    ids = list(dict.fromkeys(str(cited.document) for cited in window.citations))
    texts = await engine.documents.get_texts(ids) if ids else {}
    documents: dict[str, Document] = {}
    for name in texts:
        with suppress(NotFound):
            documents[name] = await engine.documents.get(name)
    ranked = {candidate.chunk: candidate for candidate in window.trace}
    passages = []
    for cited in window.citations:
        if cited.document in documents:
            best = min((ranked[chunk] for chunk in cited.chunks), key=lambda candidate: candidate.rank)
            document = documents[cited.document]
            text = _cited_text(texts[cited.document], document.syntax, cited)
            passages.append(RetrievedPassage(text, document, cited, best.score, best.parts))
    return passages


def _cited_text(text: str, syntax: Syntax, cited: Citation) -> str:
    """Return the cited characters of a text; those in the middle of a table below its header rows."""
    tables = find_tables(text) if syntax == "markdown" else []
    return TableHeaders(text, tables).header_at(cited.start) + text[cited.start : cited.end]


async def _name_sources(engine: AnyEngine, passages: Iterable[RetrievedPassage]) -> list[RetrievedPassage]:
    """Return the passages with the names of their sources; the id of a source that was deleted meanwhile."""
    all_passages, names = list(passages), dict[str, str]()
    for source in {str(passage.document.source) for passage in all_passages}:
        with suppress(NotFound):
            names[source] = (await engine.collections.get_source(source)).name
    return [
        replace(passage, source=names.get(passage.document.source, passage.document.source))
        for passage in all_passages
    ]
