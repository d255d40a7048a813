"""Confidence against right answers: how searches are asked, told apart, and counted in bins."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from benchmarks.abstention import (
    MIN_IN_BIN,
    Question,
    area,
    calibration,
    false_answers,
    queries_of,
    search_set,
)

from conspectus.model.query import Query


def write_rows(folder: Path, name: str, rows: Iterable[Mapping[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def test_the_area_is_the_share_of_pairs_in_order_and_equal_scores_are_half() -> None:
    is_answerable = np.array([True, True, False, False])
    assert area(np.array([0.9, 0.8, 0.2, 0.1]), is_answerable) == 1.0
    assert area(np.array([0.5, 0.5, 0.5, 0.5]), is_answerable) == 0.5
    assert area(np.array([0.1, 0.3, 0.2, 0.0]), is_answerable) == 0.75


def test_false_answers_are_those_above_what_keeps_nearly_all_others() -> None:
    scores = np.concatenate([np.linspace(0.0, 1.0, 20), [-1.0, 0.04, 0.06, 2.0]])
    is_answerable = np.arange(24) < 20
    assert false_answers(scores, is_answerable) == 0.5


def test_bins_with_few_searches_are_left_out() -> None:
    confidence = np.array([0.31] * MIN_IN_BIN + [1.0] * MIN_IN_BIN + [0.7])
    is_right = np.array([True, False] * MIN_IN_BIN + [True])
    bins = calibration(confidence, is_right)
    assert [(part.start, part.searches, part.right) for part in bins] == [
        (0.3, MIN_IN_BIN, 0.5),
        (0.9, MIN_IN_BIN, 0.5),
    ]
    assert bins[0].confidence == pytest.approx(0.31)


def test_a_question_is_asked_with_its_answers_and_without() -> None:
    question = Question(Query("where?"), "corpus", frozenset({"a"}))
    queries = list(queries_of(question, "set", ["id", *map(str, range(30))], ["id"]))
    assert [answers for _, answers, _ in queries[:2]] == ["stored", "removed"]
    nobody = Question(Query("who?"), "corpus", frozenset(), is_unanswerable=True)
    assert [answers for _, answers, _ in queries_of(nobody, "set", [], [])] == ["none"]


async def test_only_a_search_that_may_find_its_answer_is_right(tmp_path: Path) -> None:
    texts = ("The ferry leaves at nine.", "Herons nest in the reeds.")
    turns = [{"conv": "c", "session": 1, "dia_id": f"D{i}", "text": text} for i, text in enumerate(texts)]
    ferry = {"conv": "c", "qid": "1", "question": "When does the ferry leave?", "evidence": ["D0"]}
    nobody = {"conv": "c", "qid": "2", "question": "Who won?", "category": "abstention", "evidence": []}
    write_rows(tmp_path / "beam_100k", "messages.jsonl", turns)
    write_rows(tmp_path / "beam_100k", "questions.jsonl", [ferry, nobody])
    searches = await search_set(tmp_path, "beam_100k", str(tmp_path / "store"), 10)
    among_all = [search for search in searches if search.set == "beam_100k"]
    assert [(search.answers, search.is_right) for search in among_all] == [
        ("stored", True),
        ("removed", False),
        ("none", False),
    ]
    assert searches[0].confidence > searches[1].confidence > 0
