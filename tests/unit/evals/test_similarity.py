"""The similarity of related and of unrelated texts: what is compared, and where it is shown."""

import json
from pathlib import Path

import pytest

import conspectus
from conspectus.errors import InvalidInput
from conspectus.evals.similarity import similarity
from conspectus.model.results import MINILM, Percentiles
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder

TOPICS = ("otters in rivers", "torque and force", "bread with rye", "harbor ferries", "violin strings")


def write_rows(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_retrieval_set(folder: Path) -> Path:
    folder.mkdir()
    write_rows(folder, "corpus.jsonl", [{"id": f"d{n}", "text": text} for n, text in enumerate(TOPICS)])
    write_rows(folder, "queries.jsonl", [{"id": f"q{n}", "text": text} for n, text in enumerate(TOPICS)])
    lines = ["qid\tdocid\tgrade", *(f"q{n}\td{n}\t1" for n in range(len(TOPICS))), ""]
    (folder / "qrels.tsv").write_text("\n".join(lines), encoding="utf-8")
    return folder


def write_conversation_set(folder: Path) -> Path:
    folder.mkdir()
    turns = [
        {"conv": "c", "session": "s", "dia_id": f"t{n}", "speaker": "ann", "text": text}
        for n, text in enumerate(TOPICS)
    ]
    write_rows(folder, "messages.jsonl", turns)
    question = {"qid": "q", "conv": "c", "question": TOPICS[0], "category": "1", "evidence": ["t0"]}
    write_rows(folder, "questions.jsonl", [question])
    return folder


async def test_a_text_that_answers_is_more_similar_than_a_random_other(tmp_path: Path) -> None:
    sets = [write_retrieval_set(tmp_path / "passages"), write_conversation_set(tmp_path / "chat")]
    similarities = await similarity(sets, settings=Settings())
    assert list(similarities) == ["passages", "chat", "all"]
    assert similarities["passages"].related == Percentiles(1.0, 1.0, 1.0)
    assert similarities["passages"].unrelated.p95 < 0.5
    assert similarities["chat"].unrelated.p95 < similarities["chat"].related.p5 < 1.0
    assert await similarity(sets, settings=Settings()) == similarities


async def test_a_set_needs_an_embedder_and_queries(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^embedder: "):
        await similarity([tmp_path], settings=Settings(embedder="none"))
    with pytest.raises(InvalidInput):
        await similarity([tmp_path], settings=Settings())


async def test_status_tells_what_was_measured_for_the_model(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path / "a", settings=Settings()) as engine:
        await engine.collections.get_or_create()
        await engine.collections.get_or_create("words", words_only=True)
        similarities = {
            collection.name: collection.similarity
            for collection in (await engine.maintenance.status()).collections
        }
    assert similarities == {"default": MINILM, "words": None}
    assert MINILM.unrelated.p50 < MINILM.unrelated.p95 < MINILM.related.p50
    async with conspectus.open(tmp_path / "b", settings=Settings(), embedder=HashedEmbedder()) as engine:
        await engine.collections.get_or_create()
        assert (await engine.maintenance.status()).collections[0].similarity is None
