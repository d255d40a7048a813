"""The text of PDF pages as Markdown: paragraphs are joined over lines, large type is a heading."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from conspectus.sources.files.extract import escape_markdown, format_heading
from conspectus.sources.files.header_rows import begins_with_names
from conspectus.sources.files.pdf_layout import Column, Grid, Region, is_prose
from conspectus.sources.files.pdf_rows import Line, Strip
from conspectus.sources.files.pdf_tables import LIST_MARK
from conspectus.sources.files.tables import render_table

HEADING_SIZE = 1.15
MAX_HEADING_LINES = 3
MAX_HEADING_LENGTH = 200
MAX_HEADING_SHARE = 0.3
MIN_INDENT = 0.9
MIN_WIDTH = 8
"""The narrowest column whose lines are joined, in sizes."""
MAX_LEADING = 1.6
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DIVIDED = re.compile(r"([^\W\d_]+)-\Z")
_REST = re.compile(r"[^\W\d_]+")
_BULLET = re.compile(r"[•◦▪‣●∙■]\s*")
_ITEM = re.compile(rf"{LIST_MARK.pattern}\s")
MIN_PART_LENGTH = 3


class TextStyle:
    """What the lines of a whole document tell about each of them: its sizes of type and its words."""

    def __init__(self, regions: Iterable[Region]) -> None:
        sizes: Counter[float] = Counter()
        self.words: set[str] = set()
        for region in regions:
            if isinstance(region, Column):
                for line in region.lines:
                    size = round(line.size * 2) / 2
                    sizes[size] += len(line.text)
                    self.words.update(map(str.lower, _WORD.findall(line.text)))
        body = sizes.most_common(1)[0][0] if sizes else 0.0
        self._levels: dict[float, int] = {}
        large = 0
        for size in sorted(size for size in sizes if size >= HEADING_SIZE * body)[::-1]:
            large += sizes[size]
            if large <= MAX_HEADING_SHARE * sizes.total():
                self._levels[size] = min(len(self._levels) + 1, 6)

    def level(self, lines: Sequence[Line]) -> int:
        """Return the level of lines as a heading, 0 if they are none."""
        text = " ".join(line.text for line in lines)
        is_short = len(lines) <= MAX_HEADING_LINES and len(text) <= MAX_HEADING_LENGTH
        levels = {self._levels.get(round(line.size * 2) / 2, 0) for line in lines}
        return max(levels) if is_short and all(levels) and any(map(str.isalpha, text)) else 0

    def join(self, first: str, second: str) -> str:
        """Return two lines of a paragraph as one, with a word joined that was divided at the line's end.

        A hyphen stays if it is known from elsewhere in the document, or if both parts are words there.
        """
        head, rest = _DIVIDED.search(first), _REST.match(second)
        if head is None:
            return f"{first} {second}"
        if rest is None or not rest[0][0].islower():
            return first + second
        parts = (head[1].lower(), rest[0].lower())
        are_words = all(len(part) >= MIN_PART_LENGTH and part in self.words for part in parts)
        is_one_word = "".join(parts) in self.words
        if not is_one_word and ("-".join(parts) in self.words or are_words):
            return first + second
        return first[:-1] + second


def continue_tables(pages: Sequence[list[Region]]) -> None:
    """Give a table that goes on at the top of a page the names of its columns from the page before."""
    names: tuple[str, ...] = ()
    for page in pages:
        for number, region in enumerate(page):
            if not isinstance(region, Grid):
                names = ()
                continue
            rows = region.rows
            if number == 0 and len(names) == len(rows[0]) and not begins_with_names(rows):
                rows = (names, *rows)
                page[number] = Grid(rows)
            names = rows[0] if begins_with_names(rows) else ()


def render_regions(regions: Sequence[Region], style: TextStyle) -> str:
    """Return the regions of a page as Markdown, in their order."""
    blocks: list[str] = []
    open_paragraph = False
    for region in regions:
        if isinstance(region, Grid):
            blocks.append(render_table(region.rows, has_names=begins_with_names(region.rows)))
            open_paragraph = False
            continue
        for index, (text, is_open) in enumerate(_paragraphs(region, style)):
            if blocks and open_paragraph and index == 0 and text[:1].islower():
                blocks[-1] = style.join(blocks[-1], text)
            else:
                blocks.append(text)
            open_paragraph = is_open
    return "\n\n".join(filter(None, blocks))


def _paragraphs(column: Column, style: TextStyle) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs of a column, and whether each may go on in the next column."""
    lines = column.lines
    distances = [below.base - above.base for above, below in pairwise(lines)]
    usual = median(distances) if distances else 0.0
    for group in _groups(lines, usual):
        ends = column.ends
        level = style.level(group)
        if level:
            yield format_heading(" ".join(line.text for line in group), level), False
            continue
        if is_prose(group):
            # A quotation or an abstract is narrower than its column.
            ends = Strip(min(line.left for line in group), max(line.right for line in group))
        text = group[0].text
        for above, line in pairwise(group):
            text = _append(text, above, line, ends, style)
        is_full = ends.right - group[-1].right < 3 * group[-1].size
        yield escape_markdown(_replace_bullets(text)), is_full and text[-1:] not in ".!?:;"


def _groups(lines: Sequence[Line], usual: float) -> Iterator[list[Line]]:
    """Yield lines that stand close together and have about the same size."""
    group: list[Line] = []
    for line in lines:
        if group:
            above = group[-1]
            size = max(line.size, above.size)
            limit = max(MAX_LEADING * size, 1.25 * min(usual, 2.6 * size))
            differs = abs(line.size - above.size) > 0.12 * size
            if line.base - above.base > limit or differs:
                yield group
                group = []
        group.append(line)
    if group:
        yield group


def _append(text: str, above: Line, line: Line, ends: Strip, style: TextStyle) -> str:
    """Return a text with its next line: in the same paragraph, on its own, or in a new paragraph."""
    letter = (line.right - line.left) / max(1, len(line.text))
    first_word = len(line.text.split(" ", 1)[0]) * letter
    room = above.left - ends.left if above.is_rtl else ends.right - above.right
    is_divided = above.text.endswith("-") and line.text[:1].islower()
    if _ITEM.match(line.text) or _BULLET.match(line.text):
        return f"{text}\n{line.text}"
    if MIN_INDENT * line.size < line.left - above.left < 6 * line.size and above.text[-1:] in ".!?:":
        return f"{text}\n\n{line.text}"
    is_narrow = ends.right - ends.left < MIN_WIDTH * line.size
    if (is_narrow or room > first_word + 0.5 * line.size) and not is_divided:
        return f"{text}\n{line.text}"
    head, _, last = text.rpartition("\n")
    return f"{head}\n{style.join(last, line.text)}" if head else style.join(last, line.text)


def _replace_bullets(text: str) -> str:
    return "\n".join(
        _BULLET.sub("- ", line, count=1) if _BULLET.match(line) else line for line in text.split("\n")
    )
