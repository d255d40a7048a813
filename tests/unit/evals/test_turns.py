"""The evaluation of questions with turns before them, over the real engine."""

import json
from pathlib import Path

import pytest

from conspectus.errors import InvalidInput
from conspectus.evals.turns import turns
from conspectus.settings import Settings

WORDS_ONLY = Settings(embedder="none")


def write_rows(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def build_history(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "agent")[number % 2], "text": text} for number, text in enumerate(texts)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [
        {"id": f"{name}{n}", "text": f"The {name} costs {n} euros"} for name in ("desk", "pen") for n in "12"
    ]
    write_rows(tmp_path, "corpus.jsonl", [*documents, {"id": "other", "text": "of something else"}])
    history = build_history("Where is the desk?", "Upstairs.", "Is the cheap pen of wood?", "Yes.")
    queries = [
        {"id": "first", "text": "How many euros for the desk of Wood & Sons?"},
        {"id": "next", "text": "What does it cost?", "history": history, "multi_turn": ["Follow-up"]},
        {"id": "loose", "text": "Where is the desk?", "history": history},
        {"id": "nowhere", "text": "Why?", "history": history},
    ]
    write_rows(tmp_path, "queries.jsonl", queries)
    grades = ["first\tdesk1\t1", "first\tdesk2\t1", "next\tpen1\t1", "next\tpen2\t1", "loose\tdesk1\t1"]
    (tmp_path / "qrels.tsv").write_text("\n".join(["qid\tdocid\tgrade", *grades, "nowhere\tother\t0", ""]))
    return tmp_path


async def test_each_way_of_asking_is_measured_by_kind(folder: Path) -> None:
    report = await turns(folder, settings=WORDS_ONLY)
    assert list(report) == ["last", "previous", "every", "standalone"]
    counts = {"Follow-up": 1, "all": 3, "first": 1, "other": 1, "switched": 1}
    assert all(
        {kind: part["questions"] for kind, part in kinds.items()} == counts for kinds in report.values()
    )
    assert report["standalone"]["Follow-up"]["ndcg@10"] == 100.0
    assert report["previous"]["Follow-up"]["ndcg@10"] == 100.0
    assert report["last"]["Follow-up"]["ndcg@10"] < 100.0
    assert report["standalone"]["switched"] == report["last"]["switched"] == report["last"]["first"]
    assert len({way["first"]["ndcg@10"] for way in report.values()}) == 1


@pytest.mark.parametrize("history", ["no list", [1], [{"role": "user"}], [{"text": "a"}]])
async def test_a_history_that_cannot_be_read_is_named(folder: Path, history: object) -> None:
    write_rows(folder, "queries.jsonl", [{"id": "next", "text": "What?", "history": history}])
    with pytest.raises(InvalidInput, match=r"queries\.jsonl line 1"):
        await turns(folder, settings=WORDS_ONLY)


@pytest.mark.data
@pytest.mark.slow
async def test_questions_made_to_stand_alone_find_more(evaluation) -> None:
    report = await turns(evaluation("mtrag_un"), settings=Settings())
    figures = {way: {kind: part["ndcg@10"] for kind, part in kinds.items()} for way, kinds in report.items()}
    ours = figures.pop("standalone")
    assert ours["Follow-up"] >= figures["last"]["Follow-up"] + 5
    assert ours["first"] == figures["last"]["first"]
    assert ours["switched"] >= figures["previous"]["switched"] + 1
    assert all(ours["all"] >= other["all"] + 1 for other in figures.values())
