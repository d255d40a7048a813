"""Filling merged cells, and tables as Markdown."""

from conspectus.sources.files.tables import BLANK, Cell, fill_merged, flatten_cell, render_cells, render_table


def fill_texts(*rows: list[Cell]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in fill_merged(rows)]


def test_a_cell_is_repeated_in_each_row_and_column_that_it_spans() -> None:
    block = [Cell("block", columns=2, rows=2), Cell("a")]
    assert fill_texts(block, [Cell("b")], [Cell("c"), Cell("d"), Cell("e")]) == [
        ["block", "block", "a"],
        ["block", "block", "b"],
        ["c", "d", "e"],
    ]


def test_a_continued_cell_repeats_the_cell_above() -> None:
    continued = Cell("", is_continued=True)
    assert fill_texts([Cell("a"), Cell("b")], [continued, Cell("c")], [continued, Cell("d")]) == [
        ["a", "b"],
        ["a", "c"],
        ["a", "d"],
    ]
    assert fill_texts([continued, Cell("x")]) == [["", "x"]]


def test_a_row_without_text_of_its_own_has_no_cells() -> None:
    assert fill_texts([Cell("a", rows=3), Cell("b")], [], [BLANK], [Cell("c")]) == [["a", "b"], [], [], ["c"]]


def test_a_long_text_is_not_repeated() -> None:
    assert fill_texts([Cell("x" * 2_000, columns=3), Cell("y")]) == [["x" * 2_000, "", "", "y"]]


def test_copies_are_limited_by_the_size_of_the_table() -> None:
    rows = [[Cell("x" * 900, columns=100, rows=1_000)], *([Cell("y")] for _ in range(500))]
    assert sum(len(text) for row in fill_texts(*rows) for text in row) < 100_000


def test_a_table_in_a_cell_becomes_one_line() -> None:
    assert flatten_cell("Facts:\n\n| a | b\\|c |\n| --- | --- |\n| d |  |") == "Facts: a, b\\|c; d"
    assert flatten_cell("two\n lines\f") == "two lines\f"


def test_columns_without_text_are_gone() -> None:
    assert render_table([["", "a", "", "b"], ["", "1"], ["", "", "", "2", ""]]) == (
        "| a | b |\n| --- | --- |\n| 1 |  |\n|  | 2 |"
    )


def test_rows_of_unequal_length_are_padded() -> None:
    assert render_table([["a"], ["b", "c"]]) == "| a |  |\n| --- | --- |\n| b | c |"
    assert render_cells([[], [BLANK]]) == ""


def test_a_row_whose_cells_all_reach_into_the_next_has_no_height() -> None:
    header = [Cell("Year"), Cell("Sales")]
    assert render_cells([header, [Cell("2025", rows=2)], [Cell("100")]]) == (
        "| Year | Sales |\n| --- | --- |\n| 2025 | 100 |"
    )
    assert render_cells([header, [Cell("2025", rows=2)]]) == "| Year | Sales |\n| --- | --- |\n| 2025 |  |"
