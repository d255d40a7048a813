"""What OpenDocument files show beside their text: it is read, or a notice says how much is left out."""

from tests.unit.sources.files.test_odf import SPACES, cell, draw, read, row, sheet

OBJECT = 'xmlns:xlink="urn:xlink" xlink:href="./Object 1"'
CHART = (
    f'<office:document-content {SPACES} xmlns:chart="urn:chart"><office:body><office:chart><chart:chart>'
    "<chart:title><text:p>Fees by year</text:p></chart:title>"
    + sheet(row(cell(""), cell("Fee")), row(cell("2025"), cell("7")))
    + "</chart:chart></office:chart></office:body></office:document-content>"
)


def styles(master: str) -> str:
    return (
        f"<office:document-styles {SPACES}><office:master-styles><style:master-page>{master}"
        "</style:master-page></office:master-styles></office:document-styles>"
    )


def test_margins_of_pages_are_read_once_without_page_numbers() -> None:
    page = "<text:p>Page <text:page-number>1</text:page-number></text:p>"
    header = "<text:p>Harbor handbook</text:p>"
    master = (
        f"<style:header>{header}</style:header><style:header-left>{header}</style:header-left>"
        f"<style:footer>{page}</style:footer>"
    )
    extract = read("text", "<text:p>x</text:p>", **{"styles.xml": styles(master)})
    assert (extract.text, extract.notice) == ("x\n\nHeader: Harbor handbook", None)


def test_a_sheet_has_no_header_with_the_fields_of_its_page() -> None:
    name = "<text:sheet-name>???</text:sheet-name>"
    master = (
        f"<style:header><text:p>{name}</text:p></style:header>"
        f"<style:footer><text:p>Draft of {name} (<text:title>???</text:title>)</text:p></style:footer>"
        f"<style:header-left><text:p>{name} (<text:title>???</text:title>)</text:p></style:header-left>"
    )
    table = "<table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell>"
    body = f"{table}</table:table-row></table:table>"
    extract = read("spreadsheet", body, **{"styles.xml": styles(master)})
    assert extract.text.splitlines()[-1] == "Footer: Draft of ()"


def test_charts_and_formulas_are_read() -> None:
    chart = draw(f"<draw:object {OBJECT}/>")
    parts = {"Object 1/content.xml": CHART}
    expected = "Fees by year\n\n|  | Fee |\n| --- | --- |\n| 2025 | 7 |"
    extract = read("text", f"<text:p>{chart}</text:p>", **parts)
    assert (extract.text, extract.notice) == (expected, None)
    in_sheet = sheet(f"<table:shapes>{chart}</table:shapes>", row(cell("a")))
    assert read("spreadsheet", in_sheet, **parts).text == f"## Fees\n\na\n\n{expected}"
    formula = "<math><semantics><mi>x</mi><annotation>x over 2</annotation></semantics></math>"
    body = f"<text:p>{chart}</text:p>"
    assert read("text", body, **{"Object 1/content.xml": formula}).text == "$x over 2$"


def test_an_object_that_is_missing_or_elsewhere_is_no_failure() -> None:
    remote = 'xmlns:xlink="urn:xlink" xlink:href="https://example.org/a"'
    body = f"<text:p>x{draw(f'<draw:object {OBJECT}/>')}{draw(f'<draw:object {remote}/>')}</text:p>"
    assert read("text", body).text == "x"


def test_text_of_a_master_slide_is_counted() -> None:
    master = draw("<draw:text-box><text:p>Harbor Inc</text:p></draw:text-box>")
    slide = draw("<draw:text-box><text:p>one two</text:p></draw:text-box>")
    extract = read("presentation", f"<draw:page>{slide}</draw:page>", **{"styles.xml": styles(master)})
    assert extract.notice == "50 % of its words are left out: texts of slide masters"


def test_ruby_and_deleted_text_are_no_loss() -> None:
    body = "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>stays</text:p>"
    assert read("text", body).notice is None
