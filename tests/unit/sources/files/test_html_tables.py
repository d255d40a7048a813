"""Tables of HTML: merged cells, nested tables, layout tables and hostile sizes."""

import time

import pytest

from conspectus.sources.files.html import read_visible_text

MERGED = """<table><caption>Sales by quarter</caption><thead><tr><th>Year<th>Quarter<th>Sales</thead>
<tr><td rowspan=2>2025</td><td>Q1</td><td>100</td></tr><tr><td>Q2</td><td>150</td></tr><tr></tr>
<tr><td> </td><td></td></tr><tr><td colspan="2">Total</td><td>250</td></tr></table>"""


def visible_text(html: str) -> str:
    return read_visible_text(html.encode(), "utf-8").text()


def test_merged_cells_are_filled_and_empty_rows_gone() -> None:
    assert visible_text(f"before{MERGED}after") == (
        "before\n\nSales by quarter\n\n| Year | Quarter | Sales |\n| --- | --- | --- |\n| 2025 | Q1 | 100 |\n"
        "| 2025 | Q2 | 150 |\n| Total | Total | 250 |\n\nafter"
    )


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("<tr><td>a<td>b<tr><td rowspan=0>c<td>d<tr><td>e", "| a | b |\n| --- | --- |\n| c | d |\n| c | e |"),
        ("<tr><td>a<td>b|c<tr><td colspan=x>d", "| a | b\\|c |\n| --- | --- |\n| d |  |"),
        ("<tr><td>a<td>b<td rowspan=2>c<tr><td>d", "| a | b | c |\n| --- | --- | --- |\n| d |  | c |"),
        ("<td>a<td>b", "| a | b |\n| --- | --- |"),
        ("<tr><td>alone", "alone"),
        ("<tr><td>first<tr><td>second", "first\n\nsecond"),
        ("<tr><th>name<tr><td>x", "| name |\n| --- |\n| x |"),
        ("<tr><td><p>two<p>parts<td>b<br>c", "| two parts | b c |\n| --- | --- |"),
        ("<tr><td></table>", ""),
    ],
)
def test_a_table_of_any_shape_is_readable(table: str, text: str) -> None:
    assert visible_text(f"<table>{table}</table>") == text


def test_tables_in_tables_are_kept() -> None:
    inner = "<table><tr><td>Volt<td>230<tr><td>Watt<td>5</table>"
    with_header = f"<table><tr><th>Part<th>Facts<tr><td>Pump<td>{inner}<tr><td>Fan<td>none</table>"
    assert visible_text(with_header) == (
        "| Part | Facts |\n| --- | --- |\n| Pump | Volt, 230; Watt, 5 |\n| Fan | none |"
    )
    layout = f"<table><tr><td><h2>Menu</h2><td>{inner}</table>"
    assert visible_text(layout) == "## Menu\n\n| Volt | 230 |\n| --- | --- |\n| Watt | 5 |"
    role = "<table role=presentation><tr><td>left<td>right</table>"
    assert visible_text(role) == "left\n\nright"


def test_a_row_header_over_several_rows_is_no_name_of_a_column() -> None:
    rows = "<tr><th>Year<th>Month<th>Sales<tr><th rowspan=3>2025<tr><td>May<td>134<tr><td>June<td>150"
    assert visible_text(f"<table>{rows}</table>") == (
        "| Year | Month | Sales |\n| --- | --- | --- |\n| 2025 | May | 134 |\n| 2025 | June | 150 |"
    )


def test_a_heading_or_a_table_in_one_of_many_cells_does_not_make_a_layout() -> None:
    inner = "<table><tr><td>Volt<td>230<tr><td>Watt<td>5</table>"
    assert visible_text(f"<table><tr><td>Part<td>Facts<tr><td>Pump<td>{inner}</table>") == (
        "| Part | Facts |\n| --- | --- |\n| Pump | Volt, 230; Watt, 5 |"
    )
    assert visible_text("<table><tr><td><h1>A</h1><td>B<tr><td>1<td>2</table>") == (
        "| A | B |\n| --- | --- |\n| 1 | 2 |"
    )
    long = f"<table><tr><td>Menu<td><h2>News</h2>{'word ' * 80}<tr><td>End<td>Ok</table>"
    assert visible_text(long).startswith("Menu\n\n## News\nword word")


@pytest.mark.parametrize(
    "page",
    [
        "<table>" + "<tr><td colspan=1000 rowspan=65534>" + "x" * 900 + "<tr><td>y" * 20_000,
        "<table><tr>" + "<td rowspan=9999>x" * 10_000 + "<tr><td>y" * 20_000,
        "<table><tr>" + "<td>x" * 20_000 + "<tr><td>y" * 20_000,
        "<table><tr>" + "<td colspan=100 rowspan=99>" * 20_000,
        "<table><tr><td>" * 20_000 + "x" * 100_000,
        "<table><tr><th>h<th colspan=100 rowspan=100>|x" * 5_000,
    ],
    ids=["spans", "columns", "wide", "blank", "nested", "nested-spans"],
)
def test_a_hostile_table_stays_small_and_quick(page: str) -> None:
    start = time.process_time()
    text = visible_text(page)
    assert time.process_time() - start < 10
    assert len(text) < 60 * len(page)


def test_several_header_rows_are_one_and_a_title_stands_above() -> None:
    text = visible_text(
        "<table><tr><th colspan=3>Fees</th></tr><tr><th rowspan=2>Berth</th><th colspan=2>Fee</th></tr>"
        "<tr><th>2024</th><th>2025</th></tr><tr><td>H1</td><td>5</td><td>6</td></tr></table>"
    )
    assert text == "Fees\n\n| Berth | Fee / 2024 | Fee / 2025 |\n| --- | --- | --- |\n| H1 | 5 | 6 |"


def test_header_rows_alone_stay_a_table() -> None:
    assert (
        visible_text("<table><tr><th>a<th>b<tr><th>c<th>d</table>") == "| a | b |\n| --- | --- |\n| c | d |"
    )


def test_cells_of_the_head_are_names_whatever_their_tag_is() -> None:
    table = "<table><thead><tr><td>Berth<td>Fee<tr><td>name<td>2025</thead><tbody><tr><td>Heron<td>6</table>"
    assert visible_text(table) == "| Berth / name | Fee / 2025 |\n| --- | --- |\n| Heron | 6 |"
