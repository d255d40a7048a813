"""Tasks in JSON, JSON Lines and CSV, and rows that hold no task."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.cli.task_rows import read_tasks
from conspectus.errors import InvalidInput
from conspectus.model.tasks import Task

FULL = Task("auth-1", "Fix login", "Two\nlines", ("auth", "web"), "in_progress", "high", {"points": 3})
ROW = {
    "id": "auth-1", "title": "Fix login", "description": "Two\nlines", "tags": ["auth", "web"],
    "status": "in_progress", "priority": "high", "metadata": {"points": 3},
}  # fmt: skip


def read_rows(text: str, kind: str) -> list[tuple[int, Task | str | None]]:
    return [(row.line, row.task or row.problem) for row in read_tasks(text, kind)]


def test_every_kind_says_the_same() -> None:
    plain = Task("5", "Number")
    assert read_rows(json.dumps([ROW, {"id": 5, "title": "Number"}], indent=1), "json") == [
        (2, FULL),
        (16, plain),
    ]
    assert read_rows(json.dumps({"tasks": [ROW]}), "json") == [(1, FULL)]
    lines = json.dumps(ROW) + "\r\n\n" + '{"id": "5", "title": "Number", "priority": null, "tags": null}\n'
    assert read_rows(lines, "jsonl") == [(1, FULL), (3, plain)]
    table = (
        "ID,Title,description,tags,status,priority,metadata\n"
        'auth-1,Fix login,"Two\nlines","auth, web",in_progress,high,"{""points"": 3}"\n'
        "\n"
        "5,Number,,,,none,\n"
    )
    assert read_rows(table, "csv") == [(2, FULL), (5, plain)]


@pytest.mark.parametrize("text", ["", "\n", "id,title\n"])
def test_a_table_without_rows_is_empty(text: str) -> None:
    assert read_rows(text, "csv") == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"title": "x"}', "id: must have"),
        ('{"id": true, "title": "x"}', "id: must be a string"),
        ('{"id": "x"}', "title: must have"),
        ('{"id": "x", "title": 5}', "title: must be a string"),
        ('{"id": "x", "title": "x", "status": "done"}', "status: must be one of"),
        ('{"id": "x", "title": "x", "priority": ["high"]}', "priority: must be one of"),
        ('{"id": "x", "title": "x", "tags": [1]}', "tags: must be"),
        ('{"id": "x", "title": "x", "due": "now"}', "due: is not a field"),
        ('{"id": "x", "title": "x", "metadata": [1]}', "metadata: must be an object"),
        ('{"id": "x", "title": "x", "metadata": {"status": "x"}}', "metadata: 'status'"),
        ("[1]", "task: must be an object"),
        ("{", "row: is not JSON"),
        ("[" * 100_000, "row: is not JSON"),
    ],
)
def test_a_row_without_a_task_says_why(row: str, problem: str) -> None:
    good = '{"id": "x", "title": "x"}'
    parsed_rows = list(read_tasks(f"{good}\n{row}\n{good}", "jsonl"))
    assert [parsed_row.task is None for parsed_row in parsed_rows] == [False, True, False]
    assert parsed_rows[1].line == 2
    assert (parsed_rows[1].problem or "").startswith(problem)


def test_lines_of_a_table_are_those_of_its_rows() -> None:
    parsed_rows = list(read_tasks('id,title\na,"two\nlines"\nb,x,y\nc\n', "csv"))
    assert [(parsed_row.line, parsed_row.problem is None) for parsed_row in parsed_rows] == [
        (2, True),
        (4, False),
        (5, False),
    ]


@pytest.mark.parametrize(
    "text", ["", "5", '"x"', "{}", '{"tasks": 5}', '{"tasks": [], "more": [1]}', "[", "[NaN"]
)
def test_json_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^file: "):
        list(read_tasks(text, "json"))


@pytest.mark.parametrize("text", ['id,title\na,"b', 'id,title\na,"b"c\n', f"id,title\na,{'x' * 200_000}\n"])
def test_a_table_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^file: line "):
        list(read_tasks(text, "csv"))


def test_another_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^format: "):
        list(read_tasks("[]", ""))


@given(st.lists(st.text(min_size=1)), st.integers(0, 3))
def test_each_member_of_a_list_is_found_on_its_line(titles: list[str], indent: int) -> None:
    text = json.dumps([{"id": "x", "title": title} for title in titles], indent=indent, ensure_ascii=False)
    parsed_rows = list(read_tasks(text, "json"))
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip() == "{"]
    assert [parsed_row.line for parsed_row in parsed_rows] == lines
