"""What a parser extracts from a file: its text in blocks of Markdown, and why a file is refused."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.records import Json, ReadBy, Syntax, TextPosition

PAGE_BREAK = "\f"
_RAISED = re.compile(r"^(?=#{1,6}(?:\s|$)|(?:=+|-+)\s*$)", re.MULTILINE)
_BLANKS = re.compile(r"[^\S\f]+")
_SPACES = re.compile(r"[ \t\xa0]*\n[ \t]*")


class Refused(Exception):
    """The file cannot be read; the message is the reason."""


class Unsupported(Refused):
    """Text cannot be extracted from files of this format."""


class Oversized(Refused):
    """The file unpacks to more bytes than allowed."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"unpacks to more than {limit} bytes")
        self.size = size
        self.limit = limit


MIN_LEFT_OUT_SHARE = 0.02


def left_out_notice(words: int, left_out: int, reason: str) -> str | None:
    """Return a notice of the visible words of a file that are not in its text, from a share of 2 % on."""
    if left_out < MIN_LEFT_OUT_SHARE * words or not left_out:
        return None
    return f"{100 * left_out // words} % of its words are left out: {reason}"


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive or attached to a message: its bytes, or why it is `skipped` or `refused`.

    `extract` is what was read of it already, as of the messages of a mailbox.
    """

    name: str
    data: bytes = b""
    skipped: str = ""
    refused: str = ""
    extract: "Extract | None" = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the files inside a file may be: their bytes, their number and their ratio to the packed size."""

    unpacked: int
    members: int
    ratio: int


@dataclass(frozen=True, slots=True)
class Extract:
    """The text of a file with its page positions, its metadata, and the files inside it."""

    text: str
    media_type: str
    title: str = ""
    places: tuple[TextPosition, ...] = ()
    notice: str | None = None
    syntax: Syntax = "markdown"
    author: str | None = None
    occurred: str | None = None
    thread: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    members: tuple[Member, ...] = ()
    read_by: ReadBy = "text"


def split_pages(text: str, *, first: int | None = 1) -> tuple[str, tuple[TextPosition, ...]]:
    """Return a text without its page breaks, and the start of each page; no pages if there was no break."""
    parts = text.split(PAGE_BREAK)
    if len(parts) == 1 or first is None:
        return "".join(parts), ()
    places: list[TextPosition] = []
    start = 0
    for page, part in enumerate(parts, first):
        places.append(TextPosition(start, page))
        start += len(part)
    return "".join(parts), tuple(places)


def join_blocks(blocks: Iterable[str]) -> str:
    """Join blocks with blank lines; list items, which begin with a newline, without."""
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


def escape_markdown(text: str) -> str:
    """Escape text so that no line of it is parsed as a heading."""
    return _RAISED.sub(r"\\", _SPACES.sub("\n", text)).strip(" \n\t")


def format_heading(text: str, level: int) -> str:
    """Return a heading on one line; empty if the text is blank."""
    line = " ".join(text.split())
    broken = PAGE_BREAK * text.count(PAGE_BREAK)
    return f"{broken}{'#' * max(1, min(level, 6))} {line}" if line else broken


def format_list_item(text: str, level: int, mark: str = "-") -> str:
    """Return a list item on its level, counted from 0."""
    return f"\n{'    ' * min(level, 8)}{mark} {one_line(text)}" if text.strip() else text.strip(" \n")


def one_line(text: str) -> str:
    """Return the text with white space collapsed, except page breaks."""
    return _BLANKS.sub(" ", text).strip(" ")
