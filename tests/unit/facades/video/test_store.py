"""The store of video contexts: in memory, and in an engine that is open."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.video_contexts import minute

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import InvalidInput
from conspectus.facades.video import EngineContextStore, InMemoryContextStore
from conspectus.model.captions import NewCaption

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SETTINGS = replace(Settings(), embedder="none")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def shared(engine: Engine) -> EngineContextStore:
    return EngineContextStore(engine)


@pytest.fixture(params=["memory", "engine"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EngineContextStore]:
    if request.param == "memory":
        async with InMemoryContextStore() as memory_store:
            yield memory_store
    else:
        async with conspectus.open(tmp_path / "other", settings=SETTINGS) as opened:
            yield EngineContextStore(opened)


async def add_three(store: EngineContextStore) -> list[str]:
    vectors = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 1.0, 0.0]]
    streams = ["gate", "gate", "yard"]
    return [
        await store.add_document(f"text {number}", {"stream_id": stream, "chunk_idx": number}, vector)
        for number, (vector, stream) in enumerate(zip(vectors, streams, strict=True))
    ]


async def test_ids_have_36_characters(store: EngineContextStore) -> None:
    first, *_ = await add_three(store)
    assert UUID.fullmatch(first)
    document = await store.get_document(first)
    assert document is not None
    assert (document.text, document.metadata) == ("text 0", {"stream_id": "gate", "chunk_idx": 0})
    assert document.created_at.tzinfo is not None
    assert await store.get_document("nobody") is None and await store.get_document("") is None


async def test_the_most_similar_come_first(store: EngineContextStore) -> None:
    ids = await add_three(store)
    unembedded = await store.add_document("text", {"stream_id": "gate"})
    scored = await store.search([2.0, 0.0, 0.0], top_k=10)
    assert [(document.id, round(score, 2)) for document, score in scored] == list(
        zip(ids, (1.0, 0.6, 0.0), strict=True)
    )
    assert unembedded not in {document.id for document, _ in scored}
    assert [match.id for match, _ in await store.search([2.0, 0.0, 0.0], top_k=1)] == ids[:1]
    assert await store.search([2.0, 0.0, 0.0], top_k=0) == []
    only = await store.search([2.0, 0.0, 0.0], 10, {"stream_id": "yard"})
    assert [document.id for document, _ in only] == ids[2:]


async def test_a_vector_of_zeros_finds_nothing_and_is_not_kept(store: EngineContextStore) -> None:
    assert await store.search([0.0, 0.0]) == []
    zero = await store.add_document("nothing in it", {}, [0.0, 0.0, 0.0])
    await add_three(store)
    assert await store.search([0.0, 0.0, 0.0]) == []
    assert zero not in {match.id for match, _ in await store.search([1.0, 1.0, 1.0], 10)}
    assert len(await store.get_all_documents()) == 4
    assert await store.set_embedding(zero, [0.0, 0.0, 0.0]) is False
    assert await store.set_embedding(zero, [0.0, 0.0, 2.0]) is True
    assert (await store.search([0.0, 0.0, 1.0]))[0][0].id == zero


async def test_all_come_in_the_order_of_chunk_idx_then_as_they_came(store: EngineContextStore) -> None:
    for number in (2, 0, 1):
        await store.add_document(f"text {number}", {"chunk_idx": number, "stream_id": f"s{number}"})
    first = await store.add_documents(
        ["b", "a", "c"], [{}, {"chunk_idx": None}, {"chunk_idx": "x"}], [None] * 3
    )
    texts = [document.text for document in await store.get_all_documents()]
    assert texts == ["text 0", "b", "a", "c", "text 1", "text 2"]
    assert [document.id for document in await store.get_all_documents({"chunk_idx": None})] == first[:2]


async def test_what_is_deleted_is_gone_and_counted(store: EngineContextStore) -> None:
    first, second, _ = await add_three(store)
    assert await store.delete_document("nobody") is False
    assert await store.delete_document(first) is True
    assert await store.delete_document(first) is False
    assert await store.set_embedding(first, [1.0, 0.0, 0.0]) is False
    assert [match.id for match, _ in await store.search([1.0, 0.0, 0.0], 1)] == [second]
    assert await store.clear() == 2
    assert (await store.clear(), await store.get_all_documents()) == (0, [])


VALUES: list[Any] = [
    "plain", "it's \"quoted\" \\ ünï 🎉", "", 7, -7, 2.5, 1e300, True, False, None,
    [], ["a"], ["a", "b"], [1, [2.5, None]], {}, {"a": 1}, {"a": {"b": [1]}}, "2024-05-01T10:00:00Z",
]  # fmt: skip


async def test_any_value_can_be_looked_for_as_it_is(store: EngineContextStore) -> None:
    facts = [{"value": content} for content in VALUES] + [{'other key.with " marks': "x"}]
    ids = await store.add_documents(["t"] * len(facts), facts, [[1.0, 0.0]] * len(facts))
    for number, value in enumerate(VALUES):
        expected = [ids[number]] if value is not None else [ids[number], ids[-1]]
        scored = await store.search([1.0, 0.0], 100, {"value": value})
        assert [document.id for document, _ in scored] == expected, value
        assert [document.id for document in await store.get_all_documents({"value": value})] == expected, (
            value
        )
        assert scored[0][0].metadata == {"value": value}
    odd = await store.search([1.0, 0.0], 100, {'other key.with " marks': "x"})
    assert [document.id for document, _ in odd] == ids[-1:]


@pytest.mark.parametrize(
    ("stored", "requested"),
    [(["a", "b"], "a"), ("a", ["a"]), (1, "1"), (True, 1), ({"a": 1, "b": 2}, {"a": 1})],
)
async def test_what_only_looks_alike_is_not_found(
    shared: EngineContextStore, stored: Any, requested: Any
) -> None:
    await shared.add_document("t", {"value": stored, "stream_id": "s"}, [1.0])
    assert await shared.search([1.0], 5, {"value": requested}) == []
    assert await shared.get_all_documents({"value": requested}) == []


async def test_numbers_are_equal_however_they_are_written(shared: EngineContextStore) -> None:
    await shared.add_document("t", {"value": 1, "list": [1, {"a": 2.0}]}, [1.0])
    assert len(await shared.get_all_documents({"value": 1.0, "list": (1.0, {"a": 2})})) == 1


@pytest.mark.parametrize(
    "stream", ["", " ", "x" * 2_000, "a\nb", 5, 5.5, True, ["a"], {"a": 1}, "*", "a/b?c"]
)
async def test_any_value_can_name_a_stream(shared: EngineContextStore, stream: Any) -> None:
    await shared.add_document("other", {"stream_id": "other"}, [1.0])
    await shared.add_document("none", {}, [1.0])
    mine = await shared.add_document("mine", {"stream_id": stream}, [1.0])
    assert [document.id for document, _ in await shared.search([1.0], 9, {"stream_id": stream})] == [mine]
    assert [document.text for document in await shared.get_all_documents({"stream_id": None})] == ["none"]
    assert await shared.clear_stream(stream) == 1
    assert [document.text for document in await shared.get_all_documents()] == ["other", "none"]


async def test_numbers_and_their_digits_are_different_streams(shared: EngineContextStore) -> None:
    await shared.add_documents(["number", "digits"], [{"stream_id": 5}, {"stream_id": "5"}], [[1.0]] * 2)
    assert [document.text for document, _ in await shared.search([1.0], 9, {"stream_id": 5})] == ["number"]
    assert await shared.clear_stream("5") == 1
    assert [document.text for document in await shared.get_all_documents()] == ["number"]


@pytest.mark.parametrize(
    "vector", [[1.0], [1.0] * 4, [float("nan"), 1.0, 1.0], [float("inf"), 0.0, 0.0], ["a"], 5]
)
async def test_what_cannot_be_compared_is_refused(shared: EngineContextStore, vector: Any) -> None:
    await add_three(shared)
    with pytest.raises(InvalidInput):
        await shared.add_document("bad", {}, vector)
    assert len(await shared.get_all_documents()) == 3


async def test_vectors_may_come_after_texts(store: EngineContextStore) -> None:
    early = await store.add_document("early", {})
    assert await store.search([1.0, 0.0]) == []
    late = await store.add_document("late", {}, [1.0, 0.0])
    assert [match.id for match, _ in await store.search([1.0, 0.0])] == [late]
    assert await store.set_embedding(early, [1.0, 1.0])
    assert [match.id for match, _ in await store.search([1.0, 0.0])] == [late, early]


async def test_nothing_is_made_by_reading(engine: Engine) -> None:
    store = EngineContextStore(engine, collection="films")
    assert await store.search([1.0]) == await store.get_all_documents() == []
    assert await store.clear() == await store.clear_stream("s") == 0
    assert await store.delete_document("x") is False and await store.get_document("x") is None
    assert list(await engine.collections.list()) == []


async def test_a_cleared_stream_leaves_nothing_behind(engine: Engine) -> None:
    store = EngineContextStore(engine)
    await add_three(store)
    assert await store.clear_stream("gate") == 2
    [status] = (await engine.maintenance.status(collection="video")).collections
    assert (status.documents, status.chunks, status.vectors, status.sources) == (1, 1, 1, 1)
    assert [source.name for source in await engine.collections.list_sources(collection="video")] == ["yard"]
    assert await store.clear_stream("gate") == await store.clear_stream("never") == 0


async def test_documents_of_other_collections_are_out_of_reach(engine: Engine) -> None:
    store = EngineContextStore(engine)
    await add_three(store)
    [secret] = await engine.add("secret", collection="private")
    assert await store.get_document(secret.id) is None
    assert await store.delete_document(secret.id) is False
    assert await engine.documents.count(collection="private") == 1


async def test_captions_that_came_another_way_belong_to_it(engine: Engine) -> None:
    await engine.collections.get_or_create("video", words_only=True)
    spoken = NewCaption("hello", "0:05", "0:07", index=3, metadata={"file": "a.srt"})
    await engine.streams.add_captions(spoken, stream="talk", collection="video")
    store = EngineContextStore(engine)
    [document] = await store.get_all_documents({"stream_id": "talk"})
    expected = {"stream_id": "talk", "chunk_idx": 3, "start_time": 5.0, "end_time": 7.0, "file": "a.srt"}
    assert (document.text, document.metadata) == ("hello", expected)
    assert await store.clear_stream("talk") == 1


async def test_a_long_text_is_one_document(store: EngineContextStore) -> None:
    text = "A car passes. " * 2_000
    await store.add_document(text, minute(0), [1.0, 0.0])
    await store.add_document("short", minute(1), [0.8, 0.6])
    scored = await store.search([1.0, 0.0], 2)
    assert [(document.text, round(score, 2)) for document, score in scored] == [(text, 1.0), ("short", 0.8)]
