"""Tables of Markdown texts: where they stand, and which header belongs to a position."""

import pytest

from conspectus.model.ids import ChunkId, DocumentId
from conspectus.model.records import Chunk
from conspectus.text.sentences import sentences
from conspectus.text.splitter import SplitOptions, repeated_headers, split
from conspectus.text.tables import (
    TableHeaders,
    find_table_header,
    find_tables,
    has_tables,
    sentences_and_rows,
    tables_in,
)

HEADER = "| Berth | Fee |\n| --- | --- |\n"
ROWS = "".join(f"| Heron-{number} | {number * 7} |\n" for number in range(1, 151))
LONG = f"Fees of the harbor.\n\n{HEADER}{ROWS}\nThe end.\n"


def parts_of(text):
    return [(text[table.start : table.body], text[table.body : table.end]) for table in find_tables(text)]


@pytest.mark.parametrize(
    "header",
    [
        HEADER,
        "Berth | Fee\n--- | ---:\n",
        "| Berth |\n|:-:|\n",
        "> | Berth | Fee |\n> | --- | --- |\n",
        "- | Berth | Fee |\n  | --- | --- |\n",
        "| Berth \\| place | Fee |\r\n| --- | --- |\r\n",
    ],
)
def test_a_table_is_its_header_and_the_lines_with_a_pipe_below(header):
    lead = "> " if header.startswith(">") else ""
    rows = f"{lead}| Heron-1 | 7 |\n{lead}| Heron-2 | 14 |\n"
    assert parts_of(f"Text\n\n{header}{rows}\nText | more") == [(header, rows)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "| a | b |\n| c | d |\n",
        "| a |\n| --- | --- |\n| b | c |\n",
        "```\n| a | b |\n| --- | --- |\n| c | d |\n```\n",
        "a\n---\nb | c\n",
        "| --- | --- |\n| a | b |\n",
    ],
)
def test_other_lines_with_pipes_are_no_table(text):
    assert find_tables(text) == []


def test_a_table_ends_at_a_heading_or_fence_and_two_tables_are_two():
    table = f"{HEADER}| Heron-1 | 7 |\n"
    assert parts_of(f"{table}# a | b\n{table}```x|y\n```\n{table}") == [(HEADER, "| Heron-1 | 7 |\n")] * 3


def test_texts_that_may_have_tables_are_known():
    assert has_tables(f"```\n{HEADER}```")
    assert not has_tables("a | b\n\n---\n")


@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_each_part_of_a_table_leaves_room_for_its_header_and_begins_with_a_row(unit):
    options = SplitOptions(size=300, overlap=60, syntax="markdown", unit=unit)
    headers = repeated_headers(LONG, options, len)
    pieces = split(LONG, options, len)
    assert "".join(piece.text for piece in pieces).count("Heron-77 ") == 1
    inside = [piece for piece in pieces if headers.header_at(piece.start)]
    assert len(inside) > 8
    for piece in inside:
        assert headers.header_at(piece.start) == HEADER
        assert piece.text.startswith("| Heron-")
        assert len(HEADER + piece.text) <= options.size
    assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]


def test_no_part_has_the_header_of_a_table_without_a_row():
    for lead in range(230, 300):
        text = "x" * lead + f"\n\n{HEADER}{ROWS}"
        for piece in split(text, SplitOptions(size=300, overlap=0, syntax="markdown")):
            assert "--- |" not in piece.text or "Heron" in piece.text


@pytest.mark.parametrize("cell", ["", "a" * 5000, "one two. " * 600])
def test_headers_and_cells_that_are_too_long_are_split_like_text(cell):
    wide = "| " + " | ".join(f"Column {number}" for number in range(400)) + " |\n|" + " --- |" * 400 + "\n"
    for header in (HEADER, wide):
        text = f"{header}| Heron-1 | {cell} |\n| Heron-2 | 14 |\n"
        options = SplitOptions(size=500, overlap=50, syntax="markdown")
        pieces = split(text, options)
        headers = repeated_headers(text, options)
        assert all(len(headers.header_at(piece.start) + piece.text) <= 500 for piece in pieces)
        assert pieces[-1].end == len(text)


def test_a_header_without_names_is_not_repeated():
    text = f"|  |  |\n| --- | --- |\n{ROWS}"
    assert TableHeaders(text, find_tables(text)).header_at(200) == ""


def chunk_of(text, header=None):
    return Chunk(ChunkId(1), DocumentId("d"), 1, text, 0, len(text), 1, "hash", table_header=header)


def test_the_header_at_a_position_of_a_chunk_is_that_of_its_table():
    first, second = "| Heron-1 | 7 |\n| Heron-2 | 14 |\n", "\nText\n\n| Day |\n| --- |\n| Monday |\n"
    chunk = chunk_of(first + second, HEADER)
    found = [
        find_table_header(chunk, "markdown", position)
        for position in (0, 20, len(first) + 2, len(first + second) - 3)
    ]
    assert found == [HEADER, HEADER, "", "| Day |\n| --- |\n"]
    assert find_table_header(chunk_of(first), "markdown", 5) == ""
    assert find_table_header(chunk_of("rest of a cell |\n| b | c |\n", HEADER), "markdown", 20) == HEADER


def test_rows_are_sentences():
    text = f"One. Two.\n\n{HEADER}| A. B. | C! |\n| D | E. |\n\nThree. Four.\n"
    chunk = chunk_of(text)
    units = [text[start:end] for start, end in sentences_and_rows(text, tables_in(chunk, "markdown"))]
    assert units == ["One.", "Two.", HEADER.rstrip(), "| A. B. | C! |", "| D | E. |", "Three.", "Four."]
    assert list(sentences_and_rows(text, tables_in(chunk, "plain"))) == list(sentences(text))


def test_a_hundred_thousand_rows_are_found_at_once():
    text = (
        HEADER + "| a | b |\n" * 100_000 + "|" * 100_000 + "\n" + "- " * 100_000 + "\n|" + "-" * 100_000 + "x"
    )
    assert [table.start for table in find_tables(text)] == [0]
