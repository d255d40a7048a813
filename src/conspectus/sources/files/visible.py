"""The visible text of a page of HTML, read in one pass without building a tree."""

import re
from collections.abc import Mapping

from lxml.etree import HTMLParser

BLOCK_TAGS = """
address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section summary table tbody td tfoot th
thead tr ul
"""
BLOCKS = frozenset(BLOCK_TAGS.split())
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
LINES = frozenset({"br", "li", "option", "td", "th", "tr"})
CELLS = frozenset({"td", "th"})
UNSEEN = frozenset({"script", "style", "template"})
BULLET = "\x1e"
BESIDE = "\x1f"
MARKS = re.compile(f"[\n{BULLET}{BESIDE}]")
_BULLETS = re.compile(f"{BULLET}[\\s{BULLET}{BESIDE}]*")
_BESIDES = re.compile(f"(?<!\\s)[^\\S{BESIDE}]*+{BESIDE}\\s*")
"""Space that holds the mark; looked for only where space begins, or much of it would be read many times."""


def visible(data: bytes, encoding: str | None = None) -> "Visible":
    """What a reader sees of a page, in the given encoding or the one it declares."""
    seen = Visible()
    parser = HTMLParser(target=seen, huge_tree=True, no_network=True, encoding=encoding)
    parser.feed(data)
    parser.close()
    return seen


class Visible:
    """A target for lxml: collects what a reader sees, block by block, without building a tree."""

    def __init__(self) -> None:
        self.title = ""
        self.heading = ""
        self.depth = 0
        self._parts: list[str] = []
        self._open = 0
        self._unseen = 0
        self._collecting = ""
        self._in_row = False

    def text(self) -> str:
        """All visible text: blank lines between blocks, headings and lists as in Markdown, cells in a row."""
        marked = _BULLETS.sub("\n- ", _BESIDES.sub(" | ", "".join(self._parts)))
        lines = (" ".join(line.split()) for line in marked.split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if line != "-")).strip()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open a block, or start leaving out what is not seen."""
        self._open += 1
        self.depth = max(self.depth, self._open)
        self._unseen += tag in UNSEEN
        if (tag == "title" and not self.title) or (tag == "h1" and not self.heading):
            self._collecting = tag
        if tag in CELLS and self._in_row:
            self._parts.append(BESIDE)
        elif tag in BLOCKS:
            self._parts.append("\n" if tag in LINES else "\n\n")
        if tag == "li":
            self._parts.append(BULLET)
        self._in_row = tag in CELLS or (self._in_row and tag != "tr")
        if tag in HEADINGS:
            self._parts.append("#" * int(tag[1]) + " ")

    def end(self, tag: str) -> None:
        """Close a block."""
        self._open -= 1
        self._unseen -= tag in UNSEEN
        if tag == self._collecting:
            self._collecting = ""
        if tag in BLOCKS and tag not in CELLS:
            self._parts.append("\n")

    def data(self, data: str) -> None:
        """Keep text that is seen."""
        if self._unseen:
            return
        if self._collecting == "title":
            self.title += data
            return
        if self._collecting == "h1":
            self.heading += data
        self._parts.append(MARKS.sub(" ", data))

    def close(self) -> "Visible":
        """The end of the page."""
        return self
