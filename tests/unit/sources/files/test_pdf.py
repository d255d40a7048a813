"""The text of PDFs in the order in which a person reads them."""

from collections.abc import Sequence
from itertools import chain, zip_longest

import pytest
from tests.office_samples import lines, pdf

from conspectus.model.records import TextPosition
from conspectus.sources.files.extract import Extract
from conspectus.sources.files.pdf import read_pdf

LEFT = (
    "The harbor of the town was built",
    "when the salt trade of the north",
    "began to need a place where long",
    "boats could wait for the tide to",
    "turn before they went out again.",
)
RIGHT = (
    "Nobody knows who drew the plans,",
    "but the walls are straight and a",
    "single stone has moved in all of",
    "the years since then, which they",
    "say is due to the frozen ground.",
)
UPRIGHT = "1 0 0 1 {x} {y}"


def draw(texts: Sequence[tuple[float, float, str]], *, size: int = 10, matrix: str = UPRIGHT) -> bytes:
    """Drawing operators for texts at positions from the left and the bottom."""
    drawn = (f"BT /F1 {size} Tf {matrix.format(x=x, y=y, back=-x)} Tm ({text}) Tj ET" for x, y, text in texts)
    return "\n".join(drawn).encode()


def column(texts: Sequence[str], left: float, top: float = 700) -> list[tuple[float, float, str]]:
    """Lines of a column with a distance of 12 points."""
    return [(left, top - 12 * number, text) for number, text in enumerate(texts)]


def read(*pages: bytes) -> Extract:
    return read_pdf(pdf(*pages))


def by_row(*columns: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    return [line for line in chain.from_iterable(zip_longest(*columns)) if line]


TWO_COLUMNS = f"{' '.join(LEFT)}\n\n{' '.join(RIGHT)}"


@pytest.mark.parametrize("drawing", ["by column", "by row", "from below"])
def test_columns_are_read_one_after_the_other_however_they_are_drawn(drawing: str) -> None:
    columns = column(LEFT, 60), column(RIGHT, 260)
    texts = by_row(*columns) if drawing == "by row" else [*columns[0], *columns[1]]
    page = draw(texts[::-1] if drawing == "from below" else texts)
    assert read(page).text == TWO_COLUMNS


def test_the_last_column_of_a_page_may_be_shorter_than_the_one_before_it() -> None:
    left = [line for number in range(5) for line in column(LEFT, 60, 700 - 72 * number)]
    right = [line for number in range(3) for line in column(RIGHT, 260, 700 - 72 * number)]
    paragraphs = [" ".join(LEFT)] * 5 + [" ".join(RIGHT)] * 3
    assert read(draw(by_row(left, right))).text == "\n\n".join(paragraphs)


def test_a_note_below_a_table_is_no_row_of_it() -> None:
    names = [("Berth", "Fee"), *((f"Heron-{number}", f"{number}00") for number in range(1, 6))]
    table = [
        (x, 700 - 12 * row, text)
        for row, pair in enumerate(names)
        for x, text in zip((60, 260), pair, strict=True)
    ]
    assert read(draw([*table, (60, 610, "All fees include water.")])).text.endswith(
        "| Heron-5 | 500 |\n\nAll fees include water."
    )


def test_three_columns_below_a_title_are_read_after_it() -> None:
    third = tuple(line.replace("the", "our") for line in LEFT)
    texts = by_row(column(LEFT, 20), column(RIGHT, 215), column(third, 410))
    page = draw([(230, 740, "A long title")], size=20) + b"\n" + draw(texts)
    assert read(page).text == f"# A long title\n\n{TWO_COLUMNS}\n\n{' '.join(third)}"


@pytest.mark.parametrize("matrix", ["0 1 -1 0 {y} {x}", "-1 0 0 -1 {x} {y}", "0 -1 1 0 {y} {x}"])
def test_turned_text_is_read_along_its_lines(matrix: str) -> None:
    lines_above = [(500 - 12 * number if "-1 0 0" in matrix else 12 * number + 300) for number in range(5)]
    sign = -1 if matrix.startswith("0 -1") else 1
    texts = [(300.0, 300 + sign * (base - 300), text) for base, text in zip(lines_above, LEFT, strict=True)]
    if "-1 0 0" in matrix:
        texts = [(300.0, 300 + 12 * number, text) for number, text in enumerate(LEFT)]
    assert read(draw(texts, matrix=matrix)).text == " ".join(LEFT)


def test_the_rotation_of_a_page_changes_nothing() -> None:
    page = draw(by_row(column(LEFT, 60), column(RIGHT, 260)))
    for degrees in (90, 180, 270):
        turned = pdf(page).replace(b"/Type /Page /Parent", b"/Type /Page /Rotate %d /Parent" % degrees)
        assert read_pdf(turned).text == TWO_COLUMNS


def test_text_in_another_direction_follows_that_of_the_page() -> None:
    stamp = draw([(20.0, 300.0, "Stamp of 2026")], matrix="0 1 -1 0 {x} {y}")
    assert read(stamp + b"\n" + draw(column(LEFT, 60))).text == f"{' '.join(LEFT)}\n\nStamp of 2026"


def test_heads_and_page_numbers_are_taken_off_but_the_first_head() -> None:
    pages = [
        draw(
            [
                (60, 770, f"Report {number}"),
                (300, 20, f"Page {number} of 4"),
                *column((*LEFT, "x" * number), 60),
            ]
        )
        for number in range(1, 5)
    ]
    extract = read(*pages)
    assert extract.text.count("Report") == 1
    assert "Page" not in extract.text
    assert extract.notice == "13 % of its words are left out: running heads and page numbers"
    assert [position.page for position in extract.places] == [1, 2, 3, 4]


def test_a_page_that_has_only_a_head_keeps_it() -> None:
    assert read(*[lines("Background")] * 4).text == "\n\n".join(["Background"] * 4)


def test_a_hyphen_at_the_end_of_a_line_is_kept_where_the_word_has_one() -> None:
    texts = (
        "All of this is about a well-known word, and about a com-",
        "pany that is divided. The chat is optimized. It is a chat-",
        "optimized company, or a well-",
        "known one, for which the town is famous in all of the land.",
    )
    text = read(draw(column(texts, 60))).text
    assert "a company that" in text
    assert "a chat-optimized company, or a well-known one" in text


def test_a_table_without_lines_is_a_table_in_markdown() -> None:
    rows = [
        ("Berth", "Length", "Fee"),
        ("Heron-1", "12 m", "150"),
        ("Heron-2", "", "180"),
        ("Gull", "9 m", "90"),
    ]
    texts = [
        (60 + 100 * number, 700 - 15 * row, cell)
        for row, cells in enumerate(rows)
        for number, cell in enumerate(cells)
        if cell
    ]
    text = read(draw([*column(LEFT, 60, 790), *texts, (60, 600, "Below the table.")])).text
    table = "\n".join(
        ["| Berth | Length | Fee |", "| --- | --- | --- |", *(f"| {' | '.join(row)} |" for row in rows[1:])]
    )
    assert text == f"{' '.join(LEFT)}\n\n{table}\n\nBelow the table."


def test_the_rows_of_a_table_with_lines_are_those_between_them() -> None:
    rules = "".join(f"60 {y} m 300 {y} l S " for y in (712, 680, 645, 610)) + "160 712 m 160 610 l S "
    cells = [(65, 700, "Name"), (165, 700, "Meaning"), (65, 668, "tide"), (165, 668, "what comes and"),
             (165, 656, "goes each day"), (65, 633, "salt"), (165, 633, "what was sold")]  # fmt: skip
    text = read(rules.encode() + draw(cells)).text
    assert text.split("\n")[2:] == ["| tide | what comes and goes each day |", "| salt | what was sold |"]


def rule(*ends: float) -> str:
    """Drawing operators for a line from one end to the other."""
    return "{} {} m {} {} l S ".format(*ends)


def test_merged_cells_of_a_table_with_lines_are_in_each_of_their_columns_and_rows() -> None:
    rules = [rule(60, y, 360, y) for y in (712, 672, 652, 632)] + [rule(160, 692, 360, 692)]
    rules += [
        rule(60, 712, 60, 632),
        rule(160, 712, 160, 632),
        rule(360, 712, 360, 632),
        rule(260, 692, 260, 652),
    ]
    cells = [
        *((65, 688, "Harbor"), (220, 698, "Fee in euros"), (165, 678, "2025"), (265, 678, "2026")),
        *((65, 658, "Heron"), (165, 658, "150"), (265, 658, "160"), (65, 638, "Gull"), (220, 638, "closed")),
    ]
    page = "".join(rules).encode() + draw([(60, 730, "Fees of all harbors"), *cells, (60, 600, "Below.")])
    assert read(page).text == (
        "Fees of all harbors\n\n| Harbor | Fee in euros / 2025 | Fee in euros / 2026 |\n| --- | --- | --- |\n"
        "| Heron | 150 | 160 |\n| Gull | closed | closed |\n\nBelow."
    )


def test_lines_that_are_no_table_change_nothing() -> None:
    box = "50 300 500 420 re S " + rule(240, 300, 240, 720) + rule(50, 735, 550, 735)
    page = draw(by_row(column(LEFT, 60), column(RIGHT, 260)))
    assert read(box.encode() + page).text == TWO_COLUMNS
    axes = "".join(rule(100 + 40 * tick, 300, 100 + 40 * tick, 305) for tick in range(9))
    axes += "".join(rule(100, 300 + 40 * tick, 105, 300 + 40 * tick) for tick in range(9))
    diagram = axes + rule(100, 300, 100, 620) + rule(100, 300, 420, 300)
    labels = [(110, 310, "2"), (390, 310, "8"), (110, 600, "8"), (390, 600, "x")]
    assert "|" not in read(diagram.encode() + draw([*labels, *column(LEFT, 60, 200)])).text
    drawing = "".join(rule(x, 100, x + 0.4, 500) + rule(50, x, 500, x) for x in range(50, 450))
    assert read(drawing.encode() + draw(column(LEFT, 60))).text == " ".join(LEFT)


def test_a_name_over_several_columns_does_not_join_them() -> None:
    rows = [
        ("Insured", "Ann Diaz", "Year", "2022"),
        ("Claim", "SF-1008", "Make", "Jeep"),
        ("Phone", "111", "Trim", "L"),
    ]
    names = [(90, 700, "Customer facts"), (300, 700, "Facts of the vehicle")]
    cells = [
        (60 + 80 * number + (70 if number > 1 else 0), 685 - 15 * row, cell)
        for row, texts in enumerate(rows)
        for number, cell in enumerate(texts)
    ]
    text = read(draw([*names, *cells])).text
    assert (
        text.splitlines()[0]
        == "| Customer facts | Customer facts | Facts of the vehicle | Facts of the vehicle |"
    )
    assert text.splitlines()[2:] == [f"| {' | '.join(row)} |" for row in rows]


def test_the_labels_of_a_form_are_no_names_of_columns() -> None:
    cells = [(60, 700, "Name:"), (160, 700, "Ann Diaz"), (60, 685, "Order / Rev:"), (160, 685, "2024-12"),
             (60, 670, "Contact:"), (160, 670, "ann at example.org")]  # fmt: skip
    rows = ["| Name: | Ann Diaz |", "| Order / Rev: | 2024-12 |", "| Contact: | ann at example.org |"]
    assert read(draw(cells)).text.splitlines() == ["|  |  |", "| --- | --- |", *rows]


def test_rows_side_by_side_half_a_row_apart_stay_apart() -> None:
    left = [(60, 700 - 12 * row, f"{name}:") for row, name in enumerate(("Name", "Contact", "Place"))]
    values = [(120, y, label[:-1].lower()) for _, y, label in left]
    right = [(x + 240, y - 6, f"Billing {text}") for x, y, text in left]
    amounts = [(x + 300, y - 6, f"{text} 10") for x, y, text in values]
    written = read(draw([*left, *values, *right, *amounts])).text.splitlines()
    assert written[2:4] == ["| Name: | name |  |  |", "|  |  | Billing Name: | name 10 |"]
    assert len(written) == 8


def test_a_pdf_has_its_pages_and_its_bookmarks_as_headings() -> None:
    pages = (lines("Start here", "and on"), lines("Before", "2 The Middle", "after"), lines("Last"))
    extract = read_pdf(pdf(*pages, bookmarks=[("The Middle", 1), ("Elsewhere", 2)], title="A title"))
    text = extract.text
    assert text == "Start here\nand on\n\nBefore\n2 The Middle\nafter\n\nLast"
    assert extract.places == (
        TextPosition(0, 1),
        TextPosition(text.index("Before"), 2),
        TextPosition(text.index("2 The"), 2, ("The Middle",)),
        TextPosition(text.index("Last"), 3, ("Elsewhere",)),
    )
    assert (extract.title, extract.syntax) == ("A title", "markdown")


@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_table_over_several_pages_keeps_all_rows_and_its_names(is_repeated: bool) -> None:
    names, pages = ("Berth", "Fee in euros", "Depth"), []
    for first in range(1, 120, 30):
        rows = [
            (f"Heron-{number}", f"{number * 7}", f"{number % 9}.5") for number in range(first, first + 30)
        ]
        shown = [names, *rows] if is_repeated or first == 1 else rows
        cells = [column([row[cell] for row in shown], 72 + 130 * cell) for cell in range(3)]
        pages.append(draw(by_row(*cells)))
    written = read(*pages).text.splitlines()
    assert sum(line.startswith("| Heron-") for line in written) == 120
    assert written.count("| Berth | Fee in euros | Depth |") == len(pages)
    assert written.count("| --- | --- | --- |") == len(pages)
