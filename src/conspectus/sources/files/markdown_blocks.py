"""The output of a file reader: blocks of Markdown and page breaks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conspectus.model.records import Json, Syntax, TextPosition

PAGE_BREAK = "\f"
_RAISED = re.compile(r"^(?=#{1,6}(?:\s|$)|(?:=+|-+)\s*$)", re.MULTILINE)
_PIPE = re.compile(r"(?<!\\)\|")
_BLANKS = re.compile(r"[^\S\f]+")
_SPACES = re.compile(r"[ \t\xa0]*\n[ \t]*")


class Refused(Exception):
    """The file cannot be read; the message is the reason."""


class Unsupported(Refused):
    """No text can be read from files of this kind."""


class Oversized(Refused):
    """The file unpacks to more than it may."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"unpacks to more than {limit} bytes")
        self.size = size
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Extract:
    """The text of a file with its places, and what the file says about itself."""

    text: str
    media_type: str
    title: str = ""
    places: tuple[TextPosition, ...] = ()
    notice: str | None = None
    syntax: Syntax = "markdown"
    author: str | None = None
    occurred: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


def paged(text: str, *, first: int | None = 1) -> tuple[str, tuple[TextPosition, ...]]:
    """A text without its page breaks, and the pages that began there; none if there was no break."""
    parts = text.split(PAGE_BREAK)
    if len(parts) == 1 or first is None:
        return "".join(parts), ()
    places: list[TextPosition] = []
    start = 0
    for page, part in enumerate(parts, first):
        places.append(TextPosition(start, page))
        start += len(part)
    return "".join(parts), tuple(places)


def joined(blocks: Iterable[str]) -> str:
    """Blocks with a blank line between them; list items, which begin with a newline, go without."""
    return "".join(_spaced(blocks)).strip(" \n")


def _spaced(blocks: Iterable[str]) -> Iterator[str]:
    in_list, broken = False, ""
    for block in blocks:
        if not block.strip():
            broken += PAGE_BREAK * block.count(PAGE_BREAK)
            continue
        is_item = block.startswith("\n")
        yield ("\n" if is_item and in_list else "\n\n") + broken + block.lstrip("\n")
        in_list, broken = is_item, ""
    yield broken


def plain(text: str) -> str:
    """Text that stays a paragraph: nothing in it passes for a heading."""
    return _RAISED.sub(r"\\", _SPACES.sub("\n", text)).strip(" \n\t")


def heading(text: str, level: int) -> str:
    """A heading in one line; empty if there is nothing to say."""
    line = " ".join(text.split())
    broken = PAGE_BREAK * text.count(PAGE_BREAK)
    return f"{broken}{'#' * max(1, min(level, 6))} {line}" if line else broken


def item(text: str, level: int, mark: str = "-") -> str:
    """A list item on its level, from 0."""
    return f"\n{'    ' * min(level, 8)}{mark} {one_line(text)}" if text.strip() else text.strip(" \n")


def one_line(text: str) -> str:
    """The text with single spaces for all white space but page breaks."""
    return _BLANKS.sub(" ", text).strip(" ")


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; rows without anything in them and columns at the end are left out."""
    shown = {text: _cell(text) for text in {text for row in rows for text in row}}
    filled = [cells for row in rows if any(cells := [shown[text] for text in row])]
    width = max((index + 1 for row in filled for index, value in enumerate(row) if value), default=0)
    if not width:
        return ""
    lines = [f"| {' | '.join([*row, *[''] * width][:width])} |" for row in filled]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def _cell(text: str) -> str:
    return one_line(_PIPE.sub(r"\|", text))
