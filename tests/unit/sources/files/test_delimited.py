"""CSV and TSV as Markdown tables."""

import pytest

from conspectus.sources.files import delimited


def delimited_table(text):
    table = delimited.read_delimited_table(text)
    return table and table.markdown


def table_of(*rows):
    names, *others = rows
    return "\n".join(
        [f"| {' | '.join(names)} |", "|" + " --- |" * len(names), *(f"| {' | '.join(r)} |" for r in others)]
    )


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_rows_are_a_table_whatever_divides_them(delimiter, line_end):
    text = "".join(
        f"{delimiter.join(row)}{line_end}" for row in (["Name", "Fee"], ["Ann", "1.5"], ["", ""], ["Bo", "2"])
    )
    assert delimited_table(text) == table_of(["Name", "Fee"], ["Ann", "1.5"], ["Bo", "2"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2\n3,4\n", ["", ""]),
        ("Country,2024,2025\nDE,1,2\n", ["Country", "2024", "2025"]),
        ("Name,City\nAnn,Rome\n", ["Name", "City"]),
        ("Ann,7,3.5\nBo,8,4.5\n", ["", "", ""]),
        ("id,1\n7,2\n8,3\n", ["", ""]),
        ("Name,Fee,,\nAnn,2,,\n", ["Name", "Fee"]),
        ("Name,Fee\nAnn,2,extra\nBo,3\n", ["Name", "Fee", ""]),
    ],
)
def test_the_first_row_has_the_names_unless_it_has_figures_above_figures(text, names):
    assert delimited_table(text).splitlines()[0] == f"| {' | '.join(names)} |"


def test_a_cell_is_on_one_line_and_its_pipes_are_escaped():
    text = 'Name,Note\nAnn,"one\ntwo | three"\nBo,"say ""hi"", then go"\n'
    assert delimited_table(text) == table_of(
        ["Name", "Note"], ["Ann", "one two \\| three"], ["Bo", 'say "hi", then go']
    )


def test_titles_stand_above_the_table_and_a_hint_is_left_out():
    text = "sep=;\nFees, all of them\n\nName;Fee\nAnn;2\nBo;3\n"
    assert (
        delimited_table(text)
        == f"Fees, all of them\n\n{table_of(['Name', 'Fee'], ['Ann', '2'], ['Bo', '3'])}"
    )


@pytest.mark.parametrize(
    "text", ["", "\n\n", "one\n", "A text, with one comma.\nAnd more of it.\nThird.\n", "x" * 200_000]
)
def test_texts_without_columns_are_no_table(text):
    assert delimited_table(text) is None


def test_short_lines_without_a_delimiter_are_one_column():
    assert delimited_table("Industry\nSales\n\nHealth care\n") == table_of(
        ["Industry"], ["Sales"], ["Health care"]
    )


def test_a_quotation_mark_that_is_never_closed_swallows_no_rows():
    text = "Name,Size\n" + "Ann,3\n" * 150 + 'Bo,"5\n' + "Cy,4\n" * 150
    assert delimited_table(text).count("\n") == 302


def test_a_hundred_thousand_rows_are_read_at_once():
    text = "Name,Fee\n" + "Ann,2\n" * 100_000
    assert delimited_table(text).count("\n") == 100_001


RAGGED = """name,fee,berth
Heron,140,12
Swan,99
Gull,7,3,by day,by night
Tern
Auk,1,2
Rook,5
"""


def test_rows_longer_and_shorter_than_the_header_are_read_and_counted():
    table = delimited.read_delimited_table(RAGGED)
    assert table.markdown.splitlines()[0] == "| name | fee | berth |  |  |"
    assert "| Gull | 7 | 3 | by day | by night |" in table.markdown
    assert "\n| Swan | 99 |\n" in table.markdown
    assert table.notice == "4 of 6 rows have more or fewer cells than the header"


@pytest.mark.parametrize("text", ["Name,Fee\nAnn,2\nBo,\n", "Name,Fee,,\nAnn,2,,\n", "1,2\n3,4\n5\n"])
def test_blank_cells_and_tables_without_names_are_not_ragged(text):
    assert delimited.read_delimited_table(text).notice is None


def test_a_cell_of_a_million_characters_is_a_cell():
    text = 'name,fee,note\nHeron,140,"' + "wave " * 200_000 + '"\nSwan,99,short\n'
    lines = delimited_table(text).splitlines()
    assert lines[0] == "| name | fee | note |"
    assert lines[2].startswith("| Heron | 140 | wave wave")
    assert lines[3] == "| Swan | 99 | short |"
