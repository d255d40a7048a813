"""A retriever of LlamaIndex."""

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from conspectus.bridge.engine_access import AnyEngineOrPath, Work, access_to
from conspectus.bridge.engine_user import EngineUser
from conspectus.integrations.passages import Ask, RetrievedPassage


class ConspectusRetriever(EngineUser, BaseRetriever):
    """Passages for a query, as nodes with score, parts, source and citation as metadata.

    `ask` has the options of every query: the collection (`*` for all), a filter, a limit, and the maximum
    tokens of all texts together, separated by blank lines. Only the texts of nodes are shown to models and
    embedded, not their metadata.
    """

    def __init__(self, engine: AnyEngineOrPath = None, ask: Ask | None = None, **base: Any) -> None:
        super().__init__(**base)
        self._access = access_to(engine)
        self._ask = ask or Ask()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in self._access.wait(self._passages(query_bundle))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in await self._access.run(self._passages(query_bundle))]

    def _passages(self, query_bundle: QueryBundle) -> Work[list[RetrievedPassage]]:
        return lambda engine: self._ask.passages(engine, query_bundle.query_str)


def _node(passage: RetrievedPassage) -> NodeWithScore:
    metadata = passage.metadata
    hidden = sorted(metadata)
    node = TextNode(
        text=passage.text,
        id_=passage.id,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=float(passage.score))
