"""Video contexts in a collection of a Milvus server that several programs share."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymilvus import CollectionSchema, DataType, FieldSchema, MilvusClient
from tests.support.milvus_server import MilvusProcess
from tests.unit.facades.video.test_store_engines import use_manager
from tests.video_contexts import SubjectEmbeddings, minute

from conspectus.errors import ConspectusError, InvalidInput
from conspectus.facades.video import ContextManager, MilvusContextStore, SummarizationFunction
from conspectus.model.captions import CaptionRange

COLUMNS = ("id", "text", "embedding", "stream_id", "chunk_idx", "start_time", "end_time")
ROWS = [
    ["a", "b", "c"],
    ["A car arrives.", "A dog barks.", "Nobody embedded this."],
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0] * 4],
    ["gate", "yard", "gate"],
    [1, 0, 0],
    ["00:01:00", "00:00:00", ""],
    ["00:02:00", "00:01:00", ""],
]


def open_store(milvus: MilvusProcess, name: str, dimensions: int = 4) -> MilvusContextStore:
    return MilvusContextStore("127.0.0.1", milvus.port, name, dimensions)


@pytest.fixture
def name() -> str:
    return f"films_{uuid4().hex}"


@pytest.fixture
async def store(milvus: MilvusProcess, name: str) -> AsyncIterator[MilvusContextStore]:
    async with open_store(milvus, name) as opened:
        yield opened


@pytest.fixture
def theirs(milvus: MilvusProcess, name: str) -> str:
    """A collection that another program made, without dynamic fields."""
    kinds = {"embedding": (DataType.FLOAT_VECTOR, {"dim": 4}), "chunk_idx": (DataType.INT64, {})}
    fields = [FieldSchema("id", DataType.VARCHAR, max_length=64, is_primary=True)]
    for column in COLUMNS[1:]:
        kind, size = kinds.get(column, (DataType.VARCHAR, {"max_length": 64}))
        fields.append(FieldSchema(column, kind, **size))
    client = MilvusClient(uri=milvus.uri)
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("embedding", index_type="IVF_FLAT", metric_type="COSINE", params={"nlist": 128})
    client.create_collection(name, schema=CollectionSchema(fields), index_params=indexes)
    client.insert(name, [dict(zip(COLUMNS, row, strict=True)) for row in zip(*ROWS, strict=True)])
    client.close()
    return name


async def test_it_is_the_same_as_in_memory(store: MilvusContextStore) -> None:
    async with ContextManager(SubjectEmbeddings()) as alone:
        expected = await use_manager(alone)
    assert await use_manager(ContextManager(SubjectEmbeddings(), store)) == expected


async def test_two_programs_share_what_they_store(
    milvus: MilvusProcess,
    name: str,
    store: MilvusContextStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = await store.add_document("A dog.", {"stream_id": "it's", "tags": ["x"]}, [0.0, 1.0, 0.0, 0.0])
    monkeypatch.chdir(tmp_path)
    async with open_store(milvus, name) as other:
        document = await other.get_document(added)
        assert document is not None and document.metadata == {"stream_id": "it's", "tags": ["x"]}
        assert [document.id for document, _ in await other.search([0.0, 2.0, 0.0, 0.0])] == [added]
        assert await other.delete_document(added) and not await other.delete_document(added)
    assert await store.get_document(added) is None and list(tmp_path.iterdir()) == []


async def test_a_collection_of_another_program_is_read(milvus: MilvusProcess, theirs: str) -> None:
    async with open_store(milvus, theirs) as store:
        manager = ContextManager(SubjectEmbeddings(), store)
        assert await manager.get_all_captions() == ["A dog barks.", "Nobody embedded this.", "A car arrives."]
        assert await manager.get_captions_by_time_range("00:00:30", "00:00:40") == ["A dog barks."]
        documents = await manager.retrieve("car", 5, {"stream_id": "gate"})
        assert [(document["id"], document["text"]) for document in documents] == [("a", "A car arrives.")]
        assert documents[0]["metadata"] == minute(1)
        assert await store.set_embedding("c", [1.0, 1.0, 0.0, 0.0])
        assert {document["id"] for document in await manager.retrieve("car")} == {"a", "b", "c"}
        assert await manager.clear_context("gate") == 2
        assert await manager.get_all_captions() == ["A dog barks."]


async def test_another_program_reads_and_writes_it(
    milvus: MilvusProcess, name: str, store: MilvusContextStore
) -> None:
    added = await store.add_document("A car.", minute(1, color="red"), [1.0, 0.0, 0.0, 0.0])
    client = MilvusClient(uri=milvus.uri)
    [row] = client.query(name, filter='id != ""', output_fields=list(COLUMNS), consistency_level="Strong")
    client.insert(name, [dict(zip(COLUMNS, (column[0] for column in ROWS), strict=True))])
    client.close()
    assert (row["id"], row["text"], row["stream_id"], row["chunk_idx"]) == (added, "A car.", "gate", 1)
    assert (row["start_time"], row["end_time"]) == ("00:01:00", "00:02:00")
    assert {document.id for document in await store.get_all_documents({"stream_id": "gate"})} == {added, "a"}


async def test_what_a_collection_cannot_keep_is_refused(milvus: MilvusProcess, theirs: str) -> None:
    async with open_store(milvus, theirs) as store:
        with pytest.raises(InvalidInput, match=r"metadata\.color"):
            await store.add_documents(["fine", "not"], [minute(1), minute(2, color="red")], [None, None])
        assert len(await store.get_all_documents()) == 3
        await store.add_document("fine", minute(1))
        assert len(await store.get_all_documents({"stream_id": "gate"})) == 3
    async with open_store(milvus, theirs, 3) as other:
        with pytest.raises(InvalidInput, match="have 4 numbers"):
            await other.search([1.0, 0.0, 0.0])


WRONG: list[tuple[str, dict[str, Any], list[float]]] = [
    ("x", {}, [1.0]),
    ("x" * 70_000, {}, [1.0] * 4),
    ("x", {"stream_id": "ü" * 40}, [1.0] * 4),
    ("x", {"stream_id": 5}, [1.0] * 4),
    ("x", {"a": object()}, [1.0] * 4),
    ("x", {"a": "y" * 70_000}, [1.0] * 4),
    ("x", {}, [float("nan")] * 4),
]


@pytest.mark.parametrize(("text", "metadata", "vector"), WRONG)
async def test_what_milvus_has_no_room_for_is_refused(
    store: MilvusContextStore, text: str, metadata: dict[str, Any], vector: list[float]
) -> None:
    with pytest.raises(InvalidInput):
        await store.add_document(text, metadata, vector)
    assert await store.get_all_documents() == []


async def test_names_lead_out_of_no_expression(store: MilvusContextStore) -> None:
    streams = ["it's", 'q"x', "back\\", '" or id != "', "ü🎉", "a\nb", "", "%", "\ud800"]
    for stream in streams:
        await store.add_document(json.dumps(stream), {"stream_id": stream}, [1.0, 0.0, 0.0, 0.0])
    for stream in streams:
        documents = await store.get_all_documents({"stream_id": stream})
        assert [document.text for document in documents] == [json.dumps(stream)]
        assert await store.get_document(stream) is None
    assert await store.clear_stream('" or id != "') == 1
    assert len(await store.get_all_documents()) == len(streams) - 1


async def test_filters_look_as_far_as_they_must(store: MilvusContextStore) -> None:
    far = [{"place": number, "tags": ["x"] if number > 27 else []} for number in range(30)]
    vectors = [[1.0, number / 10, 0.0, 0.0] for number in range(30)]
    await store.add_documents([str(document["place"]) for document in far], far, vectors)
    scored = await store.search([1.0, 0.0, 0.0, 0.0], 2, {"tags": ["x"]})
    assert [document.text for document, _ in scored] == ["28", "29"]
    assert await store.search([1.0, 0.0, 0.0, 0.0], 2, {"place": True}) == []
    assert len(await store.between(CaptionRange(None, None))) == 30


async def test_a_server_that_is_away_is_an_error_each_time() -> None:
    async with MilvusContextStore(port=1) as store:
        for _ in range(2):
            with pytest.raises(ConspectusError):
                await store.get_all_documents()


def test_summaries_need_an_engine(milvus: MilvusProcess, name: str) -> None:
    with pytest.raises(InvalidInput, match="engine"):
        SummarizationFunction(open_store(milvus, name))
