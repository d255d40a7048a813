"""Conspectus for pipelines made with Haystack: a document store and its retriever.

    with conspectus.open("notes") as engine:
        store = ConspectusDocumentStore(engine)
        pipeline.add_component("retriever", ConspectusRetriever(store))

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conspectus.bridge.engine_access import AnyEngineOrPath, access_to
from conspectus.bridge.engine_user import EngineUser, blocking_and_async
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.haystack_filters import (
    CONTENT,
    check_filters,
    comparisons,
    means_the_same,
    select_exact_parts,
    to_filter,
)
from conspectus.integrations.haystack_metadata import (
    count_unique_values,
    describe_fields,
    find_range,
    list_unique_values,
)
from conspectus.integrations.one_source import ALL_DOCUMENTS, Selection
from conspectus.integrations.texts import Text, TextMatch, Texts
from conspectus.model.query import QueryOptions, Retriever

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.utils.filters import document_matches_filter
except ImportError as missing:
    raise MissingExtra("haystack", "haystack-ai") from missing

__all__ = ["ConspectusDocumentStore", "ConspectusRetriever"]
Filters = dict[str, Any] | None
TOP_K = 10


class ConspectusDocumentStore(EngineUser):
    """Documents with their metadata in a source of a collection, found by keyword and vector search.

    The vectors are those of the documents, if the first one has one, else those of the collection's embedding
    model. Documents come back without their embedding. Filters select what they do in Haystack's own
    store; those that compare times or the content read all documents for it. A list in metadata matches when
    an element does.
    """

    def __init__(
        self, engine: AnyEngineOrPath = None, *, source: str = "documents", collection: str = "haystack"
    ) -> None:
        self._engine = engine
        self._access = access_to(engine)
        self._texts = Texts(source, collection)

    def to_dict(self) -> dict[str, Any]:
        """Return the store as data. Raises InvalidInput unless it was given the path of a store."""
        if self._engine is not None and not isinstance(self._engine, str | Path):
            raise InvalidInput("engine", "cannot be serialized; give the path of a store")
        path = None if self._engine is None else str(self._engine)
        return default_to_dict(
            self, engine=path, source=self._texts.source, collection=self._texts.collection
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ConspectusDocumentStore":
        """Return the store of such data."""
        store: ConspectusDocumentStore = default_from_dict(cls, data)
        return store

    async def _count(self, engine: AnyEngine) -> int:
        """Count the documents."""
        return await self._texts.count(engine, ALL_DOCUMENTS)

    async def _count_by_filter(self, engine: AnyEngine, filters: dict[str, Any]) -> int:
        """Count the documents that match. Raises FilterError."""
        return await self._texts.count(engine, await self._select(engine, filters))

    async def _find(self, engine: AnyEngine, filters: Filters = None) -> list[Document]:
        """Return the documents that match. Raises FilterError."""
        return [
            _document(text) for text in await self._texts.get(engine, await self._select(engine, filters))
        ]

    async def _write(
        self,
        engine: AnyEngine,
        documents: list[Document],
        policy: DuplicatePolicy = DuplicatePolicy.NONE,
    ) -> int:
        """Write documents, and return their number. Without a policy, one that is stored is an error."""
        if not isinstance(documents, list) or not all(
            isinstance(document, Document) for document in documents
        ):
            raise ValueError("documents must be a list of Document objects")
        new = {document.id: _as_text(document) for document in documents}
        if policy != DuplicatePolicy.OVERWRITE:
            stored_ids = [
                document.key for document in await self._texts.documents(engine, Selection(list(new)))
            ]
            if policy != DuplicatePolicy.SKIP and (stored_ids or len(new) < len(documents)):
                raise DuplicateDocumentError(f"documents with these ids exist: {', '.join(stored_ids)[:200]}")
            new = {name: text for name, text in new.items() if name not in set(stored_ids)}
        await self._texts.add(engine, list(new.values()))
        if policy == DuplicatePolicy.OVERWRITE:
            return len(documents)
        return len(new)

    async def _delete(self, engine: AnyEngine, document_ids: Sequence[str]) -> None:
        """Delete documents by id. Unknown ids are ignored."""
        await self._texts.remove(engine, document_ids)

    async def _delete_all(self, engine: AnyEngine) -> None:
        """Delete all documents."""
        await self._texts.delete(engine, ALL_DOCUMENTS)

    async def _delete_by_filter(self, engine: AnyEngine, filters: dict[str, Any]) -> int:
        """Delete the documents that match, and return their number. Raises FilterError."""
        return await self._texts.delete(engine, await self._select(engine, filters))

    async def _update_by_filter(self, engine: AnyEngine, filters: Filters, meta: dict[str, Any]) -> int:
        """Add metadata to the documents that match, and return their number. Raises FilterError."""
        texts = await self._texts.get(engine, await self._select(engine, filters))
        await self._texts.add(engine, [Text(text.id, text.text, {**text.metadata, **meta}) for text in texts])
        return len(texts)

    async def _describe_fields(self, engine: AnyEngine) -> dict[str, dict[str, str]]:
        """Return the metadata fields of the documents with their types."""
        return describe_fields(await self._read_metadata(engine))

    async def _find_range(self, engine: AnyEngine, metadata_field: str) -> dict[str, Any]:
        """Return the least and greatest value of a metadata field."""
        return find_range(await self._read_metadata(engine), metadata_field)

    async def _count_unique(
        self, engine: AnyEngine, filters: Filters, metadata_fields: list[str]
    ) -> dict[str, int]:
        """Count the distinct values of metadata fields of the documents that match. Raises FilterError."""
        return count_unique_values(await self._read_metadata(engine, filters), metadata_fields)

    async def _list_unique(
        self,
        engine: AnyEngine,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the distinct values of a metadata field, and their number. Raises FilterError."""
        values = list_unique_values(await self._read_metadata(engine, filters), metadata_field, search_term)
        return values[from_ : from_ + size], len(values)

    async def _read_metadata(self, engine: AnyEngine, filters: Filters = None) -> list[Mapping[str, Any]]:
        documents = await self._texts.documents(engine, await self._select(engine, filters))
        return [document.metadata for document in documents]

    get_metadata_fields_info, get_metadata_fields_info_async = blocking_and_async(_describe_fields)
    get_metadata_field_min_max, get_metadata_field_min_max_async = blocking_and_async(_find_range)
    count_unique_metadata_by_filter, count_unique_metadata_by_filter_async = blocking_and_async(_count_unique)
    get_metadata_field_unique_values, get_metadata_field_unique_values_async = blocking_and_async(
        _list_unique
    )
    count_documents, count_documents_async = blocking_and_async(_count)
    count_documents_by_filter, count_documents_by_filter_async = blocking_and_async(_count_by_filter)
    filter_documents, filter_documents_async = blocking_and_async(_find)
    write_documents, write_documents_async = blocking_and_async(_write)
    delete_documents, delete_documents_async = blocking_and_async(_delete)
    delete_all_documents, delete_all_documents_async = blocking_and_async(_delete_all)
    delete_by_filter, delete_by_filter_async = blocking_and_async(_delete_by_filter)
    update_by_filter, update_by_filter_async = blocking_and_async(_update_by_filter)

    async def _select(self, engine: AnyEngine, filters: Filters) -> Selection:
        """Return the documents that match as a selection: by the filter, or by the ids of those that do."""
        if not filters:
            return ALL_DOCUMENTS
        checked = check_filters(filters)
        if means_the_same(checked):
            return Selection(filter=to_filter(checked))
        candidates = await self._candidates(engine, checked)
        return Selection(
            [text.id for text in candidates if document_matches_filter(checked, _document(text))]
        )

    async def _candidates(self, engine: AnyEngine, filters: dict[str, Any]) -> list[Text]:
        """Return the documents that may match, with their content if the filter looks at it."""
        selection = Selection(filter=select_exact_parts(filters))
        if any(comparison["field"] == CONTENT for comparison in comparisons(filters)):
            return await self._texts.get(engine, selection)
        documents = await self._texts.documents(engine, selection)
        return [Text(document.key, "", dict(document.metadata)) for document in documents]

    async def _search(
        self, engine: AnyEngine, query: str, top_k: int, filters: Filters, options: QueryOptions
    ) -> list[Document]:
        selection = await self._select(engine, filters)
        matches = await self._texts.search(engine, query, top_k, selection, options)
        return [_document(match.text, match) for match in matches]

    search, search_async = blocking_and_async(_search)


@component
class ConspectusRetriever:
    """The documents of a store that match a query, best first, with their scores.

    `retrievers` are `keyword` and `vector`, both unless named. A query takes the place of filters and top_k
    that are given here. A store of documents with embeddings needs the embedding of the query.
    """

    def __init__(
        self,
        document_store: ConspectusDocumentStore,
        *,
        top_k: int = TOP_K,
        filters: Filters = None,
        retrievers: Sequence[Retriever] = ("keyword", "vector"),
    ) -> None:
        self.document_store = document_store
        self.top_k = top_k
        self.filters = filters
        self.retrievers = tuple(retrievers)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: Filters = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """Return the documents for a query."""
        arguments = self._query_arguments(query_embedding, filters, top_k)
        return {"documents": self.document_store.search(query, *arguments)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: Filters = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """Asynchronous version of run."""
        arguments = self._query_arguments(query_embedding, filters, top_k)
        return {"documents": await self.document_store.search_async(query, *arguments)}

    def _query_arguments(
        self, embedding: list[float] | None, filters: Filters, top_k: int | None
    ) -> tuple[int, Filters, QueryOptions]:
        options: QueryOptions = {"retrievers": self.retrievers}
        if embedding is not None:
            options["vector"] = tuple(embedding)
        return self.top_k if top_k is None else top_k, filters or self.filters, options


def _as_text(document: Document) -> Text:
    for name in ("blob", "sparse_embedding"):
        if getattr(document, name) is not None:
            raise InvalidInput(name, f"of {document.id!r:.80} cannot be stored; store its text")
    vector = None if document.embedding is None else tuple(document.embedding)
    return Text(document.id, document.content or "", document.meta, vector)


def _document(text: Text, match: TextMatch | None = None) -> Document:
    score = None if match is None else match.score
    return Document(id=text.id, content=text.text or None, meta=dict(text.metadata), score=score)
