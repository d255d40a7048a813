"""Context of videos: captions with metadata, searched by similarity, time and stream.

    manager = ContextManager(embeddings)
    await manager.add_document("A red car parks.", {"stream_id": "gate", "start_time": "00:10"})
    window = await manager.get_context_window("Which cars came?", max_tokens=1000)

The engine searches, filters and parses times. It may run in this process or on a server. Any other store that
implements ContextStore works, too.
"""

from collections.abc import Callable, Sequence
from typing import Any

from conspectus.bootstrap import local_counter
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.facades.video.caption_times import LOG, Instant, open_ended
from conspectus.facades.video.context_store import (
    ContextStore,
    ContextWindow,
    Document,
    in_order,
    stream_filter,
)
from conspectus.facades.video.embeddings import Embeddings, catch_error
from conspectus.facades.video.functions import Functions
from conspectus.facades.video.milvus_store import MilvusContextStore, MilvusOptions
from conspectus.facades.video.store import EngineContextStore, InMemoryContextStore
from conspectus.model.captions import CaptionRange
from conspectus.settings import Settings

DEFAULT_MAX_CONTEXT_TOKENS = 100_000
MAX_CANDIDATES = 1_000
"""Maximum number of documents from which a window is selected."""
MAX_EMBED_ATTEMPTS = 3
"""Number of automatic attempts to embed a text."""
MAX_RETRIED_TEXTS = 100
"""Maximum number of pending texts that one query retries."""


class ContextManager(Functions):
    """Stores captions of videos and returns context windows for queries.

    `embeddings` has embed_document, embed_documents and embed_query, or is an embedder of this package. It is
    optional with an `engine`, which then embeds itself and also uses keyword search. Without `store` and
    `engine`, data are deleted when the manager is closed or the program ends.

    A document that cannot be embedded is stored, listed in `pending`, and retried by the next query. A query
    that cannot be embedded returns no results. With `strict`, both raise.
    """

    def __init__(
        self,
        embeddings: Any = None,
        store: ContextStore | None = None,
        max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
        *,
        engine: AnyEngine | None = None,
        tokenizer: str = "chars4_floor",
        strict: bool = False,
    ) -> None:
        """Create a manager; `tokenizer` is o200k_base, cl100k_base, or a named estimate."""
        super().__init__()
        if embeddings is None and engine is None and store is None:
            raise InvalidInput(
                "embeddings", "are needed without an engine that embeds; pass embeddings= or engine="
            )
        self._embeddings = embeddings
        self._embedder = None if embeddings is None else Embeddings(embeddings)
        self._store = _store(store, engine, engine_embeds=embeddings is None)
        self._max_context_tokens = _tokens(max_context_tokens)
        self._count: Callable[[str], int] = local_counter(tokenizer)
        self._strict = strict
        self._pending: dict[str, tuple[str, int]] = {}

    @classmethod
    def from_settings(
        cls, embeddings: Any, settings: Settings | None = None, *, embedding_dim: int = 768
    ) -> "ContextManager":
        """Return a manager for the settings: in Milvus if they name a server, else in memory.

        The default settings are those of the environment and of the file in CONSPECTUS_CONFIG.
        """
        options = Settings.from_environment() if settings is None else settings
        store: ContextStore | None = None
        if options.index == "milvus":
            server: MilvusOptions = {"token": options.milvus_token}
            if options.milvus_uri:
                server["uri"] = options.milvus_uri
            store = MilvusContextStore(
                collection_name=options.default_collection, embedding_dim=embedding_dim, **server
            )
        return cls(embeddings, store, options.max_context_tokens)

    async def __aenter__(self) -> "ContextManager":
        """Return the manager; the store is opened on first use."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()

    @property
    def store(self) -> ContextStore:
        """The store of all documents."""
        return self._store

    @property
    def max_context_tokens(self) -> int:
        """The default number of tokens of a window."""
        return self._max_context_tokens

    @property
    def pending(self) -> tuple[str, ...]:
        """The ids of stored documents without a vector."""
        return tuple(self._pending)

    async def add_document(self, text: str, metadata: dict[str, Any], generate_embedding: bool = True) -> str:
        """Store a document, such as a caption, and return its id.

        The metadata `stream_id`, `chunk_idx`, `start_time` and `end_time` (seconds, timecodes or ISO 8601)
        give its position. All metadata can be filtered. Raises InvalidInput for values that are not JSON.
        """
        embedding: list[float] | None = None
        fault: Exception | None = None
        if generate_embedding and self._embedder is not None:
            answer = await catch_error(self._embedder.document(text))
            embedding, fault = (None, answer) if isinstance(answer, Exception) else (answer, None)
        self._raise_if_strict(fault)
        added = await self._store.add_document(text=text, metadata=metadata, embedding=embedding)
        self._remember([added], [text], fault)
        return added

    async def add_documents_batch(
        self, texts: list[str], metadatas: list[dict[str, Any]], generate_embeddings: bool = True
    ) -> list[str]:
        """Store documents and return their ids in order. Raises InvalidInput for lists of unequal length."""
        if len(texts) != len(metadatas):
            raise InvalidInput("metadatas", f"are {len(metadatas)}, the texts {len(texts)}")
        embeddings: Sequence[list[float] | None] = [None] * len(texts)
        fault: Exception | None = None
        if generate_embeddings and self._embedder is not None:
            answer = await catch_error(self._embedder.documents(texts))
            embeddings, fault = (embeddings, answer) if isinstance(answer, Exception) else (answer, None)
        self._raise_if_strict(fault)
        added = await self._store.add_documents(texts, metadatas, embeddings)
        self._remember(added, texts, fault)
        return added

    async def retrieve(
        self, query: str, top_k: int = 5, filter_metadata: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return the documents for a query, best first, with id, text, metadata and score.

        The score is the cosine similarity; if the engine embeds, it is the engine's score.
        """
        return [
            {"id": document.id, "text": document.text, "metadata": document.metadata, "score": score}
            for document, score in await self._search(query, top_k, filter_metadata)
        ]

    async def get_context_window(
        self,
        query: str,
        max_tokens: int | None = None,
        include_all: bool = False,
        *,
        stream_id: str | None = None,
        filter_metadata: dict[str, Any] | None = None,
    ) -> ContextWindow:
        """Return whole documents of at most `max_tokens`, best first; with `include_all`, all in order.

        A document that does not fit is skipped, and the next one is tried. 0 returns none.
        """
        allowed = self._max_context_tokens if max_tokens is None else _tokens(max_tokens)
        metadata = stream_filter(stream_id, filter_metadata)
        if include_all:
            documents, more = in_order(await self._store.get_all_documents(metadata)), False
        else:
            documents = [document for document, _ in await self._search(query, MAX_CANDIDATES, metadata)]
            more = len(documents) == MAX_CANDIDATES
        window = ContextWindow([], 0)
        for document in documents if allowed else ():
            cost = self._estimate_tokens(document.text)
            if window.total_tokens + cost <= allowed:
                window.documents.append(document)
                window.total_tokens += cost
        window.truncated = more or len(window.documents) < len(documents)
        return window

    async def get_all_captions(self, stream_id: str | None = None) -> list[str]:
        """Return the texts of all captions, or of those of a stream, in the order of `chunk_idx`."""
        documents = await self._store.get_all_documents(stream_filter(stream_id))
        return [document.text for document in in_order(documents)]

    async def get_captions_by_time_range(
        self,
        start_time: Instant | None,
        end_time: Instant | None,
        stream_id: str | None = None,
        *,
        contains: bool = False,
    ) -> list[str]:
        """Return the texts of captions that overlap [start, end), or with `contains` lie inside it.

        Times are seconds, timecodes or ISO 8601; None or "" is open. Captions without times never match.
        Raises InvalidInput for an invalid time and for a range that ends before it starts.
        """
        within = CaptionRange(open_ended(start_time), open_ended(end_time), contains=contains)
        return [document.text for document in await self._store.between(within, stream_id)]

    async def clear_context(self, stream_id: str | None = None) -> int:
        """Delete everything, or one stream, and return the number of documents."""
        if stream_id is None:
            count = await self._store.clear()
            self._pending.clear()
            return count
        count = await self._store.clear_stream(stream_id)
        deleted = [name for name in self._pending if await self._store.get_document(name) is None]
        for name in deleted:
            del self._pending[name]
        return count

    async def get_document(self, doc_id: str) -> Document | None:
        """Return a document by id, or None."""
        return await self._store.get_document(doc_id)

    async def delete_document(self, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""
        self._pending.pop(doc_id, None)
        return await self._store.delete_document(doc_id)

    async def embed_pending(self) -> int:
        """Embed pending documents and return their number. Raises the errors of the embedder."""
        names = list(self._pending)
        parts = range(0, len(names), MAX_RETRIED_TEXTS)
        return sum(
            [await self._embed(names[start : start + MAX_RETRIED_TEXTS], quietly=False) for start in parts]
        )

    def _estimate_tokens(self, text: str) -> int:
        return self._count(text)

    async def _search(
        self, query: str, top_k: int, metadata: dict[str, Any] | None
    ) -> list[tuple[Document, float]]:
        if self._embedder is None:
            if not isinstance(self._store, EngineContextStore):
                raise InvalidInput("embeddings", "are required for a search in this store")
            return await self._store.ask(query, top_k, metadata)
        vector = await catch_error(self._embedder.query(query))
        if isinstance(vector, Exception):
            self._raise_if_strict(vector)
            LOG.warning("no results: the query could not be embedded: %s", _error_name(vector))
            return []
        if not any(vector):
            return []
        due = [name for name, (_, attempts) in self._pending.items() if attempts < MAX_EMBED_ATTEMPTS]
        await self._embed(due[:MAX_RETRIED_TEXTS], quietly=True)
        return await self._store.search(query_embedding=vector, top_k=top_k, filter_metadata=metadata)

    async def _embed(self, names: Sequence[str], *, quietly: bool) -> int:
        """Embed documents together or, if that fails, one by one, so that one text does not block others."""
        due = [(name, *self._pending[name]) for name in names if name in self._pending]
        if self._embedder is None or not due:
            return 0
        answer = await catch_error(self._embedder.documents([text for _, text, _ in due]))
        rows = [] if isinstance(answer, Exception) else answer
        came = 0
        for position, (name, text, attempts) in enumerate(due):
            vector = rows[position] if rows else await catch_error(self._embedder.document(text))
            if not isinstance(vector, Exception) and await self._store.set_embedding(name, vector):
                self._pending.pop(name, None)
                came += 1
            elif await self._store.get_document(name) is None:
                self._pending.pop(name, None)
            else:
                self._pending[name] = (text, attempts + 1)
            if isinstance(vector, Exception) and not quietly:
                raise vector
        return came

    def _remember(self, added: Sequence[str], texts: Sequence[str], fault: Exception | None) -> None:
        if fault is None:
            return
        self._pending |= {name: (text, 0) for name, text in zip(added, texts, strict=True)}
        words = "%d documents are stored, but not found by meaning before they are embedded: %s"
        LOG.warning(words, len(added), _error_name(fault))

    def _raise_if_strict(self, fault: Exception | None) -> None:
        if self._strict and fault is not None:
            raise fault


def _store(store: ContextStore | None, engine: AnyEngine | None, *, engine_embeds: bool) -> ContextStore:
    if store is not None and engine is not None:
        raise InvalidInput("engine", "is that of the store; give one of the two")
    if store is not None:
        return store
    if engine is None:
        return InMemoryContextStore()
    return EngineContextStore(engine, engine_embeds=engine_embeds)


def _tokens(number: int) -> int:
    if number < 0:
        raise InvalidInput("max_tokens", "must be 0 or more")
    return number


def _error_name(fault: Exception) -> str:
    """Return the type of an unknown error: its message could contain a key."""
    if isinstance(fault, ConspectusError):
        return str(fault)
    return type(fault).__name__
