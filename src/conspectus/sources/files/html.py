"""Titles of Markdown and reStructuredText; title and main text of HTML."""

import re
from itertools import pairwise
from typing import NamedTuple

from lxml.etree import LxmlError

from conspectus.sources.files.visible import visible

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t])")
CLOSING = re.compile(r"(?:^|[ \t])#+$")
ATTRIBUTES = re.compile(r"(?<=\S)[ \t]+\{[^{}\n]*\}$")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title[ \t]*[:=](.*)$", re.MULTILINE)
ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
WORD = re.compile(r"\w+")

DEEPEST = 200
LONGEST = 2_000_000
MAIN_SHARE = 0.5


class HtmlPage(NamedTuple):
    """An HTML page as text; `complete` says that it is all visible text, not only the main part."""

    title: str
    text: str
    complete: bool


def markdown_title(text: str) -> str:
    """The front matter's title, else the first heading outside code, else nothing."""
    front = FRONT.match(text)
    if front and (named := FRONT_TITLE.search(front[2])) and named[1].strip():
        return _unquoted(named[1].strip())
    fence, previous = "", ""
    for line in text[front.end() if front else 0 :].split("\n"):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _heading(line)):
            return heading
        elif not fence and previous.strip() and UNDERLINE.fullmatch(line):
            return previous.strip()
        previous = "" if fence or mark or line.startswith("    ") else line
    return ""


def rst_title(text: str) -> str:
    """The first line that is underlined by punctuation at least as long as itself."""
    for line, under in pairwise(text.split("\n")):
        title = line.strip()
        if not title or ADORNMENT.fullmatch(line) or not ADORNMENT.fullmatch(under):
            continue
        if len(under.rstrip()) >= len(title):
            return title
    return ""


def read_html(text: str) -> HtmlPage:
    """Title and text of a page: its main part as Markdown, or everything visible where that is too little."""
    seen = visible(text.encode("utf-8", errors="replace"), "utf-8")
    everything = seen.text()
    main = "" if seen.depth > DEEPEST or len(text) > LONGEST else _main_part(text)
    enough = len(WORD.findall(main)) >= MAIN_SHARE * len(WORD.findall(everything))
    title = " ".join((seen.title or seen.heading).split())
    return HtmlPage(title, main, False) if main and enough else HtmlPage(title, everything or title, True)


def _main_part(text: str) -> str:
    import trafilatura

    try:
        main = trafilatura.extract(
            text, output_format="markdown", favor_recall=True, include_comments=True, include_tables=True
        )
    except (LxmlError, ValueError, RecursionError):
        return ""
    return main or ""


def _heading(line: str) -> str:
    """The text of a line that is a heading of the form `# text`, else nothing."""
    mark = HEADING.match(line)
    return ATTRIBUTES.sub("", CLOSING.sub("", line[mark.end() :].strip())).strip() if mark else ""


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
