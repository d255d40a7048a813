"""Titles of Markdown and reStructuredText, and title and main text of HTML."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lxml.etree import HTMLParser, LxmlError

from conspectus.errors import MissingExtra, optional
from conspectus.model.records import TextPosition
from conspectus.sources.files.html_tables import CELLS, HtmlTable, fill_tables
from conspectus.text.positions import find_markdown_headings, rst_headings

BLOCK_TAGS = """
address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section summary table tbody td tfoot th
thead tr ul
"""
BLOCKS = frozenset(BLOCK_TAGS.split())
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
LINES = frozenset({"br", "li", "option", "td", "th", "tr"})
UNSEEN = frozenset({"script", "style", "template"})
BULLET = "\x1e"
MARKS = re.compile(f"[\n{BULLET}]")
_BULLETS = re.compile(f"{BULLET}[\\s{BULLET}]*")


def visible(data: bytes, encoding: str | None = None) -> "Visible":
    """Return the visible text of a page, in the given encoding or the one it declares."""
    seen = Visible()
    parser = HTMLParser(target=seen, huge_tree=True, no_network=True, encoding=encoding)
    parser.feed(data)
    parser.close()
    return seen


class _Flow:
    """Text between and in blocks, as it comes, and finished blocks of Markdown."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._blocks: list[str] = []

    def add_blocks(self, blocks: Iterable[str]) -> None:
        """Add finished blocks after the text so far."""
        self._finish()
        self._blocks += filter(None, blocks)

    def text(self) -> str:
        """Return the text, with blocks separated by blank lines."""
        self._finish()
        return "\n\n".join(self._blocks)

    def _finish(self) -> None:
        marked = _BULLETS.sub("\n- ", "".join(self.parts))
        lines = (" ".join(line.split()) for line in marked.split("\n"))
        block = re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if line != "-")).strip()
        self.parts = []
        if block:
            self._blocks.append(block)


class Visible:
    """A parser target for lxml that collects the visible text block by block without building a tree."""

    def __init__(self) -> None:
        self.title = ""
        self.heading = ""
        self.depth = 0
        self._flow = _Flow()
        self._tables: list[HtmlTable[_Flow]] = []
        self._deeper_tables = 0
        self._open = 0
        self._unseen = 0
        self._collecting = ""

    def text(self) -> str:
        """Return all visible text, with Markdown headings, lists and tables, divided by blank lines."""
        while self._tables:
            self._close_table()
        return self._flow.text()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open a block, or start skipping invisible content."""
        self._open += 1
        self.depth = max(self.depth, self._open)
        self._unseen += tag in UNSEEN
        if (tag == "title" and not self.title) or (tag == "h1" and not self.heading):
            self._collecting = tag
        if tag == "table":
            self._open_table(attributes)
        elif self._tables and not self._deeper_tables and (tag in CELLS or tag == "tr"):
            self._open_cell(tag, attributes)
        elif tag in BLOCKS:
            self._flow.parts.append("\n" if tag in LINES else "\n\n")
        if tag == "li":
            self._flow.parts.append(BULLET)
        if tag in HEADINGS:
            self._flow.parts.append("#" * int(tag[1]) + " ")
            if self._tables and self._tables[-1].flow:
                self._tables[-1].has_blocks = True

    def end(self, tag: str) -> None:
        """Close a block."""
        self._open -= 1
        self._unseen -= tag in UNSEEN
        if tag == self._collecting:
            self._collecting = ""
        if self._tables and tag == "table":
            self._close_table()
        elif self._tables and not self._deeper_tables and tag in CELLS:
            self._close_cell()
        elif tag in BLOCKS and tag not in CELLS:
            self._flow.parts.append("\n")

    def data(self, data: str) -> None:
        """Collect visible text."""
        if self._unseen:
            return
        if self._collecting == "title":
            self.title += data
            return
        if self._collecting == "h1":
            self.heading += data
        self._flow.parts.append(MARKS.sub(" ", data))

    def close(self) -> "Visible":
        """Handle the end of the page."""
        return self

    def _open_table(self, attributes: Mapping[str, str]) -> None:
        self._flow.parts.append("\n\n")
        if len(self._tables) >= MAX_NESTED_TABLES:
            self._deeper_tables += 1
            return
        if self._tables:
            self._tables[-1].has_blocks = True
        self._tables.append(HtmlTable(attributes, self._flow))

    def _close_table(self) -> None:
        if self._deeper_tables:
            self._deeper_tables -= 1
            return
        self._close_cell()
        table = self._tables.pop()
        self._flow = table.around
        self._flow.add_blocks(table.blocks())

    def _open_cell(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open a row or a cell of the innermost table."""
        self._close_cell()
        if tag == "tr":
            self._tables[-1].open_row()
        else:
            self._flow = self._tables[-1].open_cell(tag, attributes, _Flow())

    def _close_cell(self) -> None:
        table = self._tables[-1]
        if table.flow:
            table.close_cell(table.flow.text())
            self._flow = table.around


FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title[ \t]*[:=](.*)$", re.MULTILINE)
WORD = re.compile(r"\w+")

DEEPEST = 200
MAX_LENGTH = 2_000_000
MAX_NESTED_TABLES = 20
MAIN_SHARE = 0.5


class HtmlPage(NamedTuple):
    """An HTML page as text; `notice` says why it is all visible text instead of the main part."""

    title: str
    text: str
    notice: str | None = None


def markdown_title(text: str) -> str:
    """Return the front matter's title, else the first heading outside code; empty if there is none."""
    front = FRONT.match(text)
    if front and (named := FRONT_TITLE.search(front[2])) and named[1].strip():
        value = named[1].strip()
        return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return _first(find_markdown_headings(text))


def rst_title(text: str) -> str:
    """Return the first heading; empty if there is none."""
    return _first(rst_headings(text))


def _first(headings: Iterator[TextPosition]) -> str:
    return next((position.headings[-1] for position in headings), "")


def read_html(text: str) -> HtmlPage:
    """Return title and text of a page: its main part, or all visible text if that is too short."""
    seen = visible(text.encode("utf-8", errors="replace"), "utf-8")
    everything = seen.text()
    title = " ".join((seen.title or seen.heading).split())
    try:
        main = "" if seen.depth > DEEPEST or len(text) > MAX_LENGTH else _main_part(text)
    except MissingExtra as missing:
        return HtmlPage(title, everything or title, f"all text was taken; for the main part alone {missing}")
    enough = len(WORD.findall(main)) >= MAIN_SHARE * len(WORD.findall(everything))
    if main and enough:
        return HtmlPage(title, main)
    return HtmlPage(title, everything or title, "no main part was found, all text was taken")


def _main_part(text: str) -> str:
    """The main part of a page, nothing where there is none. Raises MissingExtra."""
    trafilatura = optional("trafilatura", "html", "trafilatura")
    try:
        tree = trafilatura.load_html(text)
        if tree is None:
            return ""
        fill_tables(tree)
        main: str | None = trafilatura.extract(
            tree, output_format="markdown", favor_recall=True, include_comments=True, include_tables=True
        )
    except (LxmlError, ValueError, RecursionError):
        return ""
    return main or ""
