"""Pages and headings: found in Markdown, kept through cleaning and splitting."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe, prepare
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import NewDocument, PreparedChunk, Source, TextPosition
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.positions import (
    check_positions,
    combine_positions,
    find_markdown_headings,
    path_of,
    place_at,
)
from conspectus.text.tokens import ESTIMATORS

BY = Preparation(
    source=Source(SourceId("s"), CollectionId("c"), "notes"),
    settings=Settings(
        max_document_characters=10_000,
        max_metadata_bytes=200,
        max_metadata_depth=3,
        chunk_size=60,
        chunk_overlap=10,
    ),
    count=ESTIMATORS["chars4_min1"],
    now=datetime(2026, 1, 5, 12, tzinfo=UTC),
)
NAMES = st.sampled_from(["Intro", "Part", "Ü", "a # b"])


def find_headings(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Each heading found, as the line it begins and its path."""
    return [
        (text[heading.start :].split("\n")[0], heading.headings) for heading in find_markdown_headings(text)
    ]


def prepare_chunks(text: str, **fields: object) -> tuple[PreparedChunk, ...]:
    new = NewDocument(**{"text": text, "key": "k", "syntax": "markdown", **fields})
    return prepare(new, describe(new, BY)[0], BY).chunks


def fingerprint_of(**fields: object) -> str:
    return describe(NewDocument(**{"text": "text", "key": "k", **fields}), BY)[0].fingerprint


def test_headings_form_paths() -> None:
    text = "# A\n\ntext\n\n## B\n### C #\n## D ##\nSetext\n\nE\n=\n\nF\n---\n#### G\n"
    assert [path for _, path in find_headings(text)] == [
        ("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",), ("E", "F"), ("E", "F", "G"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "#no space", "####### seven", "    # indented code", "\\# escaped", "#", "# #", "a # b",
        "```\n# code\n```", "~~~ python\n# code\n```\n# still code\n~~~", "```\n# never closed",
        "> ```\n# quoted fence", "- item\n---", "| a |\n---", "text\n\n---\n\ntext",
        "---\n# yaml: x\nb: c\n---\n", "para\nof two lines\n---", "", "\n\n", "=\n=",
    ],
)  # fmt: skip
def test_what_is_no_heading(text: str) -> None:
    assert find_headings(text) == []


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# **Bold** `code`", "Bold code"), ("# [Link](http://x.y) text", "Link text"),
        ('# <a name="x"></a>Anchor', "Anchor"), ("   ### Indented\t#", "Indented"), ("# C#", "C#"),
        ("# 1\\. First", "1. First"), ("# " + "x" * 500, "x" * 200), ("#\tTab", "Tab"),
        ("```` `\n# A", "A"), ("# Naïve 日本語 🎉", "Naïve 日本語 🎉"),
    ],
)  # fmt: skip
def test_titles_are_plain(line: str, title: str) -> None:
    assert [path[-1] for _, path in find_headings(line)] == [title]


@pytest.mark.parametrize(
    "line", ["# ", "#" * 9, "```\n", "a\n=\n", "---\n", "[", "# [x](", "# <", "# # ", "> "]
)
def test_finding_headings_takes_linear_time(line: str) -> None:
    assert sum(1 for _ in find_markdown_headings(line * 100_000)) <= 100_000
    assert sum(1 for _ in find_markdown_headings("# x" + line.strip() * 500_000)) <= 1


def test_pages_go_on_under_headings_and_headings_over_pages() -> None:
    pages = (TextPosition(0, 1), TextPosition(10, 2), TextPosition(30, 3))
    headings = (
        TextPosition(5, headings=("A",)),
        TextPosition(10, headings=("B",)),
        TextPosition(20, headings=("C",)),
    )
    assert combine_positions(pages, headings) == (
        TextPosition(0, 1),
        TextPosition(5, 1, ("A",)),
        TextPosition(10, 2, ("B",)),
        TextPosition(20, 2, ("C",)),
        TextPosition(30, 3, ("C",)),
    )  # fmt: skip
    assert combine_positions((), headings) == headings
    given_both = (TextPosition(0, 1, ("X",)), TextPosition(10, 2))
    assert combine_positions(given_both, headings) == given_both


def test_places_are_those_of_the_cleaned_text() -> None:
    text = "\ud83d\ude00\ud83d\ude00 one\x00 two"
    [position] = check_positions([TextPosition(text.index("two"), 2, ("\ud800",))], text)
    assert clean(text)[position.start :] == "two"
    assert position.headings == ("\ufffd",)


@pytest.mark.parametrize(
    "places",
    [
        [TextPosition(-1)],
        [TextPosition(5)],
        [TextPosition(2), TextPosition(1)],
        [TextPosition(0, 0)],
        [TextPosition(0, -1)],
        [TextPosition(0, 2**31)],
    ],
)
def test_places_that_cannot_be_are_refused(places: list[TextPosition]) -> None:
    with pytest.raises(InvalidInput, match="places"):
        check_positions(places, "text")


def test_a_path_keeps_what_is_innermost_within_its_limit() -> None:
    assert path_of(("Part", " \n", "Chapter\n one")) == "Part > Chapter one"
    assert path_of(()) is None
    assert path_of(("a" * 200, "b" * 99, "c" * 99)) == "b" * 99 + " > " + "c" * 99
    assert path_of(("x" * 999,)) == "x" * 300


def test_a_chunk_stands_where_its_own_text_begins() -> None:
    text = "# One\n\nFirst words here, a few of them.\n\n## Two\n\nSecond words here, some of them.\n"
    prepared = prepare_chunks(text, places=(TextPosition(0, 1), TextPosition(text.index("## Two"), 2)))
    assert [(chunk.page, chunk.heading) for chunk in prepared] == [(1, "One"), (2, "One > Two")]
    assert [chunk.heading for chunk in prepare_chunks(text, syntax="plain")] == [None] * 2


def test_the_fingerprint_knows_places_only_when_given() -> None:
    assert fingerprint_of() == fingerprint_of(places=())
    given_places = [
        (),
        (TextPosition(0, 1),),
        (TextPosition(0, 2),),
        (TextPosition(0, 1, ("A",)),),
        (TextPosition(1, 1),),
    ]
    assert len({fingerprint_of(places=places) for places in given_places}) == len(given_places)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.none() | st.integers(1, 9), st.lists(NAMES, max_size=2))),
    st.integers(0, 70),
)
def test_looking_a_place_up_agrees_with_looking_at_each(
    rows: list[tuple[int, int | None, list[str]]], at: int
) -> None:
    places = [
        TextPosition(start, page, tuple(names)) for start, page, names in sorted(rows, key=lambda row: row[0])
    ]
    before = [position for position in places if position.start <= at]
    assert place_at(places, at) == (replace(before[-1], start=at) if before else TextPosition(at))


@given(st.lists(st.sampled_from(["# A", "## B", "text", "", "```", "> q", "===", "---", "### C #"])))
def test_every_heading_is_a_line_of_the_text_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    positions = list(find_markdown_headings(text))
    assert [position.start for position in positions] == sorted({position.start for position in positions})
    assert all(position.start == 0 or text[position.start - 1] == "\n" for position in positions)
    assert all(position.headings[-1] in text[position.start :].split("\n")[0] for position in positions)
