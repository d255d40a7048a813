"""The document store for Haystack: the standard tests that Haystack publishes, and its pipelines."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites
from tests.support.served import served

import conspectus
from conspectus import Settings
from conspectus.errors import InvalidInput
from conspectus.integrations.haystack import ConspectusDocumentStore, ConspectusRetriever
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
PLANS = ["Backups run at two.", "The meeting is on Thursday.", "Lunch is at noon."]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with conspectus.open(tmp_path_factory.mktemp("store"), embedder=HashedEmbedder()) as opened:
        yield opened


def drop_vectors(documents: list[Document]) -> list[Document]:
    """The documents as they come back: without embeddings, in an order of their own."""
    return sorted(
        (replace(document, embedding=None) for document in documents), key=lambda document: document.id
    )


class Equal:
    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        assert drop_vectors(received) == drop_vectors(expected)


class TestDocumentStore(
    Equal,
    suites.DocumentStoreBaseExtendedTests,
    suites.CountDocumentsByFilterTest,
    suites.CountUniqueMetadataByFilterTest,
    suites.GetMetadataFieldsInfoTest,
    suites.GetMetadataFieldMinMaxTest,
    suites.GetMetadataFieldUniqueValuesTest,
):
    @pytest.fixture
    def document_store(self, engine: BlockingEngine) -> ConspectusDocumentStore:
        name = f"store-{uuid4()}"
        return ConspectusDocumentStore(engine, source=name, collection=name)

    def test_write_documents(self, document_store: ConspectusDocumentStore) -> None:
        assert document_store.write_documents([Document(id="1", content="one")]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([Document(id="1", content="two"), Document(id="2")])
        self.assert_documents_are_equal(document_store.filter_documents(), [Document(id="1", content="one")])


class TestDocumentStoreInALoop(
    Equal,
    async_suites.CountDocumentsAsyncTest,
    async_suites.WriteDocumentsAsyncTest,
    async_suites.DeleteDocumentsAsyncTest,
    async_suites.DeleteByFilterAsyncTest,
    async_suites.UpdateByFilterAsyncTest,
    async_suites.DeleteAllAsyncTest,
    async_suites.FilterDocumentsAsyncTest,
    async_suites.CountDocumentsByFilterAsyncTest,
    async_suites.CountUniqueMetadataByFilterAsyncTest,
    async_suites.GetMetadataFieldsInfoAsyncTest,
    async_suites.GetMetadataFieldMinMaxAsyncTest,
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,
):
    @pytest.fixture
    async def document_store(self, tmp_path: Path) -> AsyncIterator[ConspectusDocumentStore]:
        async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
            yield ConspectusDocumentStore(engine)

    async def test_write_documents_async(self, document_store: ConspectusDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(id="1", content="one")]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([Document(id="1", content="two")])


DATES = [
    "2024-05-01",
    "2024-05-01T00:00:00",
    "2024-05-01T12:00:00+02:00",
    "2024-05-01T11:00:00Z",
    "2024-05-01 10:30",
    "2024-04-30T23:59:59.5",
    "2024-12-24",
]
DOCUMENTS = [
    Document(id=f"d{n}", content=f"text {n}", meta={"date": date, "n": n}) for n, date in enumerate(DATES)
]
DATES_NOW = [datetime.fromisoformat(date) for date in DATES]


@pytest.fixture(scope="module")
def dated_store(engine: BlockingEngine) -> ConspectusDocumentStore:
    store = ConspectusDocumentStore(engine, source="dated")
    store.write_documents(DOCUMENTS, policy=DuplicatePolicy.OVERWRITE)
    return store


@pytest.mark.parametrize("operator", ["==", "!=", ">", ">=", "<", "<="])
@pytest.mark.parametrize("value", [*DATES, *DATES_NOW], ids=str)
def test_dates_compare_as_in_haystacks_own_store(
    dated_store: ConspectusDocumentStore, operator: str, value: object
) -> None:
    assert_as_haystack(dated_store, {"field": "meta.date", "operator": operator, "value": value})


@pytest.mark.parametrize(
    "comparison",
    [
        {"field": "id", "operator": "==", "value": "d3"},
        {"field": "id", "operator": "!=", "value": "d3"},
        {"field": "id", "operator": "in", "value": ["d1", "d2", "x"]},
        {"field": "id", "operator": "not in", "value": ["d1", "d2", "x"]},
        {"field": "content", "operator": "==", "value": "text 2"},
        {"field": "content", "operator": "!=", "value": "text 2"},
        {"field": "content", "operator": "in", "value": ["text 2", "text 4"]},
        {"field": "meta.date", "operator": "in", "value": ["2024-05-01T10:00:00+00:00", "2024-12-24"]},
        {"field": "meta.date", "operator": "not in", "value": ["2024-05-01T10:00:00+00:00", "2024-12-24"]},
        {"field": "meta", "operator": "==", "value": {"date": DATES[0], "n": 0}},
        {"field": "meta.n", "operator": "in", "value": [1, None]},
        {"field": "n", "operator": ">=", "value": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("around", ["alone", "AND", "OR", "NOT"])
def test_ids_and_contents_are_filtered(
    dated_store: ConspectusDocumentStore, comparison: dict[str, Any], around: str
) -> None:
    few = {"field": "meta.n", "operator": "<", "value": 4}
    filters = comparison if around == "alone" else {"operator": around, "conditions": [comparison, few]}
    assert_as_haystack(dated_store, filters)


def assert_as_haystack(store: ConspectusDocumentStore, filters: dict[str, Any]) -> None:
    haystack_store = InMemoryDocumentStore()
    haystack_store.write_documents(DOCUMENTS)
    expected = {document.id for document in haystack_store.filter_documents(filters)}
    assert {document.id for document in store.filter_documents(filters)} == expected
    assert store.count_documents_by_filter(filters) == len(expected)
    response = ConspectusRetriever(store, top_k=10, retrievers=["vector"]).run("text", filters=filters)
    assert {document.id for document in response["documents"]} == expected


@pytest.mark.parametrize("field", ["embedding", "score", "blob"])
def test_a_filter_of_what_is_not_stored_is_an_error(dated_store: ConspectusDocumentStore, field: str) -> None:
    with pytest.raises(FilterError, match="not stored"):
        dated_store.filter_documents({"field": field, "operator": "==", "value": 1})


def build_store(engine: BlockingEngine) -> ConspectusDocumentStore:
    store = ConspectusDocumentStore(engine, source=f"plans-{uuid4()}")
    store.write_documents([Document(id=str(n), content=text, meta={"n": n}) for n, text in enumerate(PLANS)])
    return store


def test_a_pipeline_writes_and_retrieves(engine: BlockingEngine) -> None:
    store = ConspectusDocumentStore(engine, source="piped")
    writing = Pipeline()
    writing.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
    writing.run({"writer": {"documents": [Document(content=text) for text in PLANS]}})
    asking = Pipeline()
    asking.add_component("retriever", ConspectusRetriever(store, top_k=2))
    documents = asking.run({"retriever": {"query": "when do backups run?"}})["retriever"]["documents"]
    assert (documents[0].content, len(documents)) == (PLANS[0], 2)
    assert documents[0].score >= documents[1].score


def test_a_query_has_filters_and_a_limit_of_its_own(engine: BlockingEngine) -> None:
    only = {"field": "meta.n", "operator": "==", "value": 1}
    retriever = ConspectusRetriever(build_store(engine), filters=only)
    assert [document.id for document in retriever.run("lunch backups")["documents"]] == ["1"]
    other = {"field": "n", "operator": "in", "value": [0, 2]}
    assert len(retriever.run("lunch backups", filters=other)["documents"]) == 2
    assert len(retriever.run("lunch backups", filters=other, top_k=1)["documents"]) == 1
    words = ConspectusRetriever(build_store(engine), retrievers=["keyword"])
    assert [document.id for document in words.run("noon")["documents"]] == ["2"]


def test_embeddings_of_documents_are_searched_with_that_of_the_query(engine: BlockingEngine) -> None:
    store = ConspectusDocumentStore(engine, source="vectors", collection="given")
    store.write_documents([Document(id=str(n), embedding=[float(n == axis) for axis in range(3)], content="x")
                           for n in range(3)])  # fmt: skip
    retriever = ConspectusRetriever(store, retrievers=["vector"], top_k=1)
    assert [document.id for document in retriever.run("", query_embedding=[0.1, 0.2, 0.9])["documents"]] == [
        "2"
    ]
    assert store.update_by_filter({}, {"seen": True}) == 3
    assert [document.meta for document in retriever.run("", [0.1, 0.9, 0.2])["documents"]] == [{"seen": True}]


def test_a_pipeline_is_written_as_text_and_read_again(tmp_path: Path) -> None:
    store = ConspectusDocumentStore(tmp_path / "s")
    store.write_documents([Document(content=text) for text in PLANS])
    pipeline = Pipeline()
    pipeline.add_component("retriever", ConspectusRetriever(store, top_k=1))
    store.close()
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["conspectus.*"])
    documents = again.run({"retriever": {"query": "when is lunch?"}})["retriever"]["documents"]
    assert [document.content for document in documents] == [PLANS[2]]
    again.get_component("retriever").document_store.close()


def test_what_cannot_be_kept_is_refused(engine: BlockingEngine) -> None:
    store = ConspectusDocumentStore(engine, source="refused")
    with pytest.raises(InvalidInput, match="path"):
        store.to_dict()
    with pytest.raises(InvalidInput, match="blob"):
        store.write_documents([Document(blob=ByteStream(b"x"))])
    with pytest.raises(InvalidInput, match="metadata"):
        store.write_documents([Document(content="x", meta={"a": "\x00"})])
    assert store.count_documents() == 0


async def test_a_store_over_a_server(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as local:
        owner = await local.keys.create_first()
        assert owner is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=owner.secret, settings=SETTINGS) as remote,
        ):
            store = ConspectusDocumentStore(remote)
            many = [Document(id=str(number), content=f"Plan {number}") for number in range(1_100)]
            assert await store.write_documents_async(many) == 1_100
            assert await store.write_documents_async(many, DuplicatePolicy.SKIP) == 0
            assert await store.count_documents_async() == 1_100
            documents = await ConspectusRetriever(store).run_async("plan 7", top_k=3)
            assert "7" in [document.id for document in documents["documents"]]
