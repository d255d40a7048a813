"""The manager of video contexts, as programs written for it use it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.video_contexts import ListStore, PlainEmbeddings, SubjectEmbeddings, minute

from conspectus.errors import InvalidInput, StoreClosed
from conspectus.facades.video import (
    ContextManager,
    ContextStore,
    ContextWindow,
    Document,
    InMemoryContextStore,
    RetrievalResult,
)
from conspectus.facades.video.context_manager import MAX_EMBED_ATTEMPTS

TEXTS = ["A car arrives.", "A dog barks at the car.", "Rain falls."]


@pytest.fixture(params=["ours", "somebody else's"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[ContextStore]:
    store = InMemoryContextStore() if request.param == "ours" else ListStore()
    yield store
    await store.close()


@pytest.fixture
def embeddings() -> SubjectEmbeddings:
    return SubjectEmbeddings()


@pytest.fixture
def manager(embeddings: SubjectEmbeddings, store: ContextStore) -> ContextManager:
    return ContextManager(embeddings, store)


async def add_three(manager: ContextManager) -> list[str]:
    return await manager.add_documents_batch(TEXTS, [minute(number) for number in range(3)])


async def test_a_program_as_it_was_written_needs_nothing_else() -> None:
    manager = ContextManager(embeddings=SubjectEmbeddings())
    added = await manager.add_document(text="A car.", metadata={"stream_id": "v", "chunk_idx": 0})
    documents = await manager.retrieve(query="Which car?", top_k=1, filter_metadata={"stream_id": "v"})
    expected = {"id": added, "text": "A car.", "metadata": {"stream_id": "v", "chunk_idx": 0}, "score": 1.0}
    assert documents == [expected]
    await manager.close()
    with pytest.raises(StoreClosed, match="closed"):
        await manager.retrieve("car")


def test_a_manager_tells_what_it_was_made_of(store: ContextStore, embeddings: SubjectEmbeddings) -> None:
    manager = ContextManager(embeddings, store, max_context_tokens=7)
    assert (manager.store, manager.max_context_tokens) == (store, 7)
    assert manager._embeddings is embeddings


async def test_the_fields_of_a_document_are_read_by_name_too(manager: ContextManager) -> None:
    document = await manager.get_document((await add_three(manager))[0])
    assert (
        document is not None and document["text"] == TEXTS[0] and document["metadata"]["stream_id"] == "gate"
    )
    with pytest.raises(KeyError):
        document["score"]


def test_the_words_are_those_of_before() -> None:
    document = Document(id="1", text="t")
    assert (document.embedding, document.metadata, document.created_at.tzinfo is None) == (None, {}, False)
    assert RetrievalResult([document], [1.0], query="q", top_k=5).scores == [1.0]
    assert ContextWindow([document], total_tokens=3).truncated is False


async def test_questions_and_documents_are_embedded_each_in_their_own_way(
    manager: ContextManager, embeddings: SubjectEmbeddings
) -> None:
    ids = await add_three(manager)
    documents = await manager.retrieve("the dog and the car", top_k=2)
    assert [document["id"] for document in documents] == [ids[1], ids[0]]
    assert (embeddings.documents, embeddings.queries) == (TEXTS, ["the dog and the car"])
    assert await manager.retrieve("nothing of that kind") == []


async def test_embeddings_need_not_be_coroutines(store: ContextStore) -> None:
    manager = ContextManager(PlainEmbeddings(), store)
    ids = await add_three(manager)
    await manager.add_document("Another dog.", minute(3))
    assert [document["id"] for document in await manager.retrieve("rain", top_k=1)] == ids[2:]


async def test_an_empty_store_is_a_store() -> None:
    store = ListStore()
    manager = ContextManager(SubjectEmbeddings(), store)
    assert not store
    await manager.add_document("A car.", {})
    assert len(store) == 1
    ours = InMemoryContextStore()
    assert (len(ours), bool(ours)) == (0, True)
    await ContextManager(SubjectEmbeddings(), ours).add_document("A car.", {})
    assert len(ours) == 1
    await ours.close()


async def test_lists_of_unequal_length_are_an_error(manager: ContextManager) -> None:
    with pytest.raises(InvalidInput, match="metadatas"):
        await manager.add_documents_batch(["a", "b"], [{}])
    assert await manager.get_all_captions() == []
    assert await manager.add_documents_batch([], []) == []


async def test_a_document_that_cannot_be_embedded_is_stored_and_told(
    manager: ContextManager, embeddings: SubjectEmbeddings, caplog: pytest.LogCaptureFixture
) -> None:
    embeddings.failing = {"document"}
    with caplog.at_level(logging.WARNING, "conspectus.video"):
        first = await manager.add_document("A car.", minute(0))
        both = await manager.add_documents_batch(["A dog.", "Rain."], [minute(1), minute(2)])
    assert manager.pending == (first, *both)
    assert await manager.get_all_captions() == ["A car.", "A dog.", "Rain."]
    assert "3 documents" not in caplog.text and "2 documents are stored" in caplog.text
    assert "sk-secret" not in caplog.text


async def test_what_was_left_is_embedded_with_the_next_question(embeddings: SubjectEmbeddings) -> None:
    async with ContextManager(embeddings) as manager:
        embeddings.failing = {"document"}
        ids = await manager.add_documents_batch(["A car.", "A dog."], [{}, {}])
        embeddings.failing = {"A dog."}
        assert [document["id"] for document in await manager.retrieve("car")] == ids[:1]
        assert manager.pending == tuple(ids[1:])
        for _ in range(9):
            await manager.retrieve("car")
        assert embeddings.documents.count("A dog.") == 2 * MAX_EMBED_ATTEMPTS
        with pytest.raises(RuntimeError):
            await manager.embed_pending()
        embeddings.failing = set()
        assert (await manager.embed_pending(), manager.pending) == (1, ())
        assert (await manager.retrieve("dog"))[0]["id"] == ids[1]


async def test_a_store_that_takes_no_vector_later_is_not_asked_for_ever(
    embeddings: SubjectEmbeddings,
) -> None:
    manager = ContextManager(embeddings, ListStore())
    embeddings.failing = {"document"}
    added = await manager.add_document("A car.", {})
    embeddings.failing = set()
    for _ in range(9):
        await manager.retrieve("car")
    assert (manager.pending, embeddings.documents.count("A car.")) == ((added,), 1 + MAX_EMBED_ATTEMPTS)
    assert await manager.embed_pending() == 0


async def test_what_is_deleted_meanwhile_is_not_pending(embeddings: SubjectEmbeddings) -> None:
    store = ListStore()
    manager = ContextManager(embeddings, store)
    embeddings.failing = {"document"}
    await store.delete_document(await manager.add_document("A car.", {}))
    embeddings.failing = set()
    await manager.retrieve("car")
    assert manager.pending == ()


async def test_a_question_that_cannot_be_embedded_finds_nothing(
    manager: ContextManager, embeddings: SubjectEmbeddings, caplog: pytest.LogCaptureFixture
) -> None:
    await add_three(manager)
    embeddings.failing = {"query"}
    with caplog.at_level(logging.WARNING, "conspectus.video"):
        assert await manager.retrieve("car") == []
    assert "could not be embedded: RuntimeError" in caplog.text
    assert (await manager.get_context_window("car")).documents == []
    assert len((await manager.get_context_window("car", include_all=True)).documents) == 3


async def test_strict_managers_raise_what_went_wrong(store: ContextStore) -> None:
    embeddings = SubjectEmbeddings()
    manager = ContextManager(embeddings, store, strict=True)
    embeddings.failing = {"query", "document"}
    for work in (manager.retrieve("car"), manager.add_document("car", {}), manager.get_context_window("car")):
        with pytest.raises(RuntimeError, match="quota"):
            await work
    assert (await manager.get_all_captions(), manager.pending) == ([], ())


@pytest.mark.parametrize("rows", [[], [[1.0]] * 2, [[float("nan")] * 4], [[]], [None], [["a"]], None])
async def test_nonsense_of_an_embedder_is_a_failure_of_it(rows: Any) -> None:
    class Nonsense(SubjectEmbeddings):
        async def embed_documents(self, texts: list[str]) -> Any:
            return rows

    manager = ContextManager(Nonsense(), ListStore())
    ids = await manager.add_documents_batch(["a car"], [{}])
    assert (manager.pending, len(ids)) == (tuple(ids), 1)


async def test_cancelling_is_not_a_failure_of_the_embedder() -> None:
    class Slow(SubjectEmbeddings):
        async def embed_document(self, text: str) -> list[float]:
            await asyncio.Event().wait()
            return []

    store = ListStore()
    adding = asyncio.create_task(ContextManager(Slow(), store).add_document("a car", {}))
    await asyncio.sleep(0)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert store.documents == []


async def test_documents_are_stored_without_embedding_where_asked(
    manager: ContextManager, embeddings: SubjectEmbeddings
) -> None:
    added = await manager.add_document("a car", {}, generate_embedding=False)
    await manager.add_documents_batch(["a dog"], [{}], generate_embeddings=False)
    assert (embeddings.documents, manager.pending) == ([], ())
    assert await manager.retrieve("car") == []
    document = await manager.get_document(added)
    assert document is not None and document.text == "a car"
    assert (await manager.delete_document(added), await manager.delete_document(added)) == (True, False)
    assert await manager.get_document(added) is None


async def test_streams_are_cleared_one_by_one_or_together(manager: ContextManager) -> None:
    await add_three(manager)
    await manager.add_document("Elsewhere.", minute(0, "yard"))
    assert await manager.get_all_captions("yard") == ["Elsewhere."]
    assert await manager.clear_context("yard") == 1
    assert await manager.get_all_captions() == TEXTS
    assert (await manager.clear_context("yard"), await manager.clear_context()) == (0, 3)
    assert (await manager.get_all_captions(), await manager.retrieve("car")) == ([], [])


async def test_clearing_forgets_what_was_pending(
    manager: ContextManager, embeddings: SubjectEmbeddings
) -> None:
    embeddings.failing = {"document"}
    await manager.add_document("a", minute(0, "gate"))
    remaining = await manager.add_document("b", minute(0, "yard"))
    await manager.clear_context("gate")
    assert manager.pending == (remaining,)
    await manager.clear_context()
    assert manager.pending == ()


async def test_functions_are_known_by_name(manager: ContextManager) -> None:
    class Doubling:
        async def execute(self, number: int, *, plus: int = 0) -> int:
            return 2 * number + plus

    manager.register_function("double", Doubling())
    manager.register_function("half", lambda number: number / 2)
    assert manager.list_functions() == ["double", "half"]
    assert (await manager.call("double", 2, plus=1), await manager.call("half", 3)) == (5, 1.5)
    assert manager.get_function("nope") is None and callable(manager.get_function("half"))
    with pytest.raises(ValueError, match="'nope' not found"):
        await manager.call("nope")


@pytest.mark.parametrize("wrong", [None, object(), "gemini"])
def test_what_cannot_embed_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="embeddings"):
        ContextManager(wrong)
