"""A knowledge base of many users: collections, sources, documents, chunks, search and ingest.

Every method takes the id of the calling user. It raises NotFound for what does not exist or is not readable,
and PermissionDenied for what is readable but not allowed.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

from conspectus.engine import Engine
from conspectus.errors import (
    InvalidInput,
    NotFound,
    ProviderError,
    ProviderUnavailable,
    Unauthenticated,
)
from conspectus.facades.knowledge.items import (
    CHUNKS,
    Chunk,
    Collection,
    Document,
    RankedResult,
    SearchResult,
    Source,
    chunk_facts,
    to_chunk,
    to_collection,
    to_document,
    to_ranked,
    to_result,
    to_source,
)
from conspectus.model import records
from conspectus.model.access import Person
from conspectus.model.filter import Eq
from conspectus.model.ids import LOCAL
from conspectus.model.jobs import ChunkOptions, Job
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import NewDocument, Receipt
from conspectus.model.results import Hit, RankedHit

MAX_LISTED = 1_000
DIMENSIONS = (256, 384, 512, 768, 1024, 1536)
MAX_CANDIDATES = 100
MIN_RERANKED = 40
"""Fewer candidates than this are all returned without reranking."""
DEFAULT_MIN_SIMILARITY = 0.25


class IngestOptions(ChunkOptions, total=False):
    """Options of the request for a page (default: GET without headers) and of the splitter."""

    method: str
    headers: Mapping[str, str]


class KnowledgeBase:
    """The knowledge base API of an engine that belongs to the owner of the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create_collection(self, attrs: Mapping[str, Any], user_id: str) -> Collection:
        """Create a collection from `name`, `description` and `embedding_dimensions`.

        The default dimensions are those of the configured embedder. Raises Conflict if the user has a
        collection of that name, and InvalidInput if the embedder does not support the dimensions.
        """
        _require_keys(attrs, {"name", "description", "embedding_dimensions"})
        dimensions = attrs.get("embedding_dimensions")
        if dimensions is not None and dimensions not in DIMENSIONS:
            raise InvalidInput("embedding_dimensions", f"must be one of {', '.join(map(str, DIMENSIONS))}")
        engine = await self._as(user_id)
        collection = await engine.collections.create(
            _require(attrs, "name"), dimensions=dimensions, description=str(attrs.get("description") or "")
        )
        return to_collection(collection)

    async def list_collections(self, user_id: str) -> list[Collection]:
        """Return the user's own collections, by name."""
        return [
            collection
            for collection in await self.list_accessible_collections(user_id)
            if collection.user_id == user_id
        ]

    async def list_accessible_collections(self, user_id: str) -> list[Collection]:
        """Return the collections that the user may read at least in part, by name."""
        engine = await self._as(user_id)
        collections = [to_collection(collection) for collection in await engine.collections.list()]
        return sorted(collections, key=lambda collection: (collection.name, collection.id))[:MAX_LISTED]

    async def get_collection(self, id: str, user_id: str) -> Collection:
        """Return a collection."""
        return to_collection(await (await self._as(user_id)).collections.get(id))

    async def update_collection(self, id: str, attrs: Mapping[str, Any], user_id: str) -> Collection:
        """Change `name` or `description`."""
        _require_keys(attrs, {"name", "description"})
        engine = await self._as(user_id)
        changed = await engine.collections.update(
            id, name=attrs.get("name"), description=attrs.get("description")
        )
        return to_collection(changed)

    async def delete_collection(self, id: str, user_id: str) -> Receipt:
        """Delete a collection with everything in it."""
        return await (await self._as(user_id)).collections.delete(id)

    async def create_source(self, collection_id: str, attrs: Mapping[str, Any], user_id: str) -> Source:
        """Create a source from `name`, `source_type` and `metadata`, or return the one of that name."""
        _require_keys(attrs, {"name", "source_type", "metadata"})
        engine = await self._as(user_id)
        collection = await engine.collections.get(collection_id)
        kind = attrs.get("source_type", "manual")
        source = await engine.collections.get_or_create_source(
            _require(attrs, "name"), collection=collection.id, metadata=attrs.get("metadata"), kind=kind
        )
        return to_source(source)

    async def list_sources(self, collection_id: str, user_id: str) -> list[Source]:
        """Return the readable sources of a collection, by name."""
        sources = await (await self._as(user_id)).collections.list_sources(collection=collection_id)
        return [to_source(source) for source in sources][:MAX_LISTED]

    async def get_source(self, id: str, user_id: str) -> Source:
        """Return a source."""
        return to_source(await (await self._as(user_id)).collections.get_source(id))

    async def update_source(self, id: str, attrs: Mapping[str, Any], user_id: str) -> Source:
        """Change `name` or `metadata`."""
        _require_keys(attrs, {"name", "metadata"})
        engine = await self._as(user_id)
        changed = await engine.collections.update_source(
            id, name=attrs.get("name"), metadata=attrs.get("metadata")
        )
        return to_source(changed)

    async def delete_source(self, id: str, user_id: str) -> Receipt:
        """Delete a source with its documents and their chunks."""
        return await (await self._as(user_id)).collections.delete_source(id)

    async def create_document(self, source_id: str, attrs: Mapping[str, Any], user_id: str) -> Document:
        """Create a document from `title`, `content`, `metadata` and `key`.

        It replaces a stored document with the same key. The content is split and found by keyword search at
        once.
        """
        _require_keys(attrs, {"title", "content", "metadata", "key"})
        engine = await self._as(user_id)
        source = await engine.collections.get_source(source_id)
        new = NewDocument(
            text=attrs.get("content") or "",
            title=str(attrs.get("title") or ""),
            key=attrs.get("key"),
            metadata=attrs.get("metadata") or {},
        )
        written = await engine.add(new, source=source.id, collection=source.collection)
        return to_document(await engine.documents.get(written[0].id), content=new.text)

    async def list_documents(self, source_id: str, user_id: str) -> list[Document]:
        """Return the documents of a source, by title; at most 1,000."""
        engine = await self._as(user_id)
        source = await engine.collections.get_source(source_id)
        page = await engine.documents.list(
            collection=source.collection, filter=Eq("source", source.id), limit=MAX_LISTED
        )
        documents = [to_document(document) for document in page.documents]
        return sorted(documents, key=lambda document: (document.title, document.id))

    async def get_document(self, id: str, user_id: str) -> Document:
        """Return a document with its content."""
        engine = await self._as(user_id)
        document = await engine.documents.get(id)
        texts = await engine.documents.get_texts([document.id])
        return to_document(document, content=texts.get(document.id))

    async def delete_document(self, id: str, user_id: str) -> Receipt:
        """Delete a document with its chunks."""
        engine = await self._as(user_id)
        receipt = await engine.documents.delete(id)
        if not receipt.documents:
            raise NotFound("document", id)
        return receipt

    async def embed_chunks(
        self,
        document_id: str,
        chunks: Sequence[Mapping[str, Any]],
        user_id: str,
        *,
        dimensions: int | None = None,
    ) -> Document:
        """Replace the chunks of a document by these (`content`, `position`, `metadata`) and embed them.

        They are replaced in one transaction; the same chunks have no effect. Returns the document when it is
        embedded. `token_count` is ignored and counted. `dimensions`, if given, must be those of the
        collection.

        Raises:
            InvalidInput: a chunk has other fields, or the dimensions differ.
            ProviderError: the embedder refused a chunk. The chunks are stored, and keyword search finds them.
            ProviderUnavailable: the embedder did not answer; the chunks are embedded later.
        """
        for chunk in chunks:
            _require_keys(chunk, {"content", "position", "metadata", "token_count"})
        engine = await self._as(user_id)
        ordered = sorted(chunks, key=lambda chunk: int(chunk["position"]))
        text, spans = _join_chunks([str(chunk["content"]) for chunk in ordered])
        stored = await engine.documents.get(document_id)
        if dimensions is not None:
            _require_dimensions(await engine.collections.get(stored.collection), dimensions)
        metadata = {name: value for name, value in stored.metadata.items() if name != CHUNKS}
        metadata = {**metadata, **chunk_facts(ordered)}
        await engine.documents.update(stored.id, text=text, spans=spans, metadata=metadata)
        await engine.documents.wait_until_embedded(collection=stored.collection)
        done = await engine.documents.get(stored.id)
        if done.status == "error":
            provider, _, reason = (done.error or "").partition(": ")
            raise ProviderError(provider, reason)
        if done.status == "pending":
            raise ProviderUnavailable("embedder", f"did not embed document {done.id}; it is embedded later")
        return to_document(done)

    async def list_chunks_for_document(self, document_id: str, user_id: str) -> list[Chunk]:
        """Return the chunks of a document, by position."""
        engine = await self._as(user_id)
        document = await engine.documents.get(document_id)
        return [to_chunk(chunk, document) for chunk in await engine.documents.list_chunks(document_id)]

    async def delete_document_chunks(self, document_id: str, user_id: str) -> int:
        """Delete the chunks of a document, but not the document, and return their number."""
        return await (await self._as(user_id)).documents.delete_chunks(document_id)

    async def search(
        self,
        collection_id: str,
        query: str,
        user_id: str,
        *,
        limit: int = 20,
        dimensions: int | None = None,
    ) -> list[SearchResult]:
        """Return the nearest chunks of a collection by vector search, nearest first.

        `dimensions`, if given, must be those of the collection.
        """
        engine = await self._as(user_id)
        collection = await engine.collections.get(collection_id)
        if dimensions is not None:
            _require_dimensions(collection, dimensions)
        retrieval = await engine.retrieve(
            query, collection=collection.id, limit=limit, retrievers=("vector",), rerank=False
        )
        sources = await _sources(engine, retrieval.hits)
        results = [to_result(hit, sources.get(hit.document.source)) for hit in retrieval.hits]
        return sorted(results, key=lambda match: (match.distance, match.chunk.id))

    async def rerank(
        self, query: str, results: Sequence[SearchResult], user_id: str, *, top_n: int = 5
    ) -> list[RankedResult]:
        """Return the most relevant results; in the given order and without scores if no reranker works."""
        engine = await self._as(user_id)
        reranked = await engine.search.rerank(query, [match.hit for match in results], limit=top_n)
        return await _make_results(engine, reranked.results, reranked.notice)

    async def search_and_rerank(
        self, collection_id: str, query: str, user_id: str, *, search_limit: int = 50, top_n: int = 5
    ) -> list[RankedResult]:
        """Search a collection by keywords and vectors, and return the most relevant results."""
        engine = await self._as(user_id)
        reranked = await engine.search.search_and_rerank(
            query, collection=collection_id, candidates=search_limit, limit=top_n
        )
        return await _make_results(engine, reranked.results, reranked.notice)

    async def search_accessible(
        self, collection_id: str, query: str, user_id: str, *, search_limit: int = 50, top_n: int = 10
    ) -> list[RankedResult]:
        """Search what the user may read of a collection, also of another user's, and rerank it."""
        return await self.search_and_rerank(
            collection_id, query, user_id, search_limit=search_limit, top_n=top_n
        )

    async def augment_context(
        self,
        query: str,
        user_id: str,
        *,
        floor: float = DEFAULT_MIN_SIMILARITY,
        max_tokens: int | None = None,
    ) -> list[RankedResult]:
        """Return the relevant results of all readable collections for a prompt.

        A reranker selects 40 of at most 100 candidates with a similarity of at least `floor`; fewer than 40
        are all returned without scores. With `max_tokens`, only what fits into a window of that size is
        returned.
        """
        engine = await self._as(user_id)
        retrieval = await engine.retrieve(
            query, collection=EVERYWHERE, limit=MAX_CANDIDATES, min_similarity=floor, rerank=False
        )
        hits = list(retrieval.hits)
        if max_tokens is not None:
            window = await engine.window(
                query,
                max_tokens,
                collection=EVERYWHERE,
                limit=MAX_CANDIDATES,
                min_similarity=floor,
                rerank=False,
            )
            cited_chunks = {chunk for citation in window.citations for chunk in citation.chunks}
            hits = [hit for hit in hits if hit.chunk.id in cited_chunks]
        if len(hits) < MIN_RERANKED:
            few = f"not reranked: fewer than {MIN_RERANKED} candidates"
            return await _make_results(engine, [RankedHit(hit, None) for hit in hits], few)
        reranked = await engine.search.rerank(query, hits, limit=MIN_RERANKED)
        return await _make_results(engine, reranked.results, reranked.notice)

    async def ingest_url(
        self, collection_id: str, url: str, user_id: str, **options: Unpack[IngestOptions]
    ) -> Job:
        """Fetch a page and add it, in a durable job."""
        engine = await self._as(user_id)
        collection = await engine.collections.get(collection_id)
        return await engine.jobs.ingest_url(url, collection=collection.id, **options)

    async def _as(self, user_id: str) -> Engine:
        """Return the engine with the rights of that user."""
        if user_id == LOCAL:
            return self._engine
        user = await self._engine.people.get_user(user_id)
        if user.disabled:
            raise Unauthenticated
        return self._engine.as_person(Person(user.name, user.owner, user.id))


def _require_keys(attrs: Mapping[str, Any], names: set[str]) -> None:
    for name in attrs:
        if name not in names:
            raise InvalidInput(name, f"is unknown; expected one of {', '.join(sorted(names))}")


def _require_dimensions(collection: records.Collection, dimensions: int) -> None:
    has = collection.space.dimensions if collection.space else 0
    if dimensions != has:
        raise InvalidInput("dimensions", f"the collection has vectors of {has}, not of {dimensions}")


def _require(attrs: Mapping[str, Any], name: str) -> str:
    value = attrs.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(name, "is required")
    return value


def _join_chunks(contents: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Join chunks to one text; return it with the bounds of each chunk."""
    spans = []
    end = 0
    for content in contents:
        start, end = end, end + len(content)
        spans.append((start, end))
    return "".join(contents), tuple(spans)


async def _make_results(
    engine: Engine, reranked: Sequence[RankedHit], notice: str | None
) -> list[RankedResult]:
    sources = await _sources(engine, [ranked.hit for ranked in reranked])
    return [to_ranked(ranked, notice, sources.get(ranked.hit.document.source)) for ranked in reranked]


async def _sources(engine: Engine, hits: Sequence[Hit]) -> dict[str, Source]:
    """Return the existing sources of hits, by id."""
    sources: dict[str, Source] = {}
    for source in dict.fromkeys(hit.document.source for hit in hits):
        with suppress(NotFound):
            sources[source] = to_source(await engine.collections.get_source(source))
    return sources
