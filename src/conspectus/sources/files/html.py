"""Titles of Markdown and reStructuredText, and title and visible text of HTML."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from lxml.etree import HTMLParser

from conspectus.model.records import TextPosition
from conspectus.sources.files.extract import one_line
from conspectus.sources.files.file_properties import join_authors
from conspectus.sources.files.html_navigation import (
    CONTENT,
    FRAMES,
    MAX_LINK_SHARE,
    UNSEEN,
    is_navigation,
    navigation_notice,
)
from conspectus.sources.files.html_tables import CELLS, ROW_GROUPS, HtmlTable
from conspectus.sources.files.zip_xml import parse_number
from conspectus.text.positions import find_markdown_headings, rst_headings

BLOCK_TAGS = """
address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section summary table tbody td tfoot th
thead tr ul
"""
BLOCKS = frozenset(BLOCK_TAGS.split())
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
LINES = frozenset({"br", "li", "option", "td", "th", "tr"})
LISTS = frozenset({"ol", "ul"})
BULLET = "\x1e"
MARKS = re.compile(f"[\n{BULLET}]")
_BULLETS = re.compile(rf"{BULLET}(?:[\s{BULLET}]*{BULLET})?(\d+\. )?\s*")
_ITEM = re.compile(r"-|\d+\.")


def read_visible_text(
    data: bytes,
    encoding: str | None = None,
    *,
    with_navigation: bool = True,
    describe_picture: Callable[[str], str] | None = None,
) -> "VisibleText":
    """Return the visible text of a page, in the given encoding or the one it declares.

    `describe_picture` returns what a picture says of itself, by its address: it follows the alternative text.
    """
    seen = VisibleText(with_navigation=with_navigation, describe_picture=describe_picture)
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
        marked = _BULLETS.sub(lambda match: f"\n{match[1] or '- '}", "".join(self.parts))
        lines = (" ".join(line.split()) for line in marked.split("\n"))
        block = re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if not _ITEM.fullmatch(line)))
        self.parts = []
        if block.strip():
            self._blocks.append(block.strip())


class _Frame(_Flow):
    """The flow of a header or footer of a page, which is left out if most of it is links."""

    def __init__(self, around: _Flow, depth: int) -> None:
        super().__init__()
        self.around = around
        self.depth = depth
        self.letters = 0
        self.link_letters = 0


class VisibleText:
    """A parser target for lxml that collects the visible text block by block without building a tree.

    Without navigation, menus and cookie banners are left out, and the words in them are counted.
    """

    def __init__(
        self, *, with_navigation: bool = True, describe_picture: Callable[[str], str] | None = None
    ) -> None:
        self._describe_picture = describe_picture
        self.title = ""
        self.heading = ""
        self.authors: list[str] = []
        self.language = ""
        self.words = 0
        self.left_out = 0
        self._with_navigation = with_navigation
        self._flow = _Flow()
        self._tables: list[HtmlTable[_Flow]] = []
        self._frame: _Frame | None = None
        self._numbers: list[int | None] = []
        self._deeper_tables = 0
        self._open = 0
        self._skipped_from = 0
        self._skips_navigation = False
        self._links = 0
        self._content = 0
        self._collecting = ""
        self._code: list[str] | None = None

    def text(self) -> str:
        """Return all visible text, with Markdown headings, lists and tables, divided by blank lines."""
        while self._tables:
            self._close_table()
        self._close_frame()
        return self._flow.text()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open a block, or start skipping invisible content."""
        self._open += 1
        if self._skipped_from:
            return
        is_skipped = not self._with_navigation and not self._tables and is_navigation(tag, attributes)
        if is_skipped or self._is_unseen(tag, attributes):
            self._skipped_from, self._skips_navigation = self._open, is_skipped
            return
        if tag in {"html", "meta"}:
            self._read_properties(tag, attributes)
        self._links += tag == "a"
        self._content += tag in CONTENT
        if (tag == "title" and not self.title) or (tag == "h1" and not self.heading):
            self._collecting = tag
        if tag in FRAMES and not (self._with_navigation or self._content or self._tables or self._frame):
            self._flow = self._frame = _Frame(self._flow, self._open)
        elif tag == "img" and attributes.get("aria-hidden") != "true":
            self._add_picture(attributes)
        elif tag == "pre" and not self._tables and self._code is None:
            self._code = []
        else:
            self._open_block(tag, attributes)

    def end(self, tag: str) -> None:
        """Close a block."""
        self._open -= 1
        if self._skipped_from:
            if self._open < self._skipped_from:
                self._skipped_from = 0
            return
        self._links -= tag == "a"
        self._content -= tag in CONTENT
        if tag == self._collecting:
            self._collecting = ""
        if self._frame and self._open < self._frame.depth:
            self._close_frame()
        elif tag == "pre" and self._code is not None:
            self._close_code()
        else:
            self._close_block(tag)

    def data(self, data: str) -> None:
        """Collect visible text, or count the words of navigation."""
        if self._skipped_from:
            if self._skips_navigation:
                self.left_out += len(WORD.findall(data))
            return
        if self._collecting == "title":
            self.title += data
            return
        if self._collecting == "h1":
            self.heading += data
        self._add(data)

    def close(self) -> "VisibleText":
        """Handle the end of the page."""
        return self

    def _read_properties(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Read the author and the language that the page declares."""
        if tag == "html":
            self.language = self.language or attributes.get("lang", "")
        elif attributes.get("name", "").lower() == "author":
            self.authors.append(attributes.get("content", ""))

    def _is_unseen(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Return whether the content of an element is not on the page; formulas of MathJax are."""
        is_formula = tag == "script" and attributes.get("type", "").startswith("math/tex")
        return (
            (tag in UNSEEN and not is_formula) or tag == "annotation" or (tag == "title" and bool(self.title))
        )

    def _add(self, text: str) -> None:
        if self._code is not None:
            self._code.append(text)
            return
        self.words += len(WORD.findall(text))
        if self._frame:
            letters = len("".join(text.split()))
            self._frame.letters += letters
            self._frame.link_letters += letters if self._links else 0
        self._flow.parts.append(MARKS.sub(" ", text))

    def _add_picture(self, attributes: Mapping[str, str]) -> None:
        alternative = attributes.get("alt", "").strip()
        self._add(one_line(f"[Image: {alternative}]" if alternative else ""))
        if self._describe_picture and (line := self._describe_picture(attributes.get("src", ""))):
            self._add(f" {line} ")

    def _close_frame(self) -> None:
        """End a header or footer of the page: one of links is navigation."""
        frame, self._frame = self._frame, None
        if frame is None:
            return
        while self._tables:
            self._close_table()
        self._flow = frame.around
        text = frame.text()
        if frame.link_letters > MAX_LINK_SHARE * frame.letters:
            self.left_out += len(WORD.findall(text))
            self.words -= len(WORD.findall(text))
        else:
            self._flow.add_blocks([text])

    def _close_code(self) -> None:
        """End preformatted text, which keeps its lines."""
        code, self._code = "".join(self._code or ()).strip("\n"), None
        self.words += len(WORD.findall(code))
        fence = "```" if "```" not in code else "~~~~"
        self._flow.add_blocks([f"{fence}\n{code}\n{fence}"] if code.strip() else [])

    def _open_block(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._tables and tag in ROW_GROUPS:
            self._tables[-1].is_in_head = tag == "thead"
        if tag == "table":
            self._open_table(attributes)
        elif self._tables and not self._deeper_tables and (tag in CELLS or tag == "tr"):
            self._open_cell(tag, attributes)
        elif tag in BLOCKS and self._code is None:
            self._flow.parts.append("\n" if tag in LINES else "\n\n")
        if self._code is not None and tag in LINES:
            self._code.append("\n")
        else:
            self._open_item(tag, attributes)

    def _open_item(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin a list, an item with its mark, or a heading."""
        if tag in LISTS:
            self._numbers.append(parse_number(attributes.get("start"), 1) if tag == "ol" else None)
        elif tag == "li":
            self._flow.parts.append(f"{BULLET}{self._next_number(attributes)}")
        elif tag in HEADINGS:
            self._flow.parts.append("#" * int(tag[1]) + " ")
            if self._tables and self._tables[-1].flow:
                self._tables[-1].has_blocks = True

    def _close_block(self, tag: str) -> None:
        if tag in LISTS and self._numbers:
            self._numbers.pop()
        if self._tables and tag == "thead":
            self._tables[-1].is_in_head = False
        if self._tables and tag == "table":
            self._close_table()
        elif self._tables and not self._deeper_tables and tag in CELLS:
            self._close_cell()
        elif tag in BLOCKS and tag not in CELLS and self._code is None:
            self._flow.parts.append("\n")

    def _next_number(self, attributes: Mapping[str, str]) -> str:
        """Return the number of an item of a numbered list."""
        if not self._numbers or self._numbers[-1] is None:
            return ""
        current = parse_number(attributes.get("value"), self._numbers[-1])
        self._numbers[-1] = current + 1
        return f"{current}. "

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

MAX_NESTED_TABLES = 20


class HtmlPage(NamedTuple):
    """An HTML page as text; `notice` says how much of its text is left out."""

    title: str
    text: str
    notice: str | None = None
    author: str | None = None
    language: str = ""


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


def read_html(text: str, *, describe_picture: Callable[[str], str] | None = None) -> HtmlPage:
    """Return title and visible text of a page, without its navigation; all of it if there is nothing else."""
    data = text.encode("utf-8", errors="replace")
    page = read_visible_text(data, "utf-8", with_navigation=False, describe_picture=describe_picture)
    content = page.text()
    title = " ".join((page.title or page.heading).split())
    notice = navigation_notice(page.words + page.left_out, page.left_out)
    if not content and page.left_out:
        content, notice = read_visible_text(data, "utf-8").text(), None
    return HtmlPage(title, content or title, notice, join_authors(page.authors), page.language)
