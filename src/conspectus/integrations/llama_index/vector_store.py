"""A vector store of LlamaIndex."""

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from conspectus.bridge.engine_user import blocking_and_async
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput
from conspectus.integrations.arguments import refuse_arguments
from conspectus.integrations.comparisons import COMPARISONS, Comparison
from conspectus.integrations.llama_index.components import OnEngine
from conspectus.integrations.one_source import ALL_DOCUMENTS, Selection
from conspectus.integrations.texts import Text, TextMatch, Texts
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not, Or
from conspectus.model.query import QueryOptions, Retriever

RETRIEVERS: Mapping[VectorStoreQueryMode, tuple[Retriever, ...]] = {
    VectorStoreQueryMode.DEFAULT: ("vector",),
    VectorStoreQueryMode.HYBRID: ("keyword", "vector"),
    VectorStoreQueryMode.SEMANTIC_HYBRID: ("keyword", "vector"),
    VectorStoreQueryMode.SPARSE: ("keyword",),
    VectorStoreQueryMode.TEXT_SEARCH: ("keyword",),
}
UNUSED = ("alpha", "embedding_field", "mmr_threshold", "output_fields", "sparse_top_k")
"""Fields of a query that are not supported."""
REFERENCE = "ref_doc_id"
FILTERS: Mapping[FilterOperator, Comparison] = {
    **{operator: COMPARISONS[operator.value] for operator in FilterOperator if operator.value in COMPARISONS},
    FilterOperator.ANY: COMPARISONS["in"],
    FilterOperator.NIN: COMPARISONS["not in"],
    FilterOperator.ALL: lambda path, value: And(tuple(Eq(path, member) for member in value)),
    FilterOperator.CONTAINS: COMPARISONS["=="],
    FilterOperator.IS_EMPTY: lambda path, _: Not(Exists(path)),
}


class ConspectusVectorStore(OnEngine, BasePydanticVectorStore):
    """Nodes with their texts and vectors in a source of a collection.

    The collection is created for vectors of the size of the first node's. The modes `default`, `hybrid`,
    `semantic_hybrid`, `sparse` and `text_search` are supported.
    """

    stores_text: bool = True
    source: str = "nodes"
    collection: str = "llama-index-vectors"

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex."""
        return "ConspectusVectorStore"

    @property
    def client(self) -> Any:
        """The engine, or the path of a store."""
        return self.engine

    async def _add(self, engine: AnyEngine, /, nodes: Sequence[BaseNode], **unknown: Any) -> list[str]:
        """Add nodes, or replace those with the same ids. Raises InvalidInput for one without a vector."""
        refuse_arguments(unknown)
        await self._texts.add(engine, list(map(_as_text, nodes)))
        return [node.node_id for node in nodes]

    async def _delete(self, engine: AnyEngine, /, ref_doc_id: str, **unknown: Any) -> None:
        """Delete the nodes of a document."""
        refuse_arguments(unknown)
        await self._texts.delete(engine, Selection(filter=Eq((REFERENCE,), ref_doc_id)))

    async def _delete_nodes(
        self,
        engine: AnyEngine,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **unknown: Any,
    ) -> None:
        """Delete the nodes with these ids that match the filters."""
        refuse_arguments(unknown)
        await self._texts.delete(engine, Selection(node_ids, _filter(filters)))

    async def _clear(self, engine: AnyEngine) -> None:
        """Delete all nodes."""
        await self._texts.delete(engine, ALL_DOCUMENTS)

    async def _get_nodes(
        self, engine: AnyEngine, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return the nodes with these ids that match the filters."""
        return list(map(_text_node, await self._texts.get(engine, Selection(node_ids, _filter(filters)))))

    async def _query(
        self, engine: AnyEngine, /, query: VectorStoreQuery, **unknown: Any
    ) -> VectorStoreQueryResult:
        """Return the best nodes, best first, with cosine similarities, or with scores in other modes."""
        refuse_arguments(unknown)
        matches = await self._search(engine, query)
        by_vector = query.mode == VectorStoreQueryMode.DEFAULT
        scores = [match.similarity or 0.0 if by_vector else match.score for match in matches]
        nodes = [_text_node(match.text) for match in matches]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=scores, ids=[match.text.id for match in matches]
        )

    add, async_add = blocking_and_async(_add)
    delete, adelete = blocking_and_async(_delete)
    delete_nodes, adelete_nodes = blocking_and_async(_delete_nodes)
    clear, aclear = blocking_and_async(_clear)
    get_nodes, aget_nodes = blocking_and_async(_get_nodes)
    query, aquery = blocking_and_async(_query)

    @property
    def _texts(self) -> Texts:
        return Texts(self.source, self.collection)

    async def _search(self, engine: AnyEngine, query: VectorStoreQuery) -> list[TextMatch]:
        refuse_arguments(name for name in UNUSED if getattr(query, name) is not None)
        used = RETRIEVERS.get(query.mode)
        if used is None:
            raise InvalidInput("mode", f"is {query.mode.value}; must be one of {', '.join(RETRIEVERS)}")
        parts = [_filter(query.filters)]
        if query.doc_ids is not None:
            parts.append(In((REFERENCE,), tuple(query.doc_ids)))
        selection = Selection(query.node_ids, And(tuple(parts)))
        limit = query.similarity_top_k if len(used) == 1 else query.hybrid_top_k or query.similarity_top_k
        options: QueryOptions = {"retrievers": used}
        if "vector" in used and query.query_embedding is not None:
            options["vector"] = tuple(query.query_embedding)
        return await self._texts.search(engine, query.query_str or "", limit, selection, options)


def _as_text(node: BaseNode) -> Text:
    if node.embedding is None:
        raise InvalidInput("embedding", f"is missing in node {node.node_id!r:.80}; every node needs one")
    metadata = node_to_metadata_dict(node, remove_text=True)
    return Text(node.node_id, node.get_content(MetadataMode.NONE), metadata, tuple(node.embedding))


def _text_node(text: Text) -> BaseNode:
    return metadata_dict_to_node(dict(text.metadata), text=text.text)


def _filter(filters: MetadataFilters | MetadataFilter | None) -> Filter:
    """Return the filters as a filter of Conspectus. Raises InvalidInput for an unsupported operator."""
    if filters is None:
        return EVERYTHING
    if isinstance(filters, MetadataFilters):
        parts = tuple(map(_filter, filters.filters))
        if filters.condition == FilterCondition.NOT:
            return Not(Or(parts))
        if filters.condition == FilterCondition.OR and parts:
            return Or(parts)
        return And(parts)
    comparison = FILTERS.get(filters.operator)
    if comparison is None:
        raise InvalidInput(
            "filters", f"{filters.operator.value!r} is not supported; use the text of the query"
        )
    return comparison((filters.key,), filters.value)
