"""Texts at their borders: headings of chunks, cuts, clusters, hashes, and vectors of the largest size."""

import uuid

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.model.ids import ChunkId, DocumentId
from conspectus.model.records import Chunk, TextPosition
from conspectus.text.graphemes import Borders, graphemes_prefix, last_border, next_border
from conspectus.text.hashing import KEY_BYTES, NAME_BYTES, edge_id, fits, fitting, stable_id
from conspectus.text.positions import (
    BETWEEN,
    MAX_HEADING_LENGTH,
    MAX_PATH_LENGTH,
    checked,
    heading_at,
    headings_in,
    path_of,
    rst_headings,
)
from conspectus.text.printing import on_one_line, printable, unbracketed, unlike_headers
from conspectus.text.sentences import sentence_end_before
from conspectus.text.times import EPOCH
from conspectus.text.vectors import MAX_DIMENSIONS, packed, unit

CLUSTERS = st.sampled_from(
    ["a", " ", ".", "e\u0301", "👩\u200d👧", "🇩", "\r", "\n", "क्षि", "\u0600", "\u200d", "ü"]
)
TEXTS = st.lists(CLUSTERS, max_size=30).map("".join)


def chunk(text: str, heading: str | None) -> Chunk:
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
    assert heading_at(chunk(text, heading), "markdown", text.index(word)) == expected


@pytest.mark.parametrize("syntax", ["plain", "code"])
def test_a_text_without_headings_stands_under_that_of_its_chunk(syntax: str) -> None:
    assert heading_at(chunk(SECTIONS, "One"), syntax, 20) == "One"  # type: ignore[arg-type]
    assert list(headings_in(SECTIONS, syntax)) == []  # type: ignore[arg-type]
    assert heading_at(chunk(SECTIONS, "One"), "markdown", 0) == "One"


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
    assert checked(places, "text") == tuple(places)
    assert checked((), "") == ()
    for page in (0, 2**31):
        with pytest.raises(InvalidInput, match="counted from 1"):
            checked([TextPosition(0, 1), TextPosition(1, page)], "text")
    with pytest.raises(InvalidInput, match="ascending"):
        checked([TextPosition(1), TextPosition(3), TextPosition(2)], "text")


@given(TEXTS, st.integers(-1, 60))
def test_every_border_is_one_of_the_text_from_its_start(text: str, position: int) -> None:
    borders = sorted({0, len(text), *(cluster.end() for cluster in regex.finditer(r"\X", text))})
    position = min(position, len(text))
    lower = [border for border in borders if border <= max(position, 0)]
    assert graphemes_prefix(text, position) == text[: lower[-1]]
    if position >= 0:
        assert last_border(text, position) == lower[-1]
        assert next_border(text, position) == next(border for border in borders if border >= position)
    text_borders = Borders(text)
    for limit in range(1, len(text) + 1):
        assert text_borders.last(0, limit) == max(border for border in borders if border <= limit)
        assert text_borders.is_border(limit, 0, len(text)) is (limit in borders)


@given(TEXTS, st.integers(-2, 60))
def test_a_cut_is_within_the_limit_and_splits_no_cluster(text: str, limit: int) -> None:
    end = sentence_end_before(text, limit)
    assert 0 <= end <= max(0, min(limit, len(text)))
    assert graphemes_prefix(text, end) == text[:end]
    if limit >= len(text):
        assert end == len(text)


@pytest.mark.parametrize(
    ("text", "limit", "beginning"),
    [
        ("One two. Three", 8, "One two."),
        ("One two. Three", 9, "One two."),
        ("One two. Three", 7, "One two"),
        ("One. Two three four", 8, "One. Two"),
        ("One. Two three four", 7, "One."),
        ("One two three", 7, "One two"),
        ("One two three", 6, "One tw"),
        ("ab cdefgh", 6, "ab cde"),
        ("ab cdefgh", 3, "ab"),
        ("x", 0, ""),
        ("xy", 1, "x"),
    ],
)
def test_a_cut_comes_after_the_last_sentence_or_word_of_the_second_half(
    text: str, limit: int, beginning: str
) -> None:
    assert text[: sentence_end_before(text, limit)] == beginning


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x0bb\x0cc\x1cd\x1de\x1ef", "a\nb\nc\nd\ne\nf"),
        ("a\x1bb\x7fc\x9fd\ud800e\uffff", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffd"),
        ("a\tb\rc\x85d\u2028e", "a\tb\rc\x85d\u2028e"),
        ("plain\ntext", "plain\ntext"),
        ("", ""),
    ],
)
def test_what_is_printed_has_no_control_characters(text: str, printed: str) -> None:
    assert printable(text) == printed
    assert on_one_line(text) == " ".join(printed.split())


def test_brackets_are_escaped_where_they_could_be_headers() -> None:
    assert unlike_headers("[1] a\n\uff3b2\uff3d b\nsee [3]") == "\\[1] a\n\\\uff3b2\uff3d b\nsee [3]"
    assert unlike_headers("\uff3b2\uff3d b") == "\\\uff3b2\uff3d b"
    assert unbracketed(" a[1]\n\uff3bb\uff3d ") == "a\\[1\\] \\\uff3bb\\\uff3d"


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("ü", 2), ("€", 3), ("🎉", 4), ("\ud800", 3), ("\0", 1)]
)
def test_a_text_fits_by_its_bytes(text: str, length: int) -> None:
    assert fits(text, length)
    assert not fits(text, length - 1)
    assert fitting("key", text, length) == text
    with pytest.raises(InvalidInput, match=f"more than {length - 1} bytes") as refused:
        fitting("key", text, length - 1)
    assert refused.value.field == "key"


def test_ids_stay_what_stores_have() -> None:
    """An id that changed would make a second document, edge or feedback of each stored one."""
    assert stable_id() == "d7ac5fc8-41a2-5335-8424-6945bee28173"
    assert stable_id("a", "bc") == "5b4aeb54-f100-54ec-b2ac-b7656dbda46e"
    assert edge_id("g", "a", "b", "knows", None) == stable_id("edge", "g", "a", "b", "knows", "")
    begun = edge_id("g", "a", "b", "knows", EPOCH)
    assert begun == stable_id("edge", "g", "a", "b", "knows", "1970-01-01T00:00:00.000000Z")
    assert uuid.UUID(begun).version == 5
    assert (NAME_BYTES, KEY_BYTES) == (1_000, 2_048)


@pytest.mark.parametrize(
    "numbers",
    [
        [], [[1.0]], [0.0, 0.0], [float("nan"), 1.0], [1.0, float("inf")], ["a"], [None], [1.0, [2.0]],
        [0.0] * MAX_DIMENSIONS, [1.0] * (MAX_DIMENSIONS + 1), 1.0,
    ],
)  # fmt: skip
def test_what_is_no_direction_is_no_vector(numbers: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        unit(numbers)  # type: ignore[arg-type]
    assert refused.value.field == "vector"


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300, -1.0])
def test_a_vector_has_length_one_whatever_its_scale(scale: float) -> None:
    vector = unit([3 * scale, 4 * scale])
    assert vector.dtype == np.float32
    assert vector.tolist() == pytest.approx([0.6 * np.sign(scale), 0.8 * np.sign(scale)])
    assert np.linalg.norm(unit([scale] * MAX_DIMENSIONS)) == pytest.approx(1.0, abs=1e-4)


def test_vectors_are_stored_as_half_floats_with_the_low_byte_first() -> None:
    rows = np.array([[1.0, -2.0], [0.5, 65_504.0]], dtype=np.float32)
    assert packed(rows) == [b"\x00\x3c\x00\xc0", b"\x00\x38\xff\x7b"]
    assert packed(rows[:0]) == []
