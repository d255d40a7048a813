"""Workbooks as they are shown: formats, errors, merged cells, hidden sheets and several tables in a sheet."""

import pytest
from tests.office_samples import links, row, xlsx

from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()


def sheet_text(rows: str, **options) -> str:
    [document] = FILES.parse_bytes(xlsx({"S": rows}, **options), "a.xlsx").documents
    return document.text.removeprefix("## S\n\n")


def shown_cell(stored: str, *, code: str = "", kind: str = "n") -> str:
    style = 2 if code else 0
    cell = f'<row r="1"><c r="A1" s="{style}" t="{kind}"><v>{stored}</v></c></row>'
    return sheet_text(cell, formats=(code,)).split("\n")[0].strip("| ")


@pytest.mark.parametrize(
    ("stored", "code", "text"),
    [
        ("0.125", "0.0%", "12.5%"),
        ("0.125", "0%", "13%"),
        ("-0.28999999999999998", "0.00%", "-29.00%"),
        ("0.5", "#,##0.0%;[Red]-#,##0.0%", "50.0%"),
        ("0.5", "0.0&quot;%&quot;", "0.5"),
        ("1e300", "0%", "1e+300"),
        ("1.5", "[h]:mm", "36:00"),
        ("1.0003125", "[h]:mm:ss", "24:00:27"),
        ("45292", "d.m.yyyy", "2024-01-01"),
        ("45292.99999999", "yyyy-mm-dd hh:mm", "2024-01-02"),
        ("45292.75", "yyyy-mm-dd hh:mm", "2024-01-01 18:00:00"),
        ("12345678901234567", "", "12345678901234567"),
        ("-12345678901234567", "", "-12345678901234567"),
        ("0.1", "", "0.1"),
    ],
)
def test_a_number_is_read_as_it_is_shown(stored: str, code: str, text: str) -> None:
    assert shown_cell(stored, code=code) == text


def test_an_error_is_text() -> None:
    assert shown_cell("#DIV/0!", kind="e") == "#DIV/0!"
    assert sheet_text('<row r="3"><c r="C3"><v>1</v></c><c r="D3" t="e"><v>#N/A</v></c></row>') == (
        "| 1 | #N/A |\n| --- | --- |"
    )


def test_merged_cells_are_filled() -> None:
    rows = row(2, "Year", "Quarter", "Sales") + row(3, "2025", "Q1", "100") + row(4, "", "Q2", "150")
    assert sheet_text(rows, merged="A3:A4") == (
        "| Year | Quarter | Sales |\n| --- | --- | --- |\n| 2025 | Q1 | 100 |\n| 2025 | Q2 | 150 |"
    )
    assert sheet_text(row(1, "Report") + row(2, "a", "b"), merged="A1:XFD1") == (
        "Report\n\n| a | b |\n| --- | --- |"
    )


def test_charts_follow_the_tables_of_their_sheet() -> None:
    figures = "".join(f"<v>{figure}</v>" for figure in (7, 14))
    title = "<title><p><r><t>Fees by year</t></r></p></title>"
    chart = f"<c>{title}<ser><tx><v>Fee</v></tx><val>{figures}</val></ser></c>"
    parts = {
        "xl/worksheets/_rels/s1.xml.rels": links(("d", "drawing", "../drawings/d.xml")),
        "xl/drawings/d.xml": '<wsDr><anchor><chart id="c"/></anchor></wsDr>',
        "xl/drawings/_rels/d.xml.rels": links(("c", "chart", "../charts/c.xml")),
        "xl/charts/c.xml": chart,
    }
    (document,) = FILES.parse_bytes(xlsx({"S": row(1, "x")}, parts=parts), "a.xlsx").documents
    assert document.text == "## S\n\nx\n\nFees by year\n\n| Fee |\n| --- |\n| 7 |\n| 14 |"


def test_titles_stand_above_and_figures_have_no_names() -> None:
    assert sheet_text(row(1, "Fees of May") + row(2, "a", "b") + row(3, "1", "2")) == (
        "Fees of May\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    )
    assert sheet_text(row(1, "1", "2") + row(2, "3", "4")) == "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"


def test_hidden_sheets_are_left_out_with_a_notice() -> None:
    parsed = FILES.parse_bytes(xlsx({"S": row(1, "x"), "Secret": row(1, "y")}, hidden="Secret"), "a.xlsx")
    assert [document.text for document in parsed.documents] == ["## S\n\nx"]
    assert parsed.notice == "hidden sheets were left out: Secret"


def test_two_blocks_are_two_tables() -> None:
    rows = row(1, "Name", "Age") + row(2, "Ann", "40") + row(4, "City", "People") + row(5, "Ulm", "9")
    assert sheet_text(rows) == (
        "| Name | Age |\n| --- | --- |\n| Ann | 40 |\n\n| City | People |\n| --- | --- |\n| Ulm | 9 |"
    )


def test_blocks_side_by_side_are_two_tables() -> None:
    rows = row(1, "Name", "Age", "", "City", "People") + row(2, "Ann", "40", "", "Ulm", "9")
    assert sheet_text(rows + row(3, "Bob", "41")) == (
        "| Name | Age |\n| --- | --- |\n| Ann | 40 |\n| Bob | 41 |\n\n"
        "| City | People |\n| --- | --- |\n| Ulm | 9 |"
    )
    assert len(sheet_text(rows).split("\n\n")) == 1


def test_a_blank_row_inside_a_table_divides_nothing() -> None:
    rows = row(1, "Name", "City") + row(2, "Ann", "Ulm") + row(4, "Bob", "Bonn") + row(5, "Eve", "Jena")
    assert len(sheet_text(rows).split("\n\n")) == 1


def test_two_rows_of_names_become_one_so_that_each_part_of_a_long_table_has_both() -> None:
    names = row(1, "Berth", "2024", "", "2025", "") + row(2, "Berth", "Q1", "Q2", "Q1", "Q2")
    rows = names + "".join(row(3 + n, f"B{n}", "1", "2", "3", "4") for n in range(3))
    header = sheet_text(rows, merged="B1:C1").split("\n")[0]
    assert header == "| Berth | 2024 / Q1 | 2024 / Q2 | 2025 / Q1 | Q2 |"


def anchor(row_number: int, name: str) -> str:
    return f'<twoCellAnchor><from><row>{row_number}</row></from><chart id="{name}"/></twoCellAnchor>'


def test_a_chart_stands_before_the_table_below_it_and_has_its_kind() -> None:
    figures = "<tx><v>Fee</v></tx><cat><v>2025</v></cat><val><v>7</v></val>"
    title = "<title><p><t>Fees</t></p></title>"
    parts = {
        "xl/worksheets/_rels/s1.xml.rels": links(("d", "drawing", "../drawings/d.xml")),
        "xl/drawings/d.xml": f"<wsDr>{anchor(9, 'low')}{anchor(0, 'high')}</wsDr>",
        "xl/drawings/_rels/d.xml.rels": links(
            ("low", "chart", "../charts/low.xml"), ("high", "chart", "../charts/high.xml")
        ),
        "xl/charts/high.xml": f"<c><lineChart><ser>{figures}</ser></lineChart></c>",
        "xl/charts/low.xml": f"<c>{title}<bar3DChart><ser>{figures}</ser></bar3DChart></c>",
    }
    rows = (
        row(1, "Name", "Fee") + row(2, "Ann", "7") + row(5, "Berth", "", "Depth") + row(6, "Heron", "", "2")
    )
    first, line_chart, figures_of_line, second, title_text, bar_chart, _ = sheet_text(
        rows, parts=parts
    ).split("\n\n")
    assert first.startswith("| Name | Fee |")
    assert (line_chart, title_text, bar_chart) == ("Line chart", "Fees", "Bar chart")
    assert figures_of_line.endswith("| 2025 | 7 |")
    assert second.startswith("| Berth | Depth |")


@pytest.mark.parametrize(
    ("cell", "notice"),
    [
        ("<c r='A1'><f>SUM(B1:B2)</f><v></v></c>", "1 formulas have no results"),
        ("<c r='A1'><f>SUM(B1:B2)</f><v/></c>", "1 formulas have no results"),
        ("<c r='A1' s='1'><f t='shared' si='0'/></c>", "1 formulas have no results"),
        ("<x:c xmlns:x='a' r='A1'><x:f>1+1</x:f></x:c>", "1 formulas have no results"),
        ("<c r='A1'><f>SUM(B1:B2)</f><v>3</v></c>", None),
        ("<c r='A1' t='str'><f>B1</f><v></v></c>", None),
    ],
)
def test_formulas_that_were_never_calculated_are_counted(cell: str, notice: str | None) -> None:
    rows = f'<row r="1">{cell}<c r="B1"><v>1</v></c></row>'
    actual = FILES.parse_bytes(xlsx({"S": rows}), "a.xlsx").notice
    assert actual == notice if notice is None else str(actual).startswith(notice)


def test_a_cell_far_down_in_few_columns_is_read() -> None:
    far_down = row(1, "Name", "City") + '<row r="1000000"><c r="B1000000"><v>1</v></c></row>'
    assert sheet_text(far_down).endswith("|  | 1 |")
