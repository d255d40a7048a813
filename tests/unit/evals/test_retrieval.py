"""Evaluations run over the real engine: what is measured, under which filter, and in which form."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conspectus.errors import InvalidInput
from conspectus.evals.conversation import conversation
from conspectus.evals.retrieval import retrieval
from conspectus.model.graph import GraphExpansion
from conspectus.settings import Settings

WORDS_ONLY = Settings(embedder="none")


def write_rows(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_retrieval_set(folder: Path) -> Path:
    long = "\n\n".join(f"Section {number} of the gardening book is about roses." for number in range(400))
    documents = [{"id": "long", "text": long, "shelf": 1}]
    documents += [
        {"id": f"d{n}", "title": f"Note {n}", "text": f"roses and number{n}", "shelf": n % 2}
        for n in range(120)
    ]
    write_rows(folder, "corpus.jsonl", documents)
    queries = [{"id": "q", "text": "number7"}, {"id": "f", "text": "roses", "filter": {"shelf": 0}}]
    write_rows(folder, "queries.jsonl", queries)
    grades = [f"f\td{n}\t1" for n in range(0, 120, 2)]
    (folder / "qrels.tsv").write_text(
        "\n".join(["qid\tdocid\tgrade", "q\td7\t1", *grades, ""]), encoding="utf-8"
    )
    return folder


def write_conversation_set(folder: Path) -> Path:
    turns = [
        {
            "conv": c,
            "session": s,
            "dia_id": f"{s}:{n}",
            "speaker": "Ann",
            "text": f"In {c} we talked of topic{s}x{n}.",
        }
        for c in ("one", "two")
        for s in (1, 2)
        for n in range(8)
    ]
    write_rows(folder, "messages.jsonl", turns)
    questions = [
        {"conv": "one", "qid": 1, "question": "topic1x3?", "category": "b", "evidence": ["1:3"]},
        {"conv": "two", "qid": 2, "question": "topic2x5", "category": "a", "evidence": ["2:5", "1:0"]},
    ]
    write_rows(folder, "questions.jsonl", questions)
    return folder


async def test_documents_are_ranked_by_their_best_chunk_under_the_filter(tmp_path):
    report = await retrieval(write_retrieval_set(tmp_path), settings=WORDS_ONLY)
    assert list(report) == ["keyword", "hybrid"]
    # q finds its one document; under the filter all 60 are relevant, ten of which fit into the first ten.
    assert report["keyword"] == {
        "ndcg@10": 100.0,
        "recall@10": round(50 * (1 + 10 / 60), 2),
        "recall@100": 100.0,
        "by_question": {
            "q": {"ndcg@10": 1.0, "recall@10": 1.0, "recall@100": 1.0},
            "f": {"ndcg@10": 1.0, "recall@10": 10 / 60, "recall@100": 1.0},
        },
    }
    assert report["hybrid"] == report["keyword"]


async def test_with_the_graph_both_ways_are_told(tmp_path):
    report = await retrieval(write_retrieval_set(tmp_path), graph=GraphExpansion(), settings=WORDS_ONLY)
    assert list(report) == ["hybrid", "hybrid with graph"]
    plain = (await retrieval(write_retrieval_set(tmp_path), settings=WORDS_ONLY))["hybrid"]
    by_question = {
        name: {**plain["by_question"][name], "recall@5": share} for name, share in (("q", 1.0), ("f", 5 / 60))
    }
    assert report["hybrid"] == {**plain, "recall@5": round(50 * (1 + 5 / 60), 2), "by_question": by_question}
    assert report["hybrid with graph"].keys() == report["hybrid"].keys()
    conversation_report = await conversation(
        write_conversation_set(tmp_path), graph=GraphExpansion(), settings=WORDS_ONLY
    )
    assert conversation_report["questions"] == 2
    assert conversation_report["by_question"].keys() == {"1", "2"}


async def test_a_document_of_many_chunks_does_not_crowd_out_the_others(tmp_path):
    folder = write_retrieval_set(tmp_path)
    write_rows(folder, "queries.jsonl", [{"id": "f", "text": "roses gardening"}])
    (folder / "qrels.tsv").write_text("h\nf\tlong\t1\nf\td1\t1\n", encoding="utf-8")
    small = replace(WORDS_ONLY, chunk_size=60, chunk_overlap=0)
    report = await retrieval(folder, settings=small)
    assert report["keyword"]["recall@100"] == 100.0


async def test_conversations_are_searched_one_by_one(tmp_path):
    seen: list[tuple[str, int, int]] = []
    folder = write_conversation_set(tmp_path)
    report = await conversation(folder, settings=WORDS_ONLY, progress=lambda *step: seen.append(step))
    assert report["turn_recall@10"] == sum(report["by_category"].values()) / 2
    assert list(report["by_category"]) == ["a", "b"]
    assert report["by_category"]["b"] == 100.0
    assert report["session_hit@1"] == 100.0
    assert report["evidence_in_budget"] >= 75.0
    assert report["questions"] == 2
    assert seen[-1] == ("asking", 2, 2)


async def test_every_arm_is_measured_where_there_is_an_embedder(tmp_path):
    write_rows(
        tmp_path,
        "corpus.jsonl",
        [{"id": "cat", "text": "A kitten sleeps."}, {"id": "car", "text": "Engines roar."}],
    )
    write_rows(tmp_path, "queries.jsonl", [{"id": "q", "text": "young cats"}])
    (tmp_path / "qrels.tsv").write_text("h\nq\tcat\t1\n", encoding="utf-8")
    report = await retrieval(tmp_path, settings=Settings())
    assert list(report) == ["keyword", "vector", "hybrid"]
    assert [report[arms]["recall@10"] for arms in report] == [0.0, 100.0, 100.0]


async def test_without_tokens_there_is_no_evidence(tmp_path):
    report = await conversation(write_conversation_set(tmp_path), max_tokens=0, settings=WORDS_ONLY)
    assert report["evidence_in_budget"] == 0.0
    assert report["session_hit@1"] == 100.0
    with pytest.raises(InvalidInput, match="negative"):
        await conversation(tmp_path, max_tokens=-1)


async def test_the_same_data_give_the_same_report(tmp_path):
    folder = write_conversation_set(tmp_path)
    assert await conversation(folder, settings=WORDS_ONLY) == await conversation(folder, settings=WORDS_ONLY)


@pytest.mark.parametrize("phase", ["writing", "asking"])
@pytest.mark.parametrize(
    ("measure", "prepare"), [(retrieval, write_retrieval_set), (conversation, write_conversation_set)]
)
async def test_a_cancelled_evaluation_does_nothing_more(tmp_path, measure, prepare, phase):
    """Its last work is to close and delete its store, which costs a tenth of a second at most."""
    steps, cancelled = [], []

    def progress(step: str, done: int, total: int) -> None:
        steps.append(step)
        if step.startswith(phase) and not cancelled:
            cancelled.append((len(steps), time.process_time()))
            evaluation.cancel()

    evaluation = asyncio.create_task(measure(prepare(tmp_path), settings=WORDS_ONLY, progress=progress))
    with pytest.raises(asyncio.CancelledError):
        await evaluation
    [(number, start)] = cancelled
    assert len(steps) == number
    assert time.process_time() - start < 0.1
