"""Tables of all file formats: merged cells are filled in one way, and written as Markdown."""

import re
from collections.abc import Iterable, Sequence

from conspectus.deferred import dataclass
from conspectus.sources.files.extract import PAGE_BREAK, one_line

MAX_SPAN = 100
MAX_COPIED_LENGTH = 1_000
FREE_COPIES = 2_000
COPIES_PER_CHARACTER = 20
SEPARATOR_LENGTH = 3
HEADER_SEPARATOR = " / "
_PIPE = re.compile(r"(?<!\\)\|")
_HEADING_MARK = re.compile(r"#{1,6} ")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as a file stores it, with the columns and rows that it spans.

    A continued cell repeats the cell above it: the way of DOCX and PPTX to store all but the first row of a
    cell that is merged downwards.
    """

    text: str
    columns: int = 1
    rows: int = 1
    is_continued: bool = False


BLANK = Cell("")


def fill_merged(rows: Iterable[Sequence[Cell]]) -> list[list[Cell]]:
    """Return the rows with each cell repeated in all rows and columns that it spans.

    A row without text of its own becomes a row without cells. Copies of a text over `MAX_COPIED_LENGTH` are
    blank. The repeated characters are limited by those that the table stores, so that a few bytes cannot
    fill the memory; beyond the limit no cell is repeated.
    """
    stored_rows = list(rows)
    size = sum(
        min(len(cell.text), MAX_COPIED_LENGTH) + SEPARATOR_LENGTH for row in stored_rows for cell in row
    )
    filling = _Filling(copies_left=FREE_COPIES + COPIES_PER_CHARACTER * size)
    return [filling.fill_row(number, row) for number, row in enumerate(stored_rows)]


class _Filling:
    """The state of filling a table from above: which cells reach down into the next rows."""

    def __init__(self, copies_left: int) -> None:
        self._copies_left = copies_left
        self._above: dict[int, Cell] = {}
        self._reaching: dict[int, tuple[Cell, int]] = {}

    def fill_row(self, number: int, row: Sequence[Cell]) -> list[Cell]:
        """Return the cells of a row from its first column on; none if the row has no text of its own."""
        filled: list[Cell] = []
        has_text = False
        for stored in row:
            while (reaching := self._reaching.get(len(filled))) and reaching[1] >= number:
                self._copy(reaching[0], filled)
            cell = self._above.get(len(filled), stored) if stored.is_continued else stored
            has_text = has_text or bool(cell.text)
            start = len(filled)
            filled.append(cell)
            for _ in range(1, stored.columns):
                if self._copies_left > 0:
                    self._copy(cell, filled)
            if stored.rows > 1 and self._copies_left > 0:
                self._reaching |= dict.fromkeys(range(start, len(filled)), (cell, number + stored.rows - 1))
        if not has_text:
            return []
        self._fill_end(number, filled)
        self._above = dict(enumerate(filled))
        return filled

    def _fill_end(self, number: int, filled: list[Cell]) -> None:
        """Add the cells of earlier rows that stand right of the last cell of this row."""
        reaching = {column: span for column, span in self._reaching.items() if span[1] >= number}
        self._reaching = reaching
        for column in sorted(column for column in reaching if column >= len(filled)):
            while len(filled) < column and self._copies_left > 0:
                self._copy(BLANK, filled)
            if self._copies_left > 0:
                self._copy(reaching[column][0], filled)

    def _copy(self, cell: Cell, filled: list[Cell]) -> None:
        copy = cell if len(cell.text) <= MAX_COPIED_LENGTH else BLANK
        filled.append(copy)
        self._copies_left -= len(copy.text) + SEPARATOR_LENGTH
        if self._copies_left <= 0:
            self._reaching = {}


def render_cells(rows: Iterable[Sequence[Cell]], *, header_rows: int = 1) -> str:
    """Return a Markdown table whose merged cells are filled. A page break counts in the first copy only.

    Several header rows become one. A header row with one text over all columns is a line above the table.
    A row whose own cells all reach into the next one has no height, and is left out.
    """
    stored_rows = list(rows)
    filled_rows = fill_merged(stored_rows)
    texts: list[list[str]] = []
    written: set[int] = set()
    header = seen = 0
    for stored, row, below in zip(stored_rows, filled_rows, [*filled_rows[1:], []], strict=True):
        seen += bool(row)
        if not row or (below and _reaches_down(stored)):
            continue
        header += seen <= header_rows
        texts.append(
            [cell.text.replace(PAGE_BREAK, "") if id(cell) in written else cell.text for cell in row]
        )
        written.update(map(id, row))
    captions, names = join_header_rows(texts[:header])
    table = render_table([*([names] if names else []), *texts[header:]])
    return "\n\n".join(filter(None, [*captions, table]))


def _reaches_down(row: Sequence[Cell]) -> bool:
    """Return whether each cell of a row that has text reaches into the next row."""
    return all(cell.rows > 1 for cell in row if cell.text)


def join_header_rows(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """Return the captions among several header rows, and the names of each column as one text."""
    if len(rows) < 2:
        return [], [text for row in rows for text in row]
    width = max(map(len, rows))
    captions: list[str] = []
    names: list[dict[str, None]] = [{} for _ in range(width)]
    for row in rows:
        if width > 1 and len(row) == width and len(set(row)) == 1 and len(captions) < len(rows) - 1:
            captions.append(row[0])
            continue
        for column, text in enumerate(row):
            if text:
                names[column][text] = None
    return captions, [HEADER_SEPARATOR.join(texts) for texts in names]


def flatten_cell(markdown: str) -> str:
    """Return the content of a cell on one line, without marks of headings.

    In a table in it, semicolons divide rows, and commas cells.
    """
    flat = ""
    for line in markdown.split("\n"):
        if not line.startswith("| "):
            mark = _HEADING_MARK.match(line)
            flat += f" {line[mark.end() :] if mark else line}"
        elif line.strip("| -"):
            cells = map(one_line, _PIPE.split(line)[1:-1])
            flat += f" {', '.join(filter(None, cells))};"
    return one_line(flat).removesuffix(";")


def escape_pipes(text: str) -> str:
    """Return the text of a cell with each pipe escaped, so that it divides no cells."""
    return _PIPE.sub(r"\|", text)


def render_table(rows: Sequence[Sequence[str]], *, has_names: bool = True) -> str:
    """Return a Markdown table without blank rows and blank columns.

    The first row has the names of the columns; without them, the header is blank.
    """
    cell_texts = {text: one_line(escape_pipes(text)) for text in {text for row in rows for text in row}}
    filled = [cells for row in rows if any(cells := [cell_texts[text] for text in row])]
    columns = sorted({index for row in filled for index, text in enumerate(row) if text})
    width = len(columns)
    if not width:
        return ""
    if width <= columns[-1]:
        filled = [[row[column] for column in columns if column < len(row)] for row in filled]
    stored = sum(map(len, filled))
    # Markdown allows short rows; a few long ones must not make all rows of a large table long.
    is_padded = width * len(filled) <= FREE_COPIES + COPIES_PER_CHARACTER * stored
    padding = [""] * width if is_padded else []
    names = filled.pop(0) if has_names else []
    header = f"| {' | '.join([*names, *[''] * width][:width])} |"
    lines = [f"| {' | '.join([*row, *padding][:width])} |" for row in filled]
    return "\n".join([header, f"|{' --- |' * width}", *lines])
