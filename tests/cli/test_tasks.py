"""Tasks on the command line, on a store and on a server."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

MODEL = {"CONSPECTUS_EMBEDDER": "minilm"}


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_a_task_is_added_changed_shown_and_deleted(shell: Shell) -> None:
    outcome = shell(
        "tasks", "add", "auth-1", "Fix login", "--tag", "auth", "--tag", "web", "--priority", "high"
    )
    assert (outcome.code, outcome.out.strip()) == (0, "added auth-1")
    assert shell("tasks", "update", "auth-1", "--status", "completed", "--json").json["outcome"] == "updated"
    note = shell.folder / "log.txt"
    note.write_text("It was the password.", encoding="utf-8")
    assert shell("tasks", "attach", "auth-1", note).code == 0
    assert shell("tasks", "attach", "auth-1", "-", "--name", "typed", typed="From a pipe.").code == 0
    details = shell("tasks", "get", "auth-1", "--json").json
    assert (
        details["task"].items()
        >= {"tags": ["auth", "web"], "status": "completed", "priority": "high"}.items()
    )
    assert [attachment["id"] for attachment in details["attachments"]] == ["log.txt", "typed"]
    assert "It was the password." in shell("tasks", "get", "auth-1").out
    assert shell("tasks", "update", "auth-1", "--priority", "none").code == 0
    assert "priority" not in shell("tasks", "list", "--json").json["tasks"][0]
    assert shell("tasks", "delete", "auth-1", typed="n\n").code == 1
    assert "deleted, tasks and attachments together: 3" in shell("tasks", "delete", "auth-1", "--yes").out
    assert shell("tasks", "delete", "auth-1", "-y").code == 3
    assert shell("tasks", "get", "auth-1").code == 3


def test_tasks_are_listed_with_filters_and_pages(shell: Shell) -> None:
    rows = [{"id": f"t{n}", "title": f"Task {n}", "tags": ["odd"] * (n % 2)} for n in range(5)]
    assert shell("tasks", "import", write_rows(shell.folder / "five.jsonl", rows)).code == 0
    assert len(shell("tasks", "list", "--tag", "odd", "--json").json["tasks"]) == 2
    page = shell("tasks", "list", "--limit", "3")
    assert "--after" in page.err
    assert shell("tasks", "list", "--status", "done").code == 2
    assert shell("tasks", "list", "--collection", "other", "--json").json["tasks"] == []


def test_a_search_finds_by_meaning(shell: Shell) -> None:
    assert shell("tasks", "add", "jwt", "Fix auth JWT token validation", **MODEL).code == 0
    assert shell("tasks", "add", "ui", "Redesign the landing page", **MODEL).code == 0
    hits = shell("tasks", "search", "authentication issues", "--json", **MODEL).json
    assert [hit["task_id"] for hit in hits] == ["jwt", "ui"]
    assert "jwt" in shell("tasks", "search", "authentication", "-n", "1", **MODEL).out
    assert shell("tasks", "search", "authentication", "--status", "completed", **MODEL).code == 3
    assert shell("tasks", "search", "authentication", "--min-similarity", "0.99", **MODEL).code == 3


def test_words_only_is_said_and_nothing_stored_is_nothing(shell: Shell) -> None:
    shell("add", "-", typed="Another collection.")
    assert shell("tasks", "search", "anything").code == 3
    shell("tasks", "add", "x", "Title")
    refused = shell("tasks", "search", "anything")
    assert (refused.code, "has no embedding model" in refused.err) == (2, True)


def test_an_import_reports_bad_rows_and_stores_nothing_beside_them(shell: Shell) -> None:
    rows: list[dict[str, object]] = [{"id": f"t{n}", "title": f"Task {n}"} for n in range(1_000)]
    rows[700] = {"id": "bad", "title": "Bad", "status": "done"}
    part = shell("tasks", "import", write_rows(shell.folder / "most.jsonl", rows), "--json")
    assert part.code == 4
    assert part.json["outcomes"] == {"added": 500}
    assert part.json["skipped"] == 499
    assert [failure["line"] for failure in part.json["failures"]] == [701]
    again = shell("tasks", "import", write_rows(shell.folder / "most.jsonl", rows[:700]), "--json")
    assert again.json["outcomes"] == {"unchanged": 500, "added": 200}


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.csv", 'id,title,tags\na,One,"x, y"\n', 0),
        ("a.json", '[{"id": "a", "title": "One"}]', 0),
        ("a.csv", "id,title\na,\n", 2),
        ("a.json", "{}", 2),
        ("a.txt", "a", 2),
        ("a.csv", "id,title\n", 0),
    ],
)
def test_files_of_all_kinds(shell: Shell, name: str, text: str, code: int) -> None:
    (shell.folder / name).write_text(text, encoding="utf-8-sig")
    assert shell("tasks", "import", shell.folder / name).code == code


def test_what_cannot_be_read_is_named(shell: Shell) -> None:
    (shell.folder / "a.csv").write_bytes(b"id,title\n\xff,x\n")
    assert "not UTF-8" in shell("tasks", "import", shell.folder / "a.csv").err
    assert shell("tasks", "import", shell.folder / "none.csv").code == 2
    assert shell("tasks", "import", "-", "--format", "csv", typed="id,title\na,One\n").code == 0
    big = shell("tasks", "import", shell.folder / "a.csv", CONSPECTUS_MAX_FILE_BYTES="5")
    assert "more than 5 bytes" in big.err


def test_a_picture_cannot_be_forged(shell: Shell) -> None:
    shell("tasks", "add", "x\x1b[31m", "Title\nof two lines \u202e")
    out = shell("tasks", "list").out
    assert "\x1b" not in out
    assert "Title of two lines" in out


def test_an_update_of_nothing_is_refused(shell: Shell) -> None:
    shell("tasks", "add", "x", "Title")
    assert shell("tasks", "update", "x").code == 2
    assert shell("tasks", "update", "y", "--title", "New").code == 3
    assert shell("tasks", "add", "x", " ").code == 2
