"""Tables of PEPs made by script on pages of PDFs: with wrapped cells, with and without lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from made_pages import HEIGHT, MARGIN, SIZE, Line, MadePage, Rule, pep_row, render_pdf, wrap
from made_tables import expected

ALL_LINES, ABOVE = "all lines", "names over columns"
STYLES = ("no lines", "some lines", ALL_LINES, ABOVE)
MAX_PEPS, ROWS_OF_TABLE = 200, 12
PEP_NAMES = ("PEP", "Title", "Status", "Type", "Created")
NAMES_ABOVE = (("Python enhancement proposal", 0, 2), ("State of the proposal and when it was made", 2, 5))
PEP_WIDTHS = (40, 150, 70, 100, 80)
ROW_GAP = 6.0
LINE_GAP = 11.0


def pdf_table(rows: Sequence[Sequence[str]], style: str) -> bytes:
    """Return a table on a page of a PDF, with wrapped cells: without lines, with some, or with all."""
    lines: list[Line] = []
    heights = [HEIGHT - MARGIN + 0.0]
    lefts = [MARGIN + sum(PEP_WIDTHS[:number]) for number in range(len(PEP_WIDTHS) + 1)]
    for row in rows:
        wrapped = [list(wrap(text, width - 8)) for text, width in zip(row, PEP_WIDTHS, strict=True)]
        for texts, left in zip(wrapped, lefts, strict=False):
            lines += [
                (left + 3, heights[-1] - 10 - LINE_GAP * number, SIZE, text)
                for number, text in enumerate(texts)
            ]
        heights.append(heights[-1] - LINE_GAP * max(map(len, wrapped)) - ROW_GAP)
    if style == ABOVE:
        names = ((lefts[first] + 3.0, name) for name, first, _ in NAMES_ABOVE)
        lines += [(left, HEIGHT - MARGIN + 6.0, SIZE, name) for left, name in names]
    level = {ALL_LINES: heights, "some lines": [heights[0], heights[1], heights[-1]]}.get(style, [])
    rules: list[Rule] = [(lefts[0], height, lefts[-1], height) for height in level]
    if style == ALL_LINES:
        rules += [(left, heights[0], left, heights[-1]) for left in lefts]
    return render_pdf([lines], rules=rules)


def made_pdf_tables(peps: Path, count: int) -> Iterator[MadePage]:
    """Yield tables of the metadata of PEPs, each in each style."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(peps.glob("pep-*.rst"))[:MAX_PEPS])
    rows = [row for row in map(pep_row, texts) if row]
    for first in range(0, min(count * ROWS_OF_TABLE, len(rows)), ROWS_OF_TABLE):
        table = [PEP_NAMES, *rows[first : first + ROWS_OF_TABLE]]
        above = [name for name, begin, end in NAMES_ABOVE for _ in range(begin, end)]
        for style in STYLES:
            all_rows = [above, *table] if style == ABOVE else table
            content = pdf_table(table, style)
            yield MadePage(f"pdf, table, {style}", f"{style} {first}.pdf", content, expected(all_rows))
