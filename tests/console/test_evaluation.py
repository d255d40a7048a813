"""Evaluation: result files in the browser, two runs compared."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from conspectus.evals.compare import compare_reports
from conspectus.sync import connect
from tests.console.conftest import WIDTHS, Opened, Site, scrolls_sideways, violations

BUDGETS = (128, 1024)


def build_report(shares: dict[int, list[float]]) -> dict[str, object]:
    """A report as `eval evidence` writes it: shares of each question by budget."""
    questions = range(len(shares[BUDGETS[0]]))
    by_question = {f"q{n}": {str(budget): values[n] for budget, values in shares.items()} for n in questions}
    return {"questions": {"asked": len(questions), "by_question": by_question}}


BEFORE = build_report({128: [0.0, 1.0, 0.5, 0.0] * 10, 1024: [1.0, 1.0, 0.5, 0.0] * 10})
AFTER = build_report({128: [0.5, 1.0, 0.5, 0.0] * 10, 1024: [1.0, 0.5, 1.0, 0.5] * 10})


def load_reports(page: Page, folder: Path) -> None:
    for name, content in (("before", BEFORE), ("after", AFTER)):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        page.get_by_label("Result files").set_input_files(path)
        expect(page.get_by_text(f"{name}: counted on the rendered window")).to_be_visible()


def test_two_runs_are_compared_as_the_command_does(visit: Opened, empty: Site, tmp_path: Path) -> None:
    page = visit(empty, "/evaluation")
    load_reports(page, tmp_path)
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "At 1,024 tokens, 75.0 % of the evidence is in the window, over 40 questions."
    )
    expected = compare_reports(BEFORE, AFTER)["questions.1024"]
    comparison = page.locator(".beside")
    expect(comparison).to_contain_text(f"+{expected['difference']:.1f} points")
    expect(comparison).to_contain_text("better" if expected["low"] > 0 else "no clear difference")


@pytest.mark.slow
def test_the_interval_is_that_of_the_command(visit: Opened, empty: Site, tmp_path: Path) -> None:
    page = visit(empty, "/evaluation")
    before, after = (
        build_report({128: [n * factor % 11 / 10 for n in range(37)]} | {1024: [1.0] * 37})
        for factor in (3, 5)
    )
    for name, content in (("before", before), ("after", after)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        page.get_by_label("Result files").set_input_files(tmp_path / f"{name}.json")
        expect(page.get_by_text(f"{name}: counted on the rendered window")).to_be_visible()
    page.get_by_role("slider", name="Budget").press("ArrowLeft")
    expected = compare_reports(before, after)["questions.128"]
    assert expected["low"] < 0 < expected["high"]
    interval = f"\N{MINUS SIGN}{-expected['low']:.1f} to +{expected['high']:.1f}"
    expect(page.locator(".beside").get_by_text("95 % interval")).to_contain_text(interval)


@pytest.mark.slow
def test_questions_that_changed_are_shown(visit: Opened, empty: Site, tmp_path: Path) -> None:
    page = visit(empty, "/evaluation")
    load_reports(page, tmp_path)
    expect(page.get_by_role("heading", name="30 questions changed")).to_be_visible()
    expect(page.locator(".cells .lost")).to_have_count(10)
    page.locator(".cells .lost").first.click()
    expect(page.get_by_role("status")).to_contain_text("100.0 % of its evidence before, 50.0 % now")
    page.get_by_role("slider", name="Budget").press("ArrowLeft")
    expect(page.get_by_role("heading", name="10 questions changed")).to_be_visible()


def write_window_report(name: str, folder: Path, text: str, start: int) -> Path:
    """A report of one question with its window, as `eval evidence --windows` writes it."""
    evidence = {"key": "page.md", "start": 0, "end": 12, "text": "One 😀 two. X"}
    part = {"key": "page.md", "start": start, "end": start + len(text), "text": text}
    window = {"query": "<b>what</b>?", "evidence": [evidence], "passages": {"128": [part]}}
    share = float(text == evidence["text"])
    content = {"questions": {"by_question": {"q1": {"128": share}}, "windows": {"q1": window}}}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.slow
def test_both_windows_of_a_question_are_side_by_side(visit: Opened, empty: Site, tmp_path: Path) -> None:
    page = visit(empty, "/evaluation")
    files = [
        write_window_report("before", tmp_path, "😀 two. X", 4),
        write_window_report("after", tmp_path, "One 😀 two. X", 0),
    ]
    for path in files:
        page.get_by_label("Result files").set_input_files(path)
        expect(page.get_by_text(f"{path.stem}: counted on the rendered window")).to_be_visible()
    page.get_by_role("button", name="Question 1: gained").click()
    expect(page.get_by_role("heading", name="<b>what</b>?")).to_be_visible()
    evidence = page.get_by_role("list", name="Evidence")
    expect(evidence).to_contain_text("not in beforein after")
    expect(evidence).to_contain_text(re.compile("before has .*; in after it is passage 1 of"))
    after = page.get_by_role("region", name="Window of after")
    expect(after).to_contain_text("One 😀 two. X")
    expect(after.locator("mark")).to_have_text("One ")
    expect(page.get_by_role("region", name="Window of before").locator("mark")).to_have_count(0)
    assert not scrolls_sideways(page)
    assert violations(page) == []


def write_set(folder: Path, address: str, key: str | None) -> Path:
    """A set of three questions, each of which quotes the beginning of its document."""
    with connect(address, api_key=key) as engine:
        documents = engine.documents.list(collection="default", limit=3).documents
        texts = engine.documents.get_texts([document.id for document in documents])
    rows = [
        {
            "id": f"q{number}",
            "text": texts[document.id][:60],
            "spans": [{"doc": document.id, "start": 0, "end": 60}],
        }
        for number, document in enumerate(documents)
    ]
    path = folder / "support.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def run_set(page: Page, settings: str) -> Locator:
    """Run the set of the screen with settings as JSON, and return the row of the finished run."""
    questions = page.get_by_role("region", name="Question set")
    questions.get_by_label("Other settings").fill(settings)
    questions.get_by_role("button", name="Run").click()
    row = page.get_by_role("region", name="Runs").get_by_role("row").nth(1)
    expect(row).to_contain_text(re.compile(r"% of 1,024 tokens.* m?s"), timeout=30_000)
    return row


def test_a_set_is_kept_and_its_runs_are_compared(visit: Opened, changeable: Site, tmp_path: Path) -> None:
    page = visit(changeable, "/evaluation", key=changeable.key)
    page.get_by_label("Result files").set_input_files(write_set(tmp_path, changeable.address, changeable.key))
    questions = page.get_by_role("region", name="Question set")
    expect(questions).to_contain_text("support: 3 questions")
    questions.get_by_label("Other settings").fill('{"max_tokens": 5}')
    questions.get_by_role("button", name="Run").click()
    expect(questions.get_by_role("alert")).to_contain_text("The run itself sets max_tokens")
    run_set(page, "")
    row = run_set(page, '{"min_similarity": 1, "retrievers": ["vector"]}')
    expect(row).to_contain_text('retrievers ["vector"]')
    page.reload()
    expect(page.get_by_text("Compared with built-in options")).to_be_visible()
    page.get_by_role("button", name="Question 1: lost").click()
    evidence = page.get_by_role("list", name="Evidence")
    expect(evidence).to_contain_text(re.compile("Nothing is in the window of .*; in built-in options it is"))
    expect(page.get_by_role("region", name="Window of built-in options").locator("u")).not_to_have_count(0)
    assert violations(page) == []
    assert not scrolls_sideways(page)


def test_a_run_becomes_the_default_and_is_undone(visit: Opened, changeable: Site, tmp_path: Path) -> None:
    page = visit(changeable, "/evaluation", key=changeable.key)
    page.get_by_label("Result files").set_input_files(write_set(tmp_path, changeable.address, changeable.key))
    run_set(page, '{"retrievers": ["keyword"]}')
    with connect(changeable.address, api_key=changeable.key) as engine:
        page.get_by_role("button", name="Make default: retrievers").click()
        bar = page.get_by_role("status").filter(has_text="have new defaults")
        expect(bar).to_contain_text('retrievers ["keyword"] (version 1)')
        assert engine.retrieve("backup").plan["retrievers"] == "keyword"
        assert violations(page) == []
        bar.get_by_role("button", name="Undo").click()
        expect(bar).to_have_count(0)
        assert engine.collections.get("default").retrieval is None


def test_without_windows_it_says_how_to_keep_them(visit: Opened, empty: Site, tmp_path: Path) -> None:
    page = visit(empty, "/evaluation")
    load_reports(page, tmp_path)
    page.locator(".cells .lost").first.click()
    expect(page.get_by_text("To see both windows here")).to_contain_text("--windows")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not JSON"),
        ("{}", "no figures by question"),
        pytest.param("[1]", "no figures by question", marks=pytest.mark.slow),
    ],
)
def test_a_bad_file_gets_a_reason(
    visit: Opened, empty: Site, tmp_path: Path, content: str, reason: str
) -> None:
    page = visit(empty, "/evaluation")
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    page.get_by_label("Result files").set_input_files(path)
    expect(page.get_by_role("alert")).to_contain_text(reason)


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, empty: Site, tmp_path: Path, narrow: bool) -> None:
    page = visit(empty, "/evaluation", narrow=narrow)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert violations(page) == []
    load_reports(page, tmp_path)
    assert not scrolls_sideways(page)
    assert violations(page) == []
