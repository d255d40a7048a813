"""LlamaIndex's vector store over texts of a collection."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr
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

from conspectus.errors import InvalidInput
from conspectus.integrations.event_loop import Calls, Work, calls_to, refuse
from conspectus.integrations.texts import ALL, FoundText, Selection, Text, Texts
from conspectus.model.filter import EVERYTHING, And, Between, Eq, Exists, Filter, In, Not, Or
from conspectus.model.query import Arm

ARMS: Mapping[VectorStoreQueryMode, tuple[Arm, ...]] = {
    VectorStoreQueryMode.DEFAULT: ("vectors",),
    VectorStoreQueryMode.HYBRID: ("words", "vectors"),
    VectorStoreQueryMode.SEMANTIC_HYBRID: ("words", "vectors"),
    VectorStoreQueryMode.SPARSE: ("words",),
    VectorStoreQueryMode.TEXT_SEARCH: ("words",),
}
UNUSED = ("alpha", "embedding_field", "mmr_threshold", "output_fields", "sparse_top_k")
"""Fields of a query that cannot be taken into account."""
REFERENCE = "ref_doc_id"

OneFilter: TypeAlias = Callable[[str, Any], Filter]
FILTERS: Mapping[FilterOperator, OneFilter] = {
    FilterOperator.EQ: lambda key, value: Eq((key,), value),
    FilterOperator.NE: lambda key, value: Not(Eq((key,), value)),
    FilterOperator.GT: lambda key, value: And((Between((key,), low=value), Not(Eq((key,), value)))),
    FilterOperator.GTE: lambda key, value: Between((key,), low=value),
    FilterOperator.LT: lambda key, value: Between((key,), high=value),
    FilterOperator.LTE: lambda key, value: Or((Between((key,), high=value), Eq((key,), value))),
    FilterOperator.IN: lambda key, value: In((key,), tuple(value)),
    FilterOperator.ANY: lambda key, value: In((key,), tuple(value)),
    FilterOperator.NIN: lambda key, value: Not(In((key,), tuple(value))),
    FilterOperator.ALL: lambda key, value: And(tuple(Eq((key,), each) for each in value)),
    FilterOperator.CONTAINS: lambda key, value: Eq((key,), value),
    FilterOperator.IS_EMPTY: lambda key, _: Not(Exists((key,))),
}


class ConspectusVectorStore(BasePydanticVectorStore):
    """Nodes with their texts and vectors in a source of a collection.

    The collection is created for vectors of the size of the first node's. The modes `default`, `hybrid`,
    `semantic_hybrid`, `sparse` and `text_search` are supported.
    """

    model_config = ConfigDict(extra="forbid")

    stores_text: bool = True
    engine: Any = None
    source: str = "nodes"
    collection: str = "llama-index-vectors"
    _calls: Calls = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Find the way to the engine."""
        super().model_post_init(context)
        self._calls = calls_to(self.engine)

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex knows it."""
        return "ConspectusVectorStore"

    @property
    def client(self) -> Any:
        """The engine, or the path, that was given."""
        return self.engine

    def add(self, nodes: Sequence[BaseNode], **unknown: Any) -> list[str]:
        """Add nodes, or replace those with the same ids. Raises InvalidInput for one without a vector."""
        refuse(unknown)
        self._calls.wait(self._add(nodes))
        return [each.node_id for each in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **unknown: Any) -> list[str]:
        """As add."""
        refuse(unknown)
        await self._calls.run(self._add(nodes))
        return [each.node_id for each in nodes]

    def delete(self, ref_doc_id: str, **unknown: Any) -> None:
        """Delete the nodes of a document."""
        refuse(unknown)
        self._calls.wait(self._delete(Selection(where=Eq((REFERENCE,), ref_doc_id))))

    async def adelete(self, ref_doc_id: str, **unknown: Any) -> None:
        """As delete."""
        refuse(unknown)
        await self._calls.run(self._delete(Selection(where=Eq((REFERENCE,), ref_doc_id))))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **unknown: Any
    ) -> None:
        """Delete the nodes with these ids that match the filters."""
        refuse(unknown)
        self._calls.wait(self._delete(Selection(node_ids, _filter(filters))))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **unknown: Any
    ) -> None:
        """As delete_nodes."""
        refuse(unknown)
        await self._calls.run(self._delete(Selection(node_ids, _filter(filters))))

    def clear(self) -> None:
        """Delete all nodes."""
        self._calls.wait(self._delete(ALL))

    async def aclear(self) -> None:
        """As clear."""
        await self._calls.run(self._delete(ALL))

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The nodes with these ids that match the filters."""
        return list(map(_node, self._calls.wait(self._get(Selection(node_ids, _filter(filters))))))

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As get_nodes."""
        return list(map(_node, await self._calls.run(self._get(Selection(node_ids, _filter(filters))))))

    def query(self, query: VectorStoreQuery, **unknown: Any) -> VectorStoreQueryResult:
        """The best nodes, best first, with their cosine similarities, or in other modes their scores."""
        refuse(unknown)
        return _result(query, self._calls.wait(self._search(query)))

    async def aquery(self, query: VectorStoreQuery, **unknown: Any) -> VectorStoreQueryResult:
        """As query."""
        refuse(unknown)
        return _result(query, await self._calls.run(self._search(query)))

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()

    @property
    def _texts(self) -> Texts:
        return Texts(self.source, self.collection)

    def _add(self, nodes: Sequence[BaseNode]) -> Work[None]:
        texts = list(map(_text, nodes))
        return lambda engine: self._texts.add(engine, texts)

    def _delete(self, selection: Selection) -> Work[None]:
        return lambda engine: self._texts.delete(engine, selection)

    def _get(self, selection: Selection) -> Work[list[Text]]:
        return lambda engine: self._texts.get(engine, selection)

    def _search(self, query: VectorStoreQuery) -> Work[list[FoundText]]:
        refuse(name for name in UNUSED if getattr(query, name) is not None)
        arms = ARMS.get(query.mode)
        if arms is None:
            raise InvalidInput("mode", f"is {query.mode.value}; must be one of {', '.join(ARMS)}")
        parts = [_filter(query.filters)]
        if query.doc_ids is not None:
            parts.append(In((REFERENCE,), tuple(query.doc_ids)))
        selection = Selection(query.node_ids, And(tuple(parts)))
        limit = query.similarity_top_k if len(arms) == 1 else query.hybrid_top_k or query.similarity_top_k
        fields: dict[str, Any] = {"arms": arms}
        if "vectors" in arms and query.query_embedding is not None:
            fields["vector"] = tuple(query.query_embedding)
        text = query.query_str or ""
        return lambda engine: self._texts.search(engine, text, limit, selection, **fields)


def _text(node: BaseNode) -> Text:
    if node.embedding is None:
        raise InvalidInput("embedding", f"is missing in node {node.node_id!r:.80}; every node needs one")
    metadata = node_to_metadata_dict(node, remove_text=True)
    return Text(node.node_id, node.get_content(MetadataMode.NONE), metadata, tuple(node.embedding))


def _node(text: Text) -> BaseNode:
    return metadata_dict_to_node(dict(text.metadata), text=text.text)


def _result(query: VectorStoreQuery, found: Sequence[FoundText]) -> VectorStoreQueryResult:
    by_vector = query.mode == VectorStoreQueryMode.DEFAULT
    scores = [each.similarity or 0.0 if by_vector else each.score for each in found]
    nodes = [_node(each.text) for each in found]
    return VectorStoreQueryResult(nodes=nodes, similarities=scores, ids=[each.text.id for each in found])


def _filter(filters: MetadataFilters | MetadataFilter | None) -> Filter:
    """The filters as one filter of Conspectus. Raises InvalidInput for an operator that it does not have."""
    if filters is None:
        return EVERYTHING
    if isinstance(filters, MetadataFilters):
        parts = tuple(map(_filter, filters.filters))
        if filters.condition == FilterCondition.NOT:
            return Not(Or(parts))
        return Or(parts) if filters.condition == FilterCondition.OR and parts else And(parts)
    made = FILTERS.get(filters.operator)
    if made is None:
        raise InvalidInput(
            "filters", f"{filters.operator.value!r} is not supported; use the text of the query"
        )
    return made(filters.key, filters.value)
