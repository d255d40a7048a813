"""Vector stores for LangChain and LlamaIndex, and the arguments that adapters refuse."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from pydantic import ValidationError
from tests.support.served import served

import conspectus
from conspectus import Eq, Settings
from conspectus.errors import InvalidInput
from conspectus.integrations import langchain, llama_index
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
PLANS = ["Backups run at two.", "The meeting is on Thursday.", "Lunch is at noon."]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[BlockingEngine]:
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        yield opened


def make_nodes() -> list[TextNode]:
    """Three nodes of two documents, each the unit vector of another axis."""
    return [
        TextNode(
            id_=f"n{number}",
            text=text,
            embedding=[float(number == axis) for axis in range(3)],
            metadata={"place": number, "tags": ["even" if number % 2 == 0 else "odd", "all"]},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="late" if number else "early")},
        )
        for number, text in enumerate(PLANS)
    ]


def ids_of(store: llama_index.ConspectusVectorStore, **query: Any) -> list[str]:
    arguments = {"query_embedding": [0.1, 0.2, 0.9], "similarity_top_k": 3, **query}
    return store.query(VectorStoreQuery(**arguments)).ids or []


def test_reading_an_empty_store_creates_nothing(engine: BlockingEngine) -> None:
    store, other = langchain.ConspectusVectorStore(engine), llama_index.ConspectusVectorStore(engine=engine)
    assert (store.similarity_search("x"), store.get_by_ids(["1"]), store.delete(["1"])) == ([], [], True)
    assert (store.add_texts([]), ids_of(other), other.get_nodes(), other.add([])) == ([], [], [], [])
    other.clear()
    assert engine.collections.list() == []


@pytest.mark.parametrize("embedding", [None, DeterministicFakeEmbedding(size=6)])
def test_langchain_filters_scores_and_thresholds(engine: BlockingEngine, embedding: Any) -> None:
    facts = [{"n": number, "tags": ["a", "b"]} for number in range(3)]
    store = langchain.ConspectusVectorStore.from_texts(
        PLANS, embedding, facts, ids=["0", None, "2"], engine=engine
    )
    [(best, score), *rest] = store.similarity_search_with_score(PLANS[0], k=3)
    assert (best.id, best.page_content, best.metadata) == ("0", PLANS[0], facts[0])
    assert all(score >= other for _, other in rest)
    assert [document.id for document in store.similarity_search("meeting", filter={"n": 2})] == ["2"]
    assert [document.id for document in store.similarity_search("meeting", filter=Eq(("n",), 0))] == ["0"]
    sure = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.99}
    )
    assert [document.id for document in sure.invoke(PLANS[2])] == ["2"]
    if embedding is not None:
        documents = store.similarity_search_by_vector(embedding.embed_query(PLANS[2]), k=1)
        assert [document.id for document in documents] == ["2"]


def test_a_long_text_is_found_once_and_whole(engine: BlockingEngine) -> None:
    long = "\n\n".join(f"Paragraph {n} is about backups. " * 30 for n in range(40))
    store = langchain.ConspectusVectorStore(engine)
    store.add_texts([long, *PLANS], ids=list("abcd"))
    documents = store.similarity_search("paragraph about backups", k=4)
    assert (documents[0].page_content, sorted(document.id or "" for document in documents)) == (
        long,
        list("abcd"),
    )


def test_langchain_stores_are_apart_and_take_hostile_text(engine: BlockingEngine) -> None:
    one, other = (langchain.ConspectusVectorStore(engine, source=name) for name in ("one", "two"))
    one.add_texts(["Shared text 👩‍👩‍👧", ""], ids=["x'; --", " "])
    other.add_texts(["Shared text 👩‍👩‍👧"], ids=["x'; --"])
    one.delete(["x'; --"])
    assert [document.id for document in one.get_by_ids(["x'; --", " "])] == [" "]
    assert len(other.similarity_search("text")) == 1
    with pytest.raises(InvalidInput):
        one.add_texts(["kept?", "x"], ids=["good", "bad\x00"])
    assert one.get_by_ids(["good"]) == []
    with pytest.raises(InvalidInput, match="ids"):
        one.add_texts(["a", "b"], ids=["1"])


async def test_langchain_asynchronous_twins(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        store = await langchain.ConspectusVectorStore.afrom_texts(PLANS, ids=list("abc"), engine=engine)
        relevant = await store.asimilarity_search_with_relevance_scores(PLANS[1], k=1)
        assert [(document.id, score) for document, score in relevant] == [
            ("b", pytest.approx(1.0, abs=0.001))
        ]
        assert await asyncio.to_thread(store.get_by_ids, ["a"]) == await store.aget_by_ids(["a"])
        await store.adelete()
        assert await store.asimilarity_search("x") == []
        with pytest.raises(InvalidInput, match="asynchronous"):
            store.similarity_search("x")


MODES = VectorStoreQueryMode


def test_llama_index_modes_and_ids(engine: BlockingEngine) -> None:
    store = llama_index.ConspectusVectorStore(engine=engine)
    assert store.add(make_nodes()) == ["n0", "n1", "n2"] == store.add(make_nodes())
    result = store.query(VectorStoreQuery(query_embedding=[0.1, 0.2, 0.9], similarity_top_k=2))
    assert (result.ids, [node.metadata["place"] for node in result.nodes or ()]) == (["n2", "n1"], [2, 1])
    assert result.similarities == [pytest.approx(0.97, abs=0.01), pytest.approx(0.22, abs=0.01)]
    assert ids_of(store, mode=MODES.TEXT_SEARCH, query_str="backups", query_embedding=None) == ["n0"]
    assert set(ids_of(store, mode=MODES.HYBRID, query_str="backups", hybrid_top_k=2)) == {"n0", "n2"}
    assert ids_of(store, node_ids=["n0", "n1", "gone"]) == ["n1", "n0"]
    assert ids_of(store, doc_ids=["early"]) == ["n0"]
    [node] = store.get_nodes(["n1"])
    assert (node.ref_doc_id, node.get_content()) == ("late", PLANS[1])
    store.delete("late")
    store.delete_nodes(["gone"])
    assert ids_of(store) == ["n0"]
    store.clear()
    assert store.get_nodes() == []


ONE = MetadataFilter(key="place", value=1)
FILTERS: list[tuple[MetadataFilters, list[str]]] = [
    (MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)]), expected)
    for key, operator, value, expected in [
        ("place", FilterOperator.EQ, 1, ["n1"]),
        ("place", FilterOperator.NE, 1, ["n0", "n2"]),
        ("place", FilterOperator.GT, 1, ["n2"]),
        ("place", FilterOperator.GTE, 1, ["n1", "n2"]),
        ("place", FilterOperator.LT, 1, ["n0"]),
        ("place", FilterOperator.LTE, 1, ["n0", "n1"]),
        ("place", FilterOperator.IN, [0, 2], ["n0", "n2"]),
        ("place", FilterOperator.NIN, [0, 2], ["n1"]),
        ("tags", FilterOperator.ANY, ["odd"], ["n1"]),
        ("tags", FilterOperator.ALL, ["even", "all"], ["n0", "n2"]),
        ("tags", FilterOperator.CONTAINS, "odd", ["n1"]),
        ("color", FilterOperator.IS_EMPTY, None, ["n0", "n1", "n2"]),
    ]
] + [
    (MetadataFilters(filters=[ONE], condition=FilterCondition.NOT), ["n0", "n2"]),
    (MetadataFilters(filters=[ONE, MetadataFilters(filters=[])], condition=FilterCondition.AND), ["n1"]),
    (
        MetadataFilters(
            filters=[ONE, MetadataFilter(key="place", value=2)], condition=FilterCondition.OR
        ),
        ["n1", "n2"],
    ),
]  # fmt: skip


def test_llama_index_filters(engine: BlockingEngine) -> None:
    store = llama_index.ConspectusVectorStore(engine=engine)
    store.add(make_nodes())
    for filters, expected in FILTERS:
        assert sorted(ids_of(store, filters=filters)) == expected, filters
        assert sorted(node.node_id for node in store.get_nodes(filters=filters)) == expected, filters


async def test_an_index_of_llama_index_over_a_server(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as local:
        owner = await local.keys.create_first()
        assert owner is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=owner.secret, settings=SETTINGS) as remote,
        ):
            store = llama_index.ConspectusVectorStore(engine=remote)
            context = StorageContext.from_defaults(vector_store=store)
            documents = [Document(text=text, id_=f"d{number}") for number, text in enumerate(PLANS)]
            index = await asyncio.to_thread(
                VectorStoreIndex.from_documents, documents, context, embed_model=MockEmbedding(4)
            )
            nodes = await index.as_retriever(similarity_top_k=2).aretrieve("backups")
            assert {node.text for node in nodes} < set(PLANS)
            await index.adelete_ref_doc("d0")
            assert len(await store.aget_nodes()) == 2
            mine = langchain.ConspectusVectorStore(remote)
            assert await mine.aadd_texts(PLANS, ids=list("abc")) == list("abc")
            assert [document.id for document in await mine.asimilarity_search(PLANS[2], k=1)] == ["c"]


def refusals(engine: BlockingEngine) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls with an argument that does not exist, and its name."""
    store, vectors = langchain.ConspectusVectorStore(engine), llama_index.ConspectusVectorStore(engine=engine)
    retriever = langchain.ConspectusRetriever(engine=engine)
    adapters = [
        langchain.ConspectusRetriever,
        langchain.ConspectusVectorStore,
        langchain.ConspectusByteStore,
        llama_index.ConspectusRetriever,
        llama_index.ConspectusVectorStore,
        llama_index.ConspectusAsyncChatStore,
        llama_index.ConspectusMemoryBlock,
    ]
    for adapter in adapters:
        yield "colection", lambda adapter=adapter: adapter(engine=engine, colection="x")  # type: ignore[misc]
    yield "colection", lambda: langchain.ConspectusChatMessageHistory("c", engine, colection="x")  # type: ignore
    yield "colection", lambda: langchain.ConspectusVectorStore.from_texts([], engine=engine, colection="x")
    yield "budgt", lambda: retriever.invoke("q", budgt=1)
    yield "namespace", lambda: store.add_texts(["a"], namespace="x")
    yield "namespace", lambda: store.delete(["a"], namespace="x")
    yield "flor", lambda: (store.add_texts(["a"]), store.similarity_search("a", flor=0.2))
    yield "collection", lambda: store.similarity_search("a", collection="x")
    yield "filter", lambda: store.similarity_search("a", filter=["n"])
    yield "namespace", lambda: vectors.add(make_nodes(), namespace="x")
    yield "namespace", lambda: vectors.query(VectorStoreQuery(), namespace="x")
    yield "alpha", lambda: vectors.query(VectorStoreQuery(alpha=0.5))
    yield "mode", lambda: vectors.query(VectorStoreQuery(mode=MODES.MMR))
    yield "embedding", lambda: vectors.add([TextNode(text="x")])
    text = MetadataFilter(key="a", value="b", operator=FilterOperator.TEXT_MATCH)
    yield "text_match", lambda: vectors.get_nodes(filters=MetadataFilters(filters=[text]))


def test_unknown_arguments_are_refused_by_name(engine: BlockingEngine) -> None:
    for name, call in refusals(engine):
        with pytest.raises((InvalidInput, TypeError, ValidationError), match=name):
            call()


def test_invoke_takes_what_the_constructor_takes(engine: BlockingEngine) -> None:
    engine.add(PLANS, wait=True)
    retriever = langchain.ConspectusRetriever(engine=engine)
    assert len(retriever.invoke("backups meeting lunch", limit=1)) == 1
    assert len(asyncio.run(retriever.ainvoke("backups meeting lunch", limit=2))) == 2
    assert len(retriever.invoke("backups meeting lunch")) == 3
