"""Paths of documents as files, and matching lines as they are shown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.model.files import (
    MAX_PATH,
    MAX_TITLE,
    FileLine,
    FileMatches,
    GrepResult,
    PathParts,
    expand_home,
    parse_path,
    path_of,
)
from conspectus.model.ids import DocumentId

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(NAMES, NAMES, NAMES | st.just("a//b/"))
def test_a_path_is_read_as_it_was_written(collection: str, source: str, key: str) -> None:
    path = path_of(collection, source, key)
    assert parse_path(path) == (collection, source, key)
    assert path.splitlines() == [path]
    assert parse_path(path_of(collection, source)) == (collection, source, "")
    assert parse_path(path_of(collection)) == (collection, "", "")


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((), "/"),
        (("a",), "/a"),
        (("a/b", "c%d"), "/a%2Fb/c%25d"),
        (("a", "b", "c/d e.md"), "/a/b/c/d e.md"),
        (("a", "b", "/abs"), "/a/b//abs"),
        (("ä", "🎉", "100%"), "/ä/🎉/100%25"),
        (("a", "b", "x\ny\x00\x7f"), "/a/b/x%0Ay%00%7F"),
        (("a", "b", "x\x85y\u2028"), "/a/b/x%C2%85y%E2%80%A8"),
    ],
)
def test_only_what_would_end_a_name_or_a_line_is_escaped(parts: tuple[str, ...], path: str) -> None:
    assert path_of("", *parts) == path if not parts else path_of(*parts) == path
    assert parse_path(path) == PathParts(*parts)


@pytest.mark.parametrize(
    "path", ["", "a", "a/b", "//b", "//b/c", "/a//c", "///", "///c", "/" + "x" * MAX_PATH, "\\a", " /a"]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="must be /COLLECTION/SOURCE/KEY") as refused:
        parse_path(path)
    assert refused.value.field == "path"


def test_a_path_may_be_as_long_as_the_limit_says() -> None:
    assert parse_path("/" + "x" * (MAX_PATH - 1)).collection == "x" * (MAX_PATH - 1)


def build_line(number: int, *, matched: bool = True) -> FileLine:
    return FileLine(number, f"line {number}", 0, 6, matched)


def render_lines(*lines: FileLine, title: str = "") -> list[str]:
    matches = FileMatches("/a/b/c", DocumentId("d"), title, lines)
    return GrepResult((matches,), len(lines), 1, complete=True).text.split("\n")


def test_lines_that_match_stand_under_their_path() -> None:
    assert render_lines(build_line(3), build_line(9)) == ["/a/b/c", "3:line 3", "9:line 9"]
    assert render_lines(build_line(1), title=" Two \n lines ")[0] == "/a/b/c (Two lines)"
    assert render_lines(build_line(1), title="x" * 500)[0] == f"/a/b/c ({'x' * MAX_TITLE})"
    assert GrepResult((), 0, 0, complete=True).text == ""


def test_a_gap_is_marked_only_beside_lines_that_do_not_match() -> None:
    beside = [
        build_line(3),
        build_line(4, matched=False),
        build_line(7, matched=False),
        build_line(8),
        build_line(9),
    ]
    assert render_lines(*beside) == [
        "/a/b/c", "3:line 3", "4-line 4", "--", "7-line 7", "8:line 8", "9:line 9",
    ]  # fmt: skip
    assert "--" not in render_lines(build_line(3), build_line(5))
    assert "--" not in render_lines(build_line(3), build_line(4, matched=False))


def test_files_follow_each_other_without_an_empty_line() -> None:
    first, second = (
        FileMatches(path, DocumentId("d"), "", (build_line(1),)) for path in ("/a/b/c", "/a/b/d")
    )
    assert GrepResult((first, second), 2, 2, complete=True).text == "/a/b/c\n1:line 1\n/a/b/d\n1:line 1"


@pytest.mark.parametrize("path", ["~nobody-of-that-name", "~\uff15/notes"])
def test_a_home_folder_that_does_not_exist_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="no home folder"):
        expand_home(path)


def test_a_tilde_is_the_home_folder() -> None:
    assert expand_home("~/notes") == Path.home() / "notes"
    assert expand_home("notes~") == Path("notes~")
