"""eval moments on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    captions = [
        {"video": "fox", "i": number, "start_s": 60 * number, "end_s": 60 * number + 60, "text": text}
        for number, text in enumerate(["a red fox", "a blue whale"])
    ]
    questions = [{"id": name, "video": "fox", "question": "whale", "window": [60, 120]} for name in "ab"]
    (tmp_path / "captions.jsonl").write_text("\n".join(map(json.dumps, captions)), encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
    return tmp_path


def test_moments_are_measured_beside_plain_bm25(shell: Shell, folder: Path) -> None:
    figures = shell("eval", "moments", folder, "--limit", "1", "--json").json
    assert list(figures) == ["engine", "bm25"]
    assert (figures["engine"]["recall@1 iou 0.7"], figures["engine"]["questions"]) == (100.0, 1)
    table = shell("eval", "moments", folder).out
    assert "engine" in table
    assert "recall@5 iou 0.5" in table


def test_no_questions_at_all_cannot_be_asked(shell: Shell, folder: Path) -> None:
    assert shell("eval", "moments", folder, "--limit", "0").code == 2
    assert shell("eval", "moments", folder / "none", "--json").json["error"]["code"] == "invalid_input"
