"""Convert wikitext to Markdown: headings, lists, tables and link texts are kept, markup is removed.

Templates, footnotes, comments, galleries, images and categories are dropped. A few passes of linear time are
made, also for unclosed or deeply nested markup.
"""

import html
import re
from collections.abc import Collection
from dataclasses import field

from conspectus.deferred import dataclass

WHOLE = """
gallery imagemap includeonly math nowiki pre ref references source syntaxhighlight templatestyles timeline
"""
OPENING = re.compile(rf"<!--|<({'|'.join(WHOLE.split())})\b([^<>]*)>", re.IGNORECASE)
CLOSINGS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in WHOLE.split()}
LANGUAGE = re.compile(r"""\blang\s*=\s*["']?([\w+#-]{1,30})""")
BRACES = re.compile(r"\{\{+|\}\}+")
BRACKETS = re.compile(r"\[\[|\]\]")
EXTERNAL = re.compile(r"\[(?:https?:|ftp:)?//[^\s\[\]<>\"]+(?:[ \t]+([^\[\]\n]*))?\]")
BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
CODE_TAG = re.compile(r"</?(?:code|tt|kbd|samp)\b[^<>]*>", re.IGNORECASE)
TAG_NAMES = """
abbr b bdi bdo big blockquote caption center cite dd del dfn div dl dt em font h1 h2 h3 h4 h5 h6 hr i ins li
mark noinclude ol onlyinclude p poem q rp rt ruby s section small span strike strong sub sup table tbody td
th thead tr u ul var
"""
TAG = re.compile(rf"</?(?:{'|'.join(TAG_NAMES.split())})\b[^<>]*>", re.IGNORECASE)
QUOTES = re.compile("'{2,}")
SWITCH = re.compile(r"__[A-Z]{3,30}__")
HOLLOW = re.compile(r" ?\([ ,;]{0,20}\)")
LIST = re.compile(r"[*#:;]+")
KEPT = re.compile("\x02([0-9]+)\x03")
BLANK = re.compile(r"\n{3,}")
DEEPEST = 10
FILES = frozenset({"file", "image", "media"})
CATEGORIES = frozenset({"category"})


def wikitext_to_markdown(
    text: str, *, files: Collection[str] = FILES, categories: Collection[str] = CATEGORIES
) -> str:
    """Return the readable text of a page. `files` and `categories` are lower-case namespace names."""
    fragments: list[str] = []
    text = _set_aside(re.sub("[\x02\x03]", "", text), fragments)
    text = _without_templates(text)
    text = _with_link_words(text, frozenset({*files, *categories}))
    text = EXTERNAL.sub(lambda match: match[1] or match[0].strip("[]"), text)
    text = BREAK.sub("\n", text)
    text = TAG.sub("", CODE_TAG.sub("`", text))
    text = HOLLOW.sub("", SWITCH.sub("", QUOTES.sub("", text)))
    lines = _Lines()
    for line in text.split("\n"):
        lines.take(line)
    text = html.unescape("\n".join(lines.finish())).replace("\xa0", " ")
    text = KEPT.sub(lambda match: fragments[int(match[1])] if int(match[1]) < len(fragments) else "", text)
    return BLANK.sub("\n\n", text).strip()


def _set_aside(text: str, fragments: list[str]) -> str:
    """Replace what is not wikitext by placeholders."""
    parts: list[str] = []
    unclosed: set[str] = set()
    position = 0
    while opening := OPENING.search(text, position):
        parts.append(text[position : opening.start()])
        position = opening.end()
        name = (opening[1] or "").lower()
        if not name:
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
        elif not opening[2].rstrip().endswith("/") and name not in unclosed:
            closing = CLOSINGS[name].search(text, position)
            if closing is None:
                unclosed.add(name)
                continue
            parts.append(_mark(name, opening[2], text[position : closing.start()], fragments))
            position = closing.end()
    parts.append(text[position:])
    return "".join(parts)


def _mark(name: str, attributes: str, inner: str, fragments: list[str]) -> str:
    match name:
        case "nowiki":
            fragments.append(html.unescape(inner))
        case "math":
            fragments.append(f"${inner.strip()}$")
        case "pre" | "syntaxhighlight" | "source" if "inline" in attributes:
            fragments.append(f"`{inner.strip()}`")
        case "pre" | "syntaxhighlight" | "source":
            language = LANGUAGE.search(attributes)
            inner = html.unescape(inner) if name == "pre" else inner
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", inner)), default=0))
            code = inner.strip("\n")
            fragments.append(f"\n{fence}{language[1] if language else ''}\n{code}\n{fence}\n")
        case _:
            return ""
    return f"\x02{len(fragments) - 1}\x03"


def _without_templates(text: str) -> str:
    """Remove everything between double braces, nested or not. Unclosed braces are text."""
    parts: list[str] = []
    opened: list[int] = []
    position = 0
    for braces in BRACES.finditer(text):
        parts.append(text[position : braces.start()])
        position = braces.end()
        pairs = len(braces[0]) // 2
        if braces[0][0] == "{":
            opened += [len(parts)] * pairs
            continue
        for _ in range(min(pairs, len(opened))):
            del parts[opened.pop() :]
    parts.append(text[position:])
    return "".join(parts)


def _with_link_words(text: str, dropped: Collection[str]) -> str:
    """Replace internal links by their texts. Links to files and categories are removed."""
    parts: list[str] = []
    opened: list[int] = []
    position = 0
    for bracket in BRACKETS.finditer(text):
        parts.append(text[position : bracket.start()])
        position = bracket.end()
        if bracket[0] == "[[" and len(opened) < DEEPEST:
            opened.append(len(parts))
        elif bracket[0] == "]]" and opened:
            start = opened.pop()
            parts[start:] = [_words("".join(parts[start:]), dropped)]
    parts.append(text[position:])
    return "".join(parts)


def _words(link: str, dropped: Collection[str]) -> str:
    target, bar, label = link.partition("|")
    space, colon, _ = target.partition(":")
    if colon and space.strip().replace("_", " ").lower() in dropped:
        return ""
    return label.strip() if bar and label.strip() else target.strip().removeprefix(":")


@dataclass(slots=True)
class _Lines:
    """Collects the lines of the result. Rows of a table are kept until it ends."""

    done: list[str] = field(default_factory=list)
    depth: int = 0
    rows: list[list[list[str]]] = field(default_factory=list)
    heads: set[int] = field(default_factory=set)

    def take(self, line: str) -> None:
        """Add one line of wikitext."""
        stripped = line.strip()
        start = stripped.lstrip(":* ")
        if start.startswith("{|"):
            self.depth += 1
        elif not self.depth:
            self.done.append(_line(stripped))
        elif stripped.startswith("|}"):
            self.depth -= 1
            self._end_table(if_outermost=True)
        else:
            self._row(stripped)

    def finish(self) -> list[str]:
        """Return all lines; an unclosed table ends here."""
        self._end_table(if_outermost=False)
        return self.done

    def _row(self, line: str) -> None:
        if line.startswith("|+"):
            self.done.append(_cell(line[2:]))
        elif line.startswith("|-") or not self.rows:
            self.rows.append([])
        if line.startswith(("|-", "|+")):
            return
        if line.startswith(("|", "!")):
            if line[0] == "!":
                self.heads.add(len(self.rows) - 1)
                line = line.replace("!!", "||")
            self.rows[-1].extend([_cell(cell)] for cell in line[1:].split("||"))
        elif line and self.rows[-1]:
            self.rows[-1][-1].append(line.lstrip("*#:; "))

    def _end_table(self, *, if_outermost: bool) -> None:
        if if_outermost and self.depth:
            return
        texts = [[" ".join(filter(None, cell)) for cell in row] for row in self.rows]
        rows = [(number in self.heads, cells) for number, cells in enumerate(texts) if any(cells)]
        for row_number, (head, cells) in enumerate(rows):
            self.done.append(f"| {' | '.join(cells)} |")
            if row_number == 0 and head:
                self.done.append("|" + " --- |" * len(cells))
        self.done.append("")
        self.rows, self.heads = [], set()


def _cell(text: str) -> str:
    """Return a cell without the attributes before its bar."""
    attributes, bar, content = text.partition("|")
    return (content if bar and "=" in attributes else text).strip()


def _line(line: str) -> str:
    if line.startswith("----"):
        return ""
    if line.startswith("=") and line.endswith("="):
        opening = len(line) - len(line.lstrip("="))
        level = min(opening, len(line) - len(line.rstrip("=")), 6)
        words = line[level:-level].strip()
        return f"\n{'#' * level} {words}\n" if words.strip("=") else ""
    return _item(line) if LIST.match(line) else line


def _item(line: str) -> str:
    words = line.lstrip("*#:;")
    marks = line[: len(line) - len(words)]
    depth = min(sum(mark in "*#" for mark in marks), DEEPEST)
    bullet = {"*": "- ", "#": "1. "}.get(marks[-1], "")
    return "   " * (depth - 1) + bullet + words.strip() if words.strip() else ""
