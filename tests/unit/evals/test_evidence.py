"""Evidence inside windows: which sentences answer, where they stand, and when they count."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from conspectus.errors import InvalidInput
from conspectus.evals.compare import compare_reports
from conspectus.evals.evidence import evidence
from conspectus.evals.evidence_sets import HEADING, JUDGED, WORDS, by_kind, read_evidence_set
from conspectus.settings import Settings

WORDS_ONLY = Settings(embedder="none")
PAGE = """# Garden

Roses need pruning every spring before their leaves appear again.

## Water

Water the beds early every morning before summer heat arrives there.
- In a list, Nothing counts although long sentences stand there too.

```
Code Does Not Count Although Sentences Stand There Without Indentation.
```

The pump behind the wooden shed fills seventeen large green barrels.
"""
RST = "Pumps\n=====\n\nThe pump behind the old wooden shed fills\nseventeen large green barrels daily.\n"


def write_rows(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_judged_set(folder: Path) -> Path:
    documents = [
        {"id": "a", "title": "Opening", "text": "The hall opens at nine. It closes late.", "town": "Ulm"},
        {"id": "b", "title": "Parking", "text": "Cars park behind the hall.", "town": "Ulm"},
        {"id": "c", "title": "Opening", "text": "Never on Sundays.", "town": "Bonn"},
    ]
    write_rows(folder, "corpus.jsonl", documents)
    write_rows(folder, "queries.jsonl", [{"id": "q", "text": "park cars hall", "filter": {"town": "Ulm"}}])
    (folder / "qrels.tsv").write_text("qid\tdocid\tgrade\nq\tb\t1\nq\ta\t1\n", encoding="utf-8")
    return folder


def read_questions(folder: Path, **fields: str) -> dict[str, list[tuple[str, list[str]]]]:
    """Each question with the text of its evidence, by kind."""
    evidence_set = read_evidence_set(folder, WORDS_ONLY, **fields)
    texts = {document.key: document.text for document in evidence_set.documents}
    return {
        kind: [
            (question.text, [texts[key][slice(*span)] for key, span in question.spans])
            for question in questions
        ]
        for kind, questions in by_kind(evidence_set.questions, None).items()
    }


def test_files_are_asked_by_their_headings_and_by_half_of_the_words_of_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "garden.md").write_text(PAGE, encoding="utf-8")
    (tmp_path / "pumps.rst").write_text(RST, encoding="utf-8")
    questions = read_questions(tmp_path)
    water, pump = PAGE.split("\n")[6], PAGE.split("\n")[-2]
    assert questions[HEADING][1:] == [
        ("Garden Water", [water]),
        ("Pumps Pumps", [RST.split("\n\n")[1].strip()]),
    ]
    assert questions[WORDS][1] == ("pump wooden fills large barrels", [pump])


def test_judged_documents_answer_with_all_their_sentences_alone_and_on_pages(tmp_path: Path) -> None:
    answers = ["The hall opens at nine.", "It closes late.", "Cars park behind the hall."]
    assert read_questions(write_judged_set(tmp_path)) == {JUDGED: [("park cars hall", answers)]}
    assert read_questions(tmp_path, pages="town") == {JUDGED: [("park cars hall", answers)]}
    pages = read_evidence_set(tmp_path, WORDS_ONLY, pages="town").documents
    assert [page.key for page in pages] == ["Ulm", "Bonn"]
    assert pages[1].text == "# Bonn\n\n## Opening\n\nNever on Sundays.\n\n"


def test_spans_of_questions_are_their_evidence(tmp_path: Path) -> None:
    write_rows(tmp_path, "corpus.jsonl", [{"id": "a", "text": "One. Two. Three."}])
    spans = [{"start": 5, "end": 9}]
    write_rows(tmp_path, "queries.jsonl", [{"id": "q", "text": "?", "doc": "a", "spans": spans}])
    assert read_questions(tmp_path) == {JUDGED: [("?", ["Two."])]}


def test_a_folder_without_headings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Nothing.", encoding="utf-8")
    with pytest.raises(InvalidInput, match="files with headings"):
        read_evidence_set(tmp_path, WORDS_ONLY)


async def test_evidence_counts_by_the_window_it_fits_into(tmp_path: Path) -> None:
    report = await evidence(write_judged_set(tmp_path), budgets=(0, 15, 500), settings=WORDS_ONLY)
    by_question = {"q": {"0": 0.0, "15": 1 / 3, "500": 1.0}}
    assert report == {JUDGED: {"0": 0.0, "15": 33.33, "500": 100.0, "asked": 1, "by_question": by_question}}
    with pytest.raises(InvalidInput, match="max_tokens"):
        await evidence(tmp_path, budgets=(-1,))


async def test_a_report_can_have_the_windows(tmp_path: Path) -> None:
    """The passages that count, with their texts; comparisons do not take them for figures."""
    report = await evidence(write_judged_set(tmp_path), budgets=(0, 500), windows=True, settings=WORDS_ONLY)
    windows = cast(Any, report[JUDGED].pop("windows"))
    texts = {
        name: [passage["text"] for passage in passages] for name, passages in windows["q"]["passages"].items()
    }
    assert texts["0"] == []
    evidence_texts = [passage["text"] for passage in windows["q"]["evidence"]]
    assert evidence_texts and all(
        any(evidence_text in text for text in texts["500"]) for evidence_text in evidence_texts
    )
    assert compare_reports({**report, "w": windows}, report).keys() == {f"{JUDGED}.0", f"{JUDGED}.500"}


async def test_of_many_questions_so_many_are_asked(tmp_path: Path) -> None:
    (tmp_path / "garden.md").write_text(PAGE, encoding="utf-8")
    report = await evidence(tmp_path, budgets=(900,), limit=1, settings=WORDS_ONLY)
    assert {kind: (figures["900"], figures["asked"]) for kind, figures in report.items()} == {
        HEADING: (100.0, 1),
        WORDS: (100.0, 1),
    }


async def test_evidence_of_two_runs_is_compared_by_question(tmp_path: Path) -> None:
    (tmp_path / "garden.md").write_text(PAGE, encoding="utf-8")
    every, one = [
        await evidence(tmp_path, budgets=(900,), limit=maximum, settings=WORDS_ONLY) for maximum in (None, 1)
    ]
    comparison = compare_reports(every, one)
    assert comparison.keys() == {f"{HEADING}.900", f"{WORDS}.900"}
    assert [figures["questions"] for figures in comparison.values()] == [1, 1]
    assert every[HEADING]["asked"] == 2
