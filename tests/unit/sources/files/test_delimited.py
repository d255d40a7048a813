"""CSV and TSV as Markdown tables."""

import pytest

from conspectus.sources.files.delimited import delimited_table


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
