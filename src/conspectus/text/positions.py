"""Pages and headings of a text, by character position."""

import re
from bisect import (
    bisect_left,
    bisect_right,
)
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from heapq import merge

from conspectus.errors import InvalidInput
from conspectus.model.records import (
    Box,
    Chunk,
    Syntax,
    TextPosition,
)
from conspectus.text.clean import PAIR, clean
from conspectus.text.late_patterns import re_pattern

BETWEEN = " > "
MAX_HEADING_LENGTH = 200
MAX_PATH_LENGTH = 300

_FRONT = re_pattern(r"(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_LINE = re_pattern(
    r"^(?:"
    r"[ \t>]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"| {0,3}(?P<marks>#{1,6})(?P<title>(?:[ \t][^\n]*)?)$"
    r"|(?<![^\n]\n)(?![ \t>#|=-])(?P<underlined>[^\n]+)\n {0,3}(?P<rule>=+|-+)[ \t]*$"
    r")",
    re.MULTILINE,
)
_RST_HEADING = re_pattern(
    r"(?:(?<=\n\n)|\A|(?<=\n[ \t]\n))"
    r"(?:(?P<over>(?P<mark>[!-/:-@\[-`{-~])(?P=mark){2,})[ \t]*\n[ ]*)?(?P<title>[^\s][^\n]*)\n"
    r"(?P<under>(?P<rule>[!-/:-@\[-`{-~])(?P=rule){2,})[ \t]*$",
    re.MULTILINE,
)
_LINK = re_pattern(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_ATTRIBUTES = re_pattern(r"\s*\{[^{}\n]*\}\s*$")
_MARKUP = re_pattern(r"<[^<>\n]{1,200}>|\*\*|`|\\(?=[^\w\s])")


def find_markdown_headings(text: str) -> Iterator[TextPosition]:
    """Yield the position of each heading of a Markdown text with its path, except in code."""
    front = _FRONT.match(text)
    fence = ""
    open_headings: list[tuple[int, str]] = []
    for match in _LINE.finditer(text, front.end() if front else 0):
        mark = match["fence"]
        if mark:
            fence = fence_after(fence, mark, match["info"])
        elif not fence and (title := _strip_markup(match["underlined"] or match["title"] or "")):
            level = len(match["marks"]) if match["marks"] else 1 + match["rule"].startswith("-")
            while open_headings and open_headings[-1][0] >= level:
                open_headings.pop()
            open_headings.append((level, title))
            yield TextPosition(match.start(), headings=tuple(title for _, title in open_headings))


def rst_headings(text: str) -> Iterator[TextPosition]:
    """Yield the position of each heading of a reStructuredText.

    The first kind of underline is the outermost.
    """
    kinds: list[tuple[str, bool]] = []
    path: list[str] = []
    for match in _RST_HEADING.finditer(text):
        over, under, title = match["over"], match["under"], match["title"].strip()
        if len(under) < len(title) or over not in {None, under} or not any(map(str.isalnum, title)):
            continue
        kind = (match["rule"], over is not None)
        if kind not in kinds:
            kinds.append(kind)
        path = [*path[: kinds.index(kind)], title[:MAX_HEADING_LENGTH]]
        yield TextPosition(match.start(), headings=tuple(path))


def headings_in(text: str, syntax: Syntax) -> Iterator[TextPosition]:
    """Yield the position of each heading of a text with its path, if its syntax has headings."""
    find = _HEADINGS.get(syntax)
    return iter(()) if find is None else find(text)


def find_heading(chunk: Chunk, syntax: Syntax, position: int) -> str | None:
    """Return the heading path at a position of a chunk, which may span several sections."""
    inside = list(headings_in(chunk.text, syntax)) if position else []
    before = [heading.headings for heading in inside if heading.start <= position]
    if not before:
        return chunk.heading
    first = path_of(before[0]) or ""
    begins = not chunk.text[: inside[0].start].strip() and (chunk.heading or "").endswith(first)
    above = (chunk.heading or "").removesuffix(first).removesuffix(BETWEEN) if begins else ""
    return path_of([*filter(None, [above]), *before[-1]])


def check_positions(positions: Sequence[TextPosition], text: str) -> tuple[TextPosition, ...]:
    """Convert positions in a raw text to positions in the cleaned text. Raises InvalidInput."""
    if not positions:
        return ()
    starts = [position.start for position in positions]
    if starts != sorted(starts) or not 0 <= starts[0] <= starts[-1] <= len(text):
        raise InvalidInput("places", "must begin inside the text, in ascending order")
    if any(position.page is not None and not 0 < position.page < 2**31 for position in positions):
        raise InvalidInput("places", "pages are counted from 1")
    shorter = [pair.end() for pair in PAIR.finditer(text)]
    return tuple(
        TextPosition(
            position.start - bisect_right(shorter, position.start),
            position.page,
            tuple(map(clean, position.headings)),
            position.box,
        )
        for position in positions
    )


def combine_positions(
    positions: Sequence[TextPosition], headings: Sequence[TextPosition]
) -> tuple[TextPosition, ...]:
    """Merge given positions with headings, unless some of them are given; the result is sorted."""
    if not headings or any(position.headings for position in positions):
        return tuple(positions)
    merged: list[TextPosition] = []
    page: int | None = None
    path: tuple[str, ...] = ()
    for position in merge(positions, headings, key=lambda position: position.start):
        page = page if position.headings else position.page
        path = position.headings or path
        if merged and merged[-1].start == position.start:
            merged.pop()
        merged.append(TextPosition(position.start, page, path, position.box))
    return tuple(merged)


def place_at(positions: Sequence[TextPosition], start: int) -> TextPosition:
    """Return the entry that applies to the character at `start`; of equal starts the last one."""
    index = bisect_right(positions, start, key=lambda position: position.start) - 1
    if index >= 0:
        return replace(positions[index], start=start)
    return TextPosition(start)


def box_at(positions: Sequence[TextPosition], start: int, end: int) -> Box | None:
    """Return the box around the characters [start, end) on the page of the first one; None without boxes."""
    first = max(0, bisect_right(positions, start, key=lambda position: position.start) - 1)
    last = bisect_left(positions, end, key=lambda position: position.start)
    page = positions[first].page if positions else None
    return enclose(position.box for position in positions[first:last] if position.page == page)


def enclose(boxes: Iterable[Box | None]) -> Box | None:
    """Return the smallest box around boxes; None without any."""
    known = [box for box in boxes if box is not None]
    if not known:
        return None
    lefts, tops, rights, bottoms = zip(*known, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def path_of(headings: Sequence[str]) -> str | None:
    """Join headings to one line, outermost first; a long path keeps the innermost ones."""
    parts = [" ".join(heading.split()) for heading in headings if heading.strip()]
    while len(parts) > 1 and len(BETWEEN.join(parts)) > MAX_PATH_LENGTH:
        del parts[0]
    return BETWEEN.join(parts)[:MAX_PATH_LENGTH].rstrip() or None


_HEADINGS: Mapping[Syntax, Callable[[str], Iterator[TextPosition]]] = {
    "markdown": find_markdown_headings,
    "rst": rst_headings,
}


def fence_after(fence: str, mark: str, info: str) -> str:
    """Return the fence that is open after a line with such a mark, or an empty string."""
    if fence:
        return "" if mark.startswith(fence) and not info.strip() else fence
    return "" if mark.startswith("`") and "`" in info else mark


def _strip_markup(line: str) -> str:
    """Return the text of a heading without marks and markup."""
    title = line.strip()
    bare = title.rstrip("#")
    if not bare or bare[-1] in " \t":
        title = bare
    title = _ATTRIBUTES.sub("", title[: 4 * MAX_HEADING_LENGTH]) or title
    return _MARKUP.sub("", _LINK.sub(r"\1", title[: 4 * MAX_HEADING_LENGTH])).strip()[:MAX_HEADING_LENGTH]
