"""How words, their order and cells are counted, and which files are paired with what they should become."""

from pathlib import Path

import pytest
from benchmarks.made_pages import LAYOUTS, made_pdfs, made_web_pages
from benchmarks.reading_scores import (
    cells_of,
    pairs_in,
    recall,
    recall_in_order,
    score,
    with_name_rows,
    words_of,
)


@pytest.mark.parametrize(
    ("expected", "text", "share"),
    [
        ("one two", "Two, ONE!", 1.0), ("one one two", "one two", 2 / 3), ("one", "", 0.0), ("", "x", 1.0),
        ("a\\_b &lt;c&gt;", "a_b <c>", 1.0), ("<!-- image -->one", "one", 1.0), ("naïve 日本", "naïve", 0.5),
        ("[text](http://example.org/a)", "text", 1.0), ("one", "[one](two)", 1.0), ("two", "[one](two)", 0.0),
    ],
)  # fmt: skip
def test_the_share_of_expected_words(expected: str, text: str, share: float) -> None:
    assert recall(words_of(expected), words_of(text)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("expected", "text", "share"),
    [("a b c d", "a b c d", 1.0), ("a b c d", "c d a b", 0.5), ("a b c", "c b a", 1 / 3), ("a b", "x", 0.0),
     ("a a b", "a b a", 2 / 3), ("", "a", 1.0), ("a b c", "x a y b z c", 1.0)],
)  # fmt: skip
def test_words_in_order_are_the_longest_common_subsequence(expected: str, text: str, share: float) -> None:
    assert recall_in_order(expected.split(), text.split()) == pytest.approx(share)


def test_cells_are_those_of_markdown_tables() -> None:
    table = "| Name | Fee |\n|---|:-:|\n| a\\|b | 1.5 |\n"
    assert cells_of(f"no | table\n\n{table}") == ["name", "fee", "a b", "1 5"]
    assert score(table, "Name Fee a b 1 5").cells == 0.0
    assert score(table, table).cells == 1.0
    assert score("no table", "no table").cells is None


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("| [Image: A duck] | ![a pond](a.png) |", ["a duck", "a pond"]),
        ("| A caption |\n| - |\n\n| a | b |", ["a", "b"]),
        ("| Title / Rev | Fee |\n| - | - |\n| a | b |", ["title rev", "fee", "a", "b"]),
        ("| Year | Q / 1 | Q / 2 |\n| - | - | - |\n| a / b | c / d | c / e |",
         ["year", "q", "q", "year", "1", "2", "a b", "c d", "c e"]),
        ("<!--\n| a | b |\n-->", []),
    ],
)  # fmt: skip
def test_forms_that_say_the_same_have_the_same_cells(text: str, cells: list[str]) -> None:
    assert cells_of(with_name_rows(text)) == cells


def test_a_name_over_two_rows_counts_in_order_whether_it_is_repeated_or_not() -> None:
    repeated = "| Year | Q | Q |\n| - | - | - |\n| Year | 1 | 2 |\n| a | b | c |"
    joined = "| Year | Q / 1 | Q / 2 |\n| - | - | - |\n| a | b | c |"
    assert score(repeated, joined).order == score(joined, repeated).order == 1.0
    assert score(repeated, "| Year | Q / 1 |\n| - | - |\n| a | b |").order < 1.0


def test_cells_in_another_order_and_tables_where_there_are_none_are_counted() -> None:
    table = "| a | b |\n| - | - |\n| c | d |"
    counted = score(table, "| a | c |\n| - | - |\n| b | d |")
    assert (counted.cells, counted.cells_in_order, counted.false_tables) == (1.0, 0.75, 0)
    assert score("a b c d", table).false_tables == 1


def test_a_file_is_paired_with_its_markdown(tmp_path: Path) -> None:
    files = ("docx/sources/a.docx", "docx/groundtruth/a.docx.md", "pdf/sources/b.pdf", "pdf/groundtruth/b.md",
             "c.txt", "c.txt.md", "d.pdf", "expected_outputs/d.md", "d.docx", "alone.md")  # fmt: skip
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    pairs = {pair.path.name: pair.expected for pair in pairs_in(tmp_path)}
    assert pairs == {"a.docx": files[1], "b.pdf": files[3], "c.txt": files[5], "d.pdf": files[7]}


def test_pages_are_made_in_each_layout(tmp_path: Path) -> None:
    paragraph = (
        "This is a paragraph of prose that is long enough to be taken for one, in plain letters, here."
    )
    for number in range(11):
        header = f"PEP: {number}\nTitle: A title\nStatus: Final\nType: Process\nCreated: 01-Jan-2001"
        (tmp_path / f"pep-{number:04}.rst").write_text(f"{header}\n\n{paragraph}\n", encoding="utf-8")
    (tmp_path / "page.md").write_text("# Head\n\n| a | b |\n| - | - |\n| 1 | 2 |\n", encoding="utf-8")
    pages = list(made_pdfs(tmp_path, 1))
    assert [page.kind for page in pages] == [*(f"pdf, {name}" for name in LAYOUTS), "pdf, tables"]
    assert all(page.content.startswith(b"%PDF-") for page in pages)
    [page] = made_web_pages(tmp_path, 1)
    assert b"<table>" in page.content and "cookie" not in page.expected
