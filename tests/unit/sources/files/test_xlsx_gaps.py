"""Cells far beyond the tables of a sheet: read, though the rows and columns between are not laid out."""

import pytest
from tests.office_samples import row, xlsx

from conspectus.errors import UnreadableFile
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.xlsx_gaps import column_letters, column_number, compact_sheets
from conspectus.sources.files.zip_xml import Archive

FILES = LocalFiles()
TABLE = row(1, "Name", "City") + row(2, "Ann", "Rome") + row(3, "Bo", "Oslo")
PART = "xl/worksheets/s1.xml"


def cell(reference: str, text: str) -> str:
    return f'<c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c>'


def far_row(reference: str, text: str = "stray") -> str:
    return f'<row r="{reference.lstrip("AXFD")}">{cell(reference, text)}</row>'


def compacted(rows: str, **options) -> str:
    archive = Archive(xlsx({"S": rows}, **options), 10_000_000)
    return compact_sheets(archive, {"S": PART}).get(PART, b"").decode()


def sheet_text(rows: str, **options) -> str:
    [document] = FILES.parse_bytes(xlsx({"S": rows}, **options), "a.xlsx").documents
    return document.text.removeprefix("## S\n\n")


@pytest.mark.parametrize(
    ("stray", "reference", "end"),
    [
        (far_row("A1048576"), "A5", "| stray |  |"),
        (far_row("XFD1048576"), "D5", "|  |  | stray |"),
        (far_row("XFD4"), "D4", "|  |  | stray |"),
    ],
)
def test_a_stray_cell_is_one_row_and_one_column_away(stray: str, reference: str, end: str) -> None:
    assert f'r="{reference}"' in compacted(TABLE + stray)
    text = sheet_text(TABLE + stray)
    assert text.startswith("| Name | City |")
    assert text.endswith(end)


def test_merged_cells_stay_where_they_are() -> None:
    rows = row(1, "Name", "City") + row(900_001, "Ann", "Rome") + '<row r="900002"></row>'
    rows += row(900_003, "", "Oslo")
    assert 'ref="A3:A5"' in compacted(rows, merged="A900001:A900003")
    assert sheet_text(rows, merged="A900001:A900003").endswith("| Ann | Rome |\n| Ann | Oslo |")


def test_percentages_and_long_numbers_far_away_are_as_shown() -> None:
    far = '<row r="1048576"><c r="A1048576" s="2"><v>0.125</v></c>'
    far += '<c r="B1048576"><v>12345678901234567</v></c></row>'
    assert sheet_text(TABLE + far, formats=("0.0%",)).endswith("| 12.5% | 12345678901234567 |")


def test_sheets_without_wide_gaps_stay_as_they_are() -> None:
    assert compacted(TABLE) == ""
    assert compacted(TABLE + row(500, "a", "b")) == ""
    assert compacted("".join(row(number, *"abcdefgh") for number in range(1, 8_000))) == ""


def test_styled_cells_without_text_reach_nowhere() -> None:
    styled = '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
    assert sheet_text(TABLE + styled) == sheet_text(TABLE)


def test_a_diagonal_that_fills_a_sheet_is_named_with_what_to_do() -> None:
    references = [f"{column_letters(4 * n)}{100 * n}" for n in range(1, 3_001)]
    rows = "".join(f'<row r="{100 * n}">{cell(name, "x")}</row>' for n, name in enumerate(references, 1))
    with pytest.raises(UnreadableFile, match="reaches to QSN300000, far beyond its tables: delete the cells"):
        FILES.parse_bytes(xlsx({"S": rows}), "a.xlsx")


@pytest.mark.parametrize("letters", ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD"])
def test_letters_of_columns_are_numbers(letters: str) -> None:
    assert column_letters(column_number(letters.encode())) == letters
