"""HTML tables in Markdown become tables of Markdown."""

import pytest

from conspectus.sources.files.markdown_tables import MAX_TABLES, render_html_tables

TABLE = "<table>\n<tr><th>Berth</th><th>Fee</th></tr>\n<tr><td>Heron</td><td>150</td></tr>\n</table>"
MARKDOWN = "| Berth | Fee |\n| --- | --- |\n| Heron | 150 |"


def test_a_table_is_in_markdown_and_the_text_around_it_stays() -> None:
    text = f"# Fees\n\n{TABLE}\n\n<p>Below</p> & more\r\n"
    assert render_html_tables(text) == f"# Fees\n\n{MARKDOWN}\n\n<p>Below</p> & more\r\n"


def test_text_right_after_a_table_is_no_row_of_it() -> None:
    assert render_html_tables(f"{TABLE} after") == f"{MARKDOWN}\n\n after"


def test_a_table_in_a_table_is_in_its_cell() -> None:
    nested = f"<table><tr><td>a</td><td>b</td></tr><tr><td>{TABLE}</td><td>c</td></tr></table>"
    assert render_html_tables(nested) == "| a | b |\n| --- | --- |\n| Berth, Fee; Heron, 150 | c |"


@pytest.mark.parametrize(
    "text",
    [
        f"```html\n{TABLE}\n```",
        f"~~~\n```\n{TABLE}\n~~~",
        f"In a line: {TABLE}",
        TABLE.removesuffix("</table>"),
        "</table>\n<table><tr><td><img src=a.png></td></tr></table>",
        "<tables>and chairs</tables>",
        "",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert render_html_tables(text) == text


def test_thousands_of_open_tables_take_no_time() -> None:
    text = "<table>\n" * 100_000
    assert render_html_tables(text) == text


def test_tables_beyond_the_limit_stay_as_they_are() -> None:
    rendered = render_html_tables("\n\n".join([TABLE] * (MAX_TABLES + 1)))
    assert (rendered.count(MARKDOWN), rendered.count("<table>")) == (MAX_TABLES, 1)
