"""Sections of a text: which are joined in a chunk, and the heading of each chunk."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe, prepare
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import NewDocument, Source, TextPosition
from conspectus.settings import Settings
from conspectus.text.positions import headings_in, rst_headings
from conspectus.text.sections import Section, page_breaks, sections_of, stretches
from conspectus.text.split_boundaries import definitions
from conspectus.text.splitter import SplitOptions, split
from conspectus.text.tokens import ESTIMATORS

BODY = "Some words of a section that says something. "
CODE = "import os\n\ndef first():\n    a = 1\n\n    b = 2\n\nclass Second:\n    def one(self):\n        c\n"


def write_page(*rows):
    """A Markdown text of sections, each given by its level, name and number of sentences."""
    return "".join(f"{'#' * level} {name}\n\n{BODY * length}\n\n" for level, name, length in rows)


def preparation(size):
    return Preparation(
        source=Source(SourceId("s"), CollectionId("c"), "notes"),
        settings=Settings(
            max_metadata_bytes=200, max_metadata_depth=3, chunk_size=2 * size, chunk_overlap=20
        ),
        count=ESTIMATORS["chars4_min1"],
        now=datetime(2026, 1, 5, tzinfo=UTC),
    )


def split_page(text, size, **fields):
    new = NewDocument(text, key="k", **{"syntax": "markdown", **fields})
    by = preparation(size)
    chunks = prepare(new, describe(new, by)[0], by).chunks
    headings = [
        [position.headings[-1] for position in headings_in(chunk.text, new.syntax)] for chunk in chunks
    ]
    return [(chunk.heading, inside) for chunk, inside in zip(chunks, headings, strict=True)]


def test_siblings_are_joined_as_long_as_they_fit():
    text = write_page((1, "T", 1), (2, "A", 3), (2, "B", 3), (2, "C", 3), (2, "D", 3))
    assert split_page(text, 300) == [("T", ["T", "A"]), ("T > B", ["B", "C"]), ("T > D", ["D"])]


def test_a_section_stays_with_its_parts_and_is_not_joined_across_its_parent():
    text = write_page(
        (1, "T", 0), (2, "A", 1), (3, "A1", 1), (2, "B", 1), (3, "B1", 2), (3, "B2", 2), (1, "C", 1)
    )
    assert split_page(text, 330) == [("T", ["T", "A", "A1"]), ("T > B", ["B", "B1", "B2"]), ("C", ["C"])]


def test_a_long_section_is_split_on_its_own_and_repeats_nothing_of_another():
    text = write_page((1, "A", 2), (1, "B", 24), (1, "C", 2))
    chunks = split_page(text, 300)
    assert [heading for heading, _ in chunks] == ["A", "B", "B", "C"]
    pieces = split(text, SplitOptions(600, 20), sections=sections_of(tuple(headings_in(text, "markdown"))))
    assert [after.start < before.end for before, after in pairwise(pieces)] == [False, True, False]


def test_a_heading_without_text_goes_with_its_first_part():
    text = write_page((1, "T", 0), (2, "A", 5), (2, "B", 5))
    assert split_page(text, 300) == [("T", ["T", "A"]), ("T > B", ["B"])]


def test_text_before_the_first_heading_is_joined_with_what_follows():
    assert split_page("Preface.\n\n" + write_page((1, "A", 1), (1, "B", 9)), 300)[0] == (None, ["A"])


def test_restructured_text_and_given_places_have_sections_too():
    text = f"Top\n===\n\n{BODY}\n\nLeft\n----\n\n{BODY * 5}\n\nRight\n-----\n\n{BODY * 5}\n"
    parts = [("Top > Left", ["Left"]), ("Top > Right", ["Right"])]
    assert split_page(text, 260, syntax="rst") == [("Top", ["Top"]), *parts]
    places = (TextPosition(0, 1, ("One",)), TextPosition(len(BODY) * 3, 2, ("Two",)))
    assert [heading for heading, _ in split_page(BODY * 6, 200, syntax="plain", places=places)] == [
        "One",
        "Two",
    ]
    assert [heading for heading, _ in split_page(BODY * 6, 300, syntax="plain", places=places)] == ["One"]


def test_code_is_cut_at_definitions_without_overlap():
    pieces = split(CODE, SplitOptions(120, 20, syntax="code"), sections=definitions(CODE))
    assert [piece.text.split("\n")[0] for piece in pieces] == ["import os", "class Second:"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("A\n=\n", []),
        ("A\n===\n\nb\n\nB\n---\n\nC\n~~~\n\nD\n---\n", [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D")]),
        ("=====\nTitle\n=====\n\nA\n===\n", [("Title",), ("Title", "A")]),
        ("=======\n Inset\n=======\n", [("Inset",)]),
        ("Too long a title\n====\n", []),
        ("text\nA\n===\n", []),
        ("===\n---\n\n***\n\ntext\n", []),
        ("===  ===\nA    B\n===  ===\n", []),
        ("    A\n    ===\n", []),
    ],
)
def test_headings_of_restructured_text(text, paths):
    assert [position.headings for position in rst_headings(text)] == paths


ROWS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40)), max_size=12)


@given(ROWS, st.integers(0, 9), st.integers(9, 60))
def test_stretches_are_the_text_and_only_a_single_section_is_too_long(rows, before, size):
    text, sections = "p" * before, []
    for depth, length in rows:
        sections.append(Section(len(text), depth))
        text += "x" * length
    spans = list(stretches(text, sections, lambda start, end: end - start <= size))
    starts = {0, *(section.start for section in sections)}
    assert "".join(text[start:end] for start, end in spans) == text
    assert [start for start, _ in spans] == [end for _, end in [(0, 0), *spans[:-1]]]
    assert all(start in starts for start, _ in spans)
    depths = {section.start: section.depth for section in reversed(sections)}
    for start, end in spans:
        inside = [section for section in sections if start <= section.start < end]
        assert all(section.depth >= depths.get(start, 0) for section in inside) or before
        assert end - start <= size or len(inside) <= 1 or _only_the_last_is_long(inside, start, end, size)


def _only_the_last_is_long(inside, start, end, size):
    """Headings with next to no text are taken along by a part that is too long itself."""
    return inside[-1].start - start < size


@pytest.mark.parametrize("depth", [1, 2])
def test_very_many_sections_are_joined_in_linear_time(depth):
    sections = [Section(offset, offset % depth) for offset in range(100_000)]
    spans = list(stretches("x" * 100_000, sections, lambda start, end: end - start <= 1_000))
    assert len(spans) >= 100


def test_a_chunk_has_the_text_of_one_page_however_short_that_is() -> None:
    pages = ["# First\n\nshort\n\n", "# Second\n\nshort\n\n", f"{BODY * 20}\n\n", "last"]
    starts = [sum(map(len, pages[:number])) for number in range(len(pages))]
    places = tuple(TextPosition(start, number) for number, start in enumerate(starts, 1))
    new = NewDocument("".join(pages), key="k", syntax="markdown", places=places)
    by = preparation(300)
    chunks = prepare(new, describe(new, by)[0], by).chunks
    assert [chunk.page for chunk in chunks] == [1, 2, 3, 3, 4]
    assert [chunks[0].text, chunks[1].text, chunks[-1].text] == [pages[0], pages[1], pages[3]]


def test_a_page_that_begins_within_a_line_is_no_break() -> None:
    places = [TextPosition(0, 1), TextPosition(4, 1, ("a",)), TextPosition(6, 2), TextPosition(9, 3)]
    assert page_breaks("one\ntwo \nthree", places) == [9]


@given(st.text("ab \n#", max_size=200), st.lists(st.integers(0, 200)), st.integers(1, 40))
def test_pieces_begin_at_breaks_and_cover_the_text(text: str, starts: list[int], size: int) -> None:
    breaks = sorted({start for start in starts if 0 < start < len(text)})
    pieces = split(text, SplitOptions(size=size, overlap=0), breaks=breaks)
    assert "".join(piece.text for piece in pieces) == text
    assert {*breaks} <= {piece.start for piece in pieces}
