"""Headings of chunks: of Markdown and reStructuredText, cut to their limits."""

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.ids import ChunkId, DocumentId
from conspectus.model.records import Chunk, TextPosition
from conspectus.text.positions import (
    BETWEEN,
    MAX_HEADING_LENGTH,
    MAX_PATH_LENGTH,
    check_positions,
    find_heading,
    headings_in,
    path_of,
    rst_headings,
)


def make_chunk(text: str, heading: str | None) -> Chunk:
    return Chunk(ChunkId(1), DocumentId("d"), 0, text, 0, len(text), 1, "h", None, heading)


SECTIONS = "## Two\n\ntwo\n\n### Deep\n\ndeep\n\n## Three\n\nthree\n"


@pytest.mark.parametrize(
    ("before", "heading", "word", "expected"),
    [
        ("", "One > Two", "## Two", "One > Two"),
        ("", "One > Two", "two\n", "One > Two"),
        ("", "One > Two", "### Deep", "One > Two > Deep"),
        ("", "One > Two", "deep\n", "One > Two > Deep"),
        ("", "One > Two", "three\n", "One > Three"),
        ("\n \n", "One > Two", "three\n", "One > Three"),
        ("", "Two", "deep\n", "Two > Deep"),
        ("", "Two", "three\n", "Three"),
        ("", None, "three\n", "Three"),
        ("zero\n\n", "One", "zero", "One"),
        ("zero\n\n", "One", "two\n", "Two"),
        ("zero\n\n", "One > Two", "three\n", "Three"),
        ("zero\n\n", None, "zero", None),
    ],
)
def test_a_place_in_a_chunk_stands_under_the_last_heading_before_it(
    before: str, heading: str | None, word: str, expected: str | None
) -> None:
    text = before + SECTIONS
    assert find_heading(make_chunk(text, heading), "markdown", text.index(word)) == expected


@pytest.mark.parametrize("syntax", ["plain", "code"])
def test_a_text_without_headings_stands_under_that_of_its_chunk(syntax: str) -> None:
    assert find_heading(make_chunk(SECTIONS, "One"), syntax, 20) == "One"  # type: ignore[arg-type]
    assert list(headings_in(SECTIONS, syntax)) == []  # type: ignore[arg-type]
    assert find_heading(make_chunk(SECTIONS, "One"), "markdown", 0) == "One"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("One\n===\n\nTwo\n---\n\nSix\n===\n", [("One",), ("One", "Two"), ("Six",)]),
        ("===\nOne\n===\n\nTwo\n===\n\nSix\n---\n", [("One",), ("One", "Two"), ("One", "Two", "Six")]),
        ("  ===\nOne\n===\n", []),
        ("====\n One\n====\n", [("One",)]),
        ("=====\nOne\n====\n\nTwo\n===\n", [("Two",)]),
        ("Long title\n===\n\nOk\n===\n", [("Ok",)]),
        ("A-b!\n====\n", [("A-b!",)]),
        ("!!!!\n====\n", []),
        ("One\n==\n", []),
        ("One \n===\n", [("One",)]),
        ("x\nOne\n===\n", []),
        ("One\n==-\n", []),
    ],
)
def test_headings_of_restructured_text_are_underlined_by_one_mark(
    text: str, paths: list[tuple[str, ...]]
) -> None:
    assert [heading.headings for heading in rst_headings(text)] == paths


def test_a_long_heading_is_cut_and_a_long_path_loses_its_outermost() -> None:
    title = "x" * (MAX_HEADING_LENGTH + 1)
    [heading] = headings_in(f"{title}\n{'=' * 300}\n", "rst")
    assert heading.headings == (title[:-1],)
    [heading] = headings_in(f"# {title}", "markdown")
    assert heading.headings == (title[:-1],)
    room = MAX_PATH_LENGTH - len(BETWEEN) - 200
    assert path_of(("a" * room, "b" * 200)) == f"{'a' * room}{BETWEEN}{'b' * 200}"
    assert path_of(("a" * (room + 1), "b" * 200)) == "b" * 200
    assert path_of(("a" * (MAX_PATH_LENGTH - 1) + " b",)) == "a" * (MAX_PATH_LENGTH - 1)


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("```\n# No\n``` x\n# No\n````\n# Yes", ["Yes"]),
        ("~~~\n# No\n```\n# No\n~~~ \n# Yes", ["Yes"]),
        ("````\n# No\n```\n# No\n````\n# Yes", ["Yes"]),
        ("``` `x`\n# Yes", ["Yes"]),
        ("~~~ `x`\n# No", []),
        ("# A {#anchor}\n# {only}", ["A", "{only}"]),
        ("# [A](x) **b** `c` <i>d</i> \\*", ["A b c d *"]),
    ],
)
def test_headings_in_code_are_none_and_markup_is_not_part_of_one(text: str, titles: list[str]) -> None:
    assert [heading.headings[-1] for heading in headings_in(text, "markdown")] == titles


def test_places_may_be_at_both_ends_and_have_any_page() -> None:
    places = [TextPosition(0, 1), TextPosition(0), TextPosition(4, 2**31 - 1)]
    assert check_positions(places, "text") == tuple(places)
    assert check_positions((), "") == ()
    for page in (0, 2**31):
        with pytest.raises(InvalidInput, match="counted from 1"):
            check_positions([TextPosition(0, 1), TextPosition(1, page)], "text")
    with pytest.raises(InvalidInput, match="ascending"):
        check_positions([TextPosition(1), TextPosition(3), TextPosition(2)], "text")
