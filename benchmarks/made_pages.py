"""Pages made by script from known texts: PDFs in several layouts, and whole web pages."""

import html
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from markdown_it import MarkdownIt

WIDTH, HEIGHT, MARGIN, SIZE, LEADING = 612, 792, 60, 10, 12
LINES_PER_PAGE = 50
HELVETICA = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 "
    "278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 "
    "667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 "
    "833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
WIDTHS = {chr(32 + index): int(width) / 1000 for index, width in enumerate(HELVETICA.split())}
_MARKUP = re.compile(
    r":[\w-]+:`([^`<]+)(?:<[^`>]*>)?`|``([^`]+)``|`([^`<]+)(?:<[^`>]*>)?`_{0,2}|\*+|\[[#\w]+\]_"
)

Line: TypeAlias = tuple[float, float, float, str]
"""Left end and baseline of a line, from the left and from the bottom; its size; its text."""

Rule: TypeAlias = tuple[float, float, float, float]
"""A line that is drawn from a point to another, each from the left and from the bottom."""


@dataclass(frozen=True, slots=True)
class MadePage:
    """A file made by script, with the Markdown that it should become."""

    kind: str
    name: str
    content: bytes
    expected: str


def text_width(text: str) -> float:
    """Return the width of a text in Helvetica of size 1."""
    return sum(WIDTHS[letter] for letter in text)


def wrap(text: str, width: float) -> Iterator[str]:
    """Yield the lines of a paragraph of body text that is as wide as this."""
    line = ""
    for word in text.split():
        while text_width(word) * SIZE > width:
            cut = next(end for end in range(len(word) - 1, 0, -1) if text_width(word[:end]) * SIZE <= width)
            yield from filter(None, (line, word[:cut]))
            line, word = "", word[cut:]
        longer = f"{line} {word}" if line else word
        if line and text_width(longer) * SIZE > width:
            yield line
            longer = word
        line = longer
    yield line


def render_pdf(pages: Sequence[Sequence[Line]], *, rotate: int = 0, rules: Sequence[Rule] = ()) -> bytes:
    """Return a PDF that draws the lines of each page in their order; text is turned to appear upright.

    The rules are drawn on each page.
    """
    drawn = "".join(f"{left} {top} m {right} {bottom} l S\n" for left, top, right, bottom in rules)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        stream = zlib.compress((drawn + "\n".join(_draw(line, rotate) for line in page)).encode("ascii"))
        box = f"{HEIGHT} {WIDTH}" if rotate % 180 else f"{WIDTH} {HEIGHT}"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {box}] /Rotate {rotate} "
            f"/Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
        ]
    return join_pdf_objects(objects)


def _draw(line: Line, rotate: int) -> str:
    left, base, size, text = line
    matrix = {
        0: f"1 0 0 1 {left:.2f} {base:.2f}",
        90: f"0 1 -1 0 {HEIGHT - base:.2f} {left:.2f}",
        180: f"-1 0 0 -1 {WIDTH - left:.2f} {HEIGHT - base:.2f}",
        270: f"0 -1 1 0 {base:.2f} {WIDTH - left:.2f}",
    }[rotate]
    escaped = re.sub(r"([\\()])", r"\\\1", text)
    return f"BT /F1 {size} Tf {matrix} Tm ({escaped}) Tj ET"


def join_pdf_objects(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of numbered objects, with the table of where they start."""
    content, starts = b"%PDF-1.4\n", []
    for number, part in enumerate(objects, 1):
        starts.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    size = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, len(content))
    return content + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


def set_columns(paragraphs: Sequence[str], columns: int, title: str) -> list[list[Line]]:
    """Return pages of this many columns, read column by column, with running heads and page numbers."""
    gutter = 18
    width = (WIDTH - 2 * MARGIN - gutter * (columns - 1)) / columns
    texts = [line for paragraph in paragraphs for line in (*wrap(paragraph, width), "")]
    pages: list[list[Line]] = []
    for first in range(0, len(texts), LINES_PER_PAGE * columns):
        number = len(pages) + 1
        page: list[Line] = [(MARGIN, HEIGHT - 30, 8, title), (WIDTH / 2, 24, 8, str(number))]
        for index, text in enumerate(texts[first : first + LINES_PER_PAGE * columns]):
            column, row = divmod(index, LINES_PER_PAGE)
            if text:
                left = MARGIN + column * (width + gutter)
                page.append((left, HEIGHT - MARGIN - LEADING * (row + 1), SIZE, text))
        pages.append(page)
    return pages


def by_row(page: Sequence[Line]) -> list[Line]:
    """Return the lines of a page in rows from above: columns are drawn interleaved."""
    return sorted(page, key=lambda line: (-line[1], line[0]))


def from_below(page: Sequence[Line]) -> list[Line]:
    """Return the lines of a page from the last to the first."""
    return list(reversed(page))


def as_drawn(page: Sequence[Line]) -> list[Line]:
    """Return the lines of a page as they are."""
    return list(page)


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to set a text on pages."""

    columns: int
    order: Callable[[Sequence[Line]], list[Line]] = as_drawn
    rotate: int = 0


LAYOUTS: Mapping[str, Layout] = {
    "one column": Layout(1),
    "two columns": Layout(2),
    "two columns, drawn by row": Layout(2, by_row),
    "three columns, drawn by row": Layout(3, by_row),
    "drawn from below": Layout(2, from_below),
    "turned by 90": Layout(2, by_row, 90),
    "turned by 180": Layout(1, as_drawn, 180),
    "turned by 270": Layout(2, as_drawn, 270),
}


def made_pdfs(peps: Path, count: int) -> Iterator[MadePage]:
    """Yield texts of PEPs in each layout, and tables of their metadata."""
    for path in sorted(peps.glob("pep-*.rst"))[10 : 10 + count]:
        paragraphs = pep_paragraphs(path.read_text(encoding="utf-8"))[:60]
        if not paragraphs:
            continue
        for name, layout in LAYOUTS.items():
            pages = [
                layout.order(page) for page in set_columns(paragraphs, layout.columns, path.stem.upper())
            ]
            content = render_pdf(pages, rotate=layout.rotate)
            expected = "\n\n".join(paragraphs)
            yield MadePage(f"pdf, {name}", f"{path.stem} {name}.pdf", content, expected)
    yield from _made_tables(sorted(peps.glob("pep-*.rst"))[:200])


def _made_tables(paths: Sequence[Path]) -> Iterator[MadePage]:
    rows = [row for path in paths if (row := pep_row(path.read_text(encoding="utf-8")))]
    header = ["PEP", "Title", "Status", "Type", "Created"]
    lefts = (MARGIN, MARGIN + 40, MARGIN + 300, MARGIN + 360, MARGIN + 440)
    for first in range(0, min(len(rows), 160), 40):
        table = [header, *rows[first : first + 40]]
        lines = [
            (left, HEIGHT - MARGIN - 15.0 * (number + 1), SIZE, cell)
            for number, row in enumerate(table)
            for left, cell in zip(lefts, row, strict=True)
        ]
        below = (MARGIN, HEIGHT - MARGIN - 15.0 * (len(table) + 2), SIZE, "This is the end of the list.")
        expected = "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * 5, *table[1:]])
        expected += "\n\nThis is the end of the list."
        content = render_pdf([[*lines, below]])
        yield MadePage("pdf, tables", f"table {first}.pdf", content, expected)


def pep_row(text: str) -> list[str]:
    """Return number, title, status, type and date of a PEP; none if some of them are missing."""
    fields = dict(re.findall(r"^(PEP|Title|Status|Type|Created): (.+)$", text, re.MULTILINE))
    row = [fields.get(name, "") for name in ("PEP", "Title", "Status", "Type", "Created")]
    is_plain = all(row) and all(letter in WIDTHS for cell in row for letter in cell)
    return row if is_plain and text_width(row[1]) * SIZE < 240 else []


def pep_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of prose of a PEP, without markup, in letters that Helvetica has."""
    blocks = re.split(r"\n\s*\n", text)[1:]
    paragraphs = []
    for block in blocks:
        if re.match(r"[\s.*|+\-#]", block) or re.search(r"^[=\-~^\"'+*]{3,}", block, re.MULTILINE):
            continue
        plain = " ".join(_MARKUP.sub(lambda match: next(filter(None, match.groups()), ""), block).split())
        if len(plain) > 80 and "|" not in plain and all(letter in WIDTHS for letter in plain):
            paragraphs.append(plain)
    return paragraphs


AROUND = """<!doctype html><html><head><title>{title}</title></head><body>
<nav><ul><li><a href="/">Home page</a></li><li><a href="/all">All articles</a></li></ul></nav>
<div id="cookie-banner" role="dialog" aria-label="Cookies">We use cookies to improve this site.
<button>Accept all</button></div>
<main><article>{article}
<aside><p>Aside: {title} was set by script.</p></aside>
<figure><img src="a.png" alt="A drawing of {title}">
<figcaption>Figure 1: {title}, drawn.</figcaption></figure>
<div>Text that stands in a division, updated <time datetime="2026-11-29">on 29 November 2026</time>.</div>
<dl><dt>Term of {title}</dt><dd>What the term means.</dd></dl>
<div class="author sidebar">Written by the author of {title}.</div>
<ul><li><a href="/b">First link of {title}</a></li><li><a href="/c">Second link of {title}</a></li></ul>
</article></main></body></html>"""
BELOW = """
Aside: {title} was set by script.

A drawing of {title}

Figure 1: {title}, drawn.

Text that stands in a division, updated on 29 November 2026.

Term of {title}

What the term means.

Written by the author of {title}.

- First link of {title}
- Second link of {title}
"""


def made_web_pages(docs: Path, count: int) -> Iterator[MadePage]:
    """Yield pages of documentation as HTML, with parts beside the text, a menu and a cookie banner."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    for path in sorted(docs.rglob("*.md"))[:count]:
        text = path.read_text(encoding="utf-8")
        title = path.stem.replace("-", " ")
        article = markdown.render(text)
        page = AROUND.format(title=html.escape(title), article=article)
        expected = re.sub(r"^(`{3,}|~{3,}).*$", "", text, flags=re.MULTILINE) + BELOW.format(title=title)
        yield MadePage("html, made", f"{path.stem}.html", page.encode(), expected)
