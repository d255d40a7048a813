"""Tables that a Markdown text has as HTML: they become tables of Markdown, so that they are split by rows."""

import re
from collections.abc import Iterator
from itertools import islice

from conspectus.sources.files.html import read_visible_text
from conspectus.text.positions import fence_after

MAX_TABLES = 1_000
"""HTML tables of a text that are read; those below stay as they are."""
_MARKS = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|^ {0,3}(?P<first><table[\s>])|(?P<open><table[\s>])|(?P<close></table\s*>)",
    re.IGNORECASE | re.MULTILINE,
)


def render_html_tables(text: str) -> str:
    """Return a Markdown text with its HTML tables as Markdown, but for those in fenced code.

    A table begins at the start of a line, as HTML does in Markdown. One that is not closed, or that has no
    text, stays as it is.
    """
    parts: list[str] = []
    position = 0
    for start, end in islice(_html_tables(text), MAX_TABLES):
        table = read_visible_text(text[start:end].encode("utf-8", errors="replace"), "utf-8").text()
        if table:
            is_beside_text = text[end : end + 1] not in {"", "\n", "\r"}
            parts += [text[position:start], table, "\n\n" if is_beside_text else ""]
            position = end
    return "".join([*parts, text[position:]])


def _html_tables(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the outer tables. The time is linear."""
    fence, start, depth = "", 0, 0
    for match in _MARKS.finditer(text) if "<table" in text.lower() else ():
        if match["fence"]:
            fence = fence if depth else fence_after(fence, match["fence"], match["info"])
        elif fence:
            continue
        elif match["first"] and not depth:
            start, depth = match.start("first"), 1
        elif depth:
            depth += -1 if match["close"] else 1
            if not depth:
                yield start, match.end()
