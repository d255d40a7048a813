"""DOCX: headings, lists with their numbers, tables, notes, text boxes and formulas as Markdown.

This code reads the XML itself, because neither mammoth, markitdown nor kreuzberg keeps charts and the numbers
of headings (measured on docling's documents; see ADR 0006). Deleted text, headers and footers are skipped.
Page numbers are those of the last rendering in the word processor, else of manual page breaks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.files.zip_xml import (
    PAGE_BREAK,
    Archive,
    Extract,
    Relation,
    attribute,
    chart,
    child,
    diagram,
    heading,
    item,
    joined,
    local,
    main_part,
    number,
    one_line,
    paged,
    plain,
    related,
    relations,
    table,
    value,
)

Write: TypeAlias = Callable[[Any], str]
_ESCAPED = str.maketrans({character: f"\\{character}" for character in "#$%&_{}"} | {"\\": r"\backslash "})
_NAMED = {
    "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "√": r"\sqrt", "∞": r"\infty", "π": r"\pi",
    "\u03b1": r"\alpha", "β": r"\beta", "\u03b3": r"\gamma", "δ": r"\delta", "ε": r"\epsilon",
    "θ": r"\theta", "λ": r"\lambda", "μ": r"\mu", "\u03c3": r"\sigma", "φ": r"\phi", "ω": r"\omega",
    "Δ": r"\Delta", "Ω": r"\Omega", "±": r"\pm", "\u00d7": r"\times", "÷": r"\div", "≤": r"\leq",
    "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "→": r"\rightarrow", "∈": r"\in", "∂": r"\partial",
    "⋅": r"\cdot", "\u222a": r"\cup", "∩": r"\cap",
}  # fmt: skip
_FUNCTION_NAMES = """
sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp lim max min
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())


def latex(element: Any) -> str:
    """Return a formula, or a part of one, in LaTeX."""
    name = local(element)
    if name == "t":
        return _characters(element.text or "")
    if name in {"rPr", "ctrlPr", "sSubPr", "sSupPr", "fPr", "dPr", "naryPr", "radPr", "funcPr", "mPr"}:
        return ""
    return _WRITERS.get(name, _inside)(element)


def _inside(element: Any) -> str:
    return "".join(latex(part) for part in element)


def _part(element: Any, name: str) -> str:
    part = child(element, name)
    return "" if part is None else _inside(part).strip()


def _bounds(element: Any) -> str:
    low, high = _part(element, "sub"), _part(element, "sup")
    return (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")


def _root(element: Any) -> str:
    degree = _part(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'e')}}}"


def _large(element: Any) -> str:
    sign = value(element, "naryPr", "chr")
    return f"{_NAMED.get(sign or '∫', sign or '')}{_bounds(element)} {_part(element, 'e')}"


def _delimited(element: Any) -> str:
    opened, closed = value(element, "dPr", "begChr"), value(element, "dPr", "endChr")
    inner = ",".join(_inside(argument).strip() for argument in element if local(argument) == "e")
    left, right = "(" if opened is None else opened or ".", ")" if closed is None else closed or "."
    return rf"\left{left.translate(_ESCAPED)}{inner}\right{right.translate(_ESCAPED)}"


def _function(element: Any) -> str:
    name = _part(element, "fName")
    return ("\\" if name in _FUNCTIONS else "") + f"{name}({_part(element, 'e')})"


def _matrix(element: Any) -> str:
    rows = ([_inside(cell).strip() for cell in row] for row in element if local(row) == "mr")
    lines = " \\\\ ".join(" & ".join(row) for row in rows)
    return rf"\begin{{matrix}}{lines}\end{{matrix}}"


def _characters(text: str) -> str:
    return "".join(
        f"{_NAMED[character]} " if character in _NAMED else character.translate(_ESCAPED)
        for character in text
    )


def _scripted(element: Any) -> str:
    return _part(element, "e") + _bounds(element)


_WRITERS: Mapping[str, Write] = {
    "f": lambda ratio: rf"\frac{{{_part(ratio, 'num')}}}{{{_part(ratio, 'den')}}}", "sSup": _scripted,
    "sSub": _scripted, "sSubSup": _scripted, "rad": _root, "nary": _large, "d": _delimited,
    "func": _function, "m": _matrix,
}  # fmt: skip


BULLET = "-"
_DEEPEST = 9
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
    (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """The numbering of one level of a list. `text` contains %1 to %9 for the numbers of the levels."""

    style: str = "bullet"
    text: str = ""
    start: int = 1

    def show(self, count: int) -> str:
        """Return a number in the format of this level."""
        if self.style.endswith("Letter"):
            numeral = chr(ord("a") + (count - 1) % 26) * min(1 + (count - 1) // 26, 9)
        elif self.style.endswith("Roman") and 0 < count < 4000:
            numeral = ""
            for worth, letters in _ROMAN:
                numeral += letters * (count // worth)
                count %= worth
        else:
            numeral = str(count)
        return numeral.upper() if self.style.startswith("upper") else numeral


@dataclass(slots=True)
class Numbering:
    """The lists of a document, with their counters."""

    lists: Mapping[str, tuple[str, Mapping[int, Level]]] = field(default_factory=dict)
    counts: dict[str, list[int | None]] = field(default_factory=dict)

    def mark(self, name: str, depth: int) -> str:
        """Return the mark of the next item on a level; empty for no list, or a list without marks."""
        if name not in self.lists:
            return ""
        shared, levels = self.lists[name]
        level = levels.get(depth, Level())
        if level.style in {"bullet", "none"}:
            return BULLET if level.style == "bullet" else ""
        counts = self.counts.setdefault(shared, [None] * _DEEPEST)
        last = counts[depth]
        counts[depth] = level.start if last is None else last + 1
        counts[depth + 1 :] = [None] * (_DEEPEST - depth - 1)

        def number_text(match: re.Match[str]) -> str:
            above = int(match[1]) - 1
            above_level = levels.get(above, Level("decimal"))
            count = counts[above]
            return above_level.show(above_level.start if count is None else count)

        return _PLACEHOLDER.sub(number_text, level.text).strip()


def numbering(part: Any) -> Numbering:
    """Return the lists that a numbering part defines."""
    abstract = {
        attribute(definition, "abstractNumId"): definition
        for definition in part
        if local(definition) == "abstractNum"
    }
    lists = {}
    for instance in part:
        if local(instance) == "num":
            shared = value(instance, "abstractNumId") or ""
            levels = {**_levels(abstract.get(shared)), **_levels_replaced(instance)}
            lists[attribute(instance, "numId")] = (shared, levels)
    return Numbering(lists)


def _levels(element: Any | None) -> Mapping[int, Level]:
    definitions = () if element is None else (node for node in element if local(node) == "lvl")
    levels = {}
    for definition in definitions:
        depth = number(attribute(definition, "ilvl"))
        if 0 <= depth < _DEEPEST:
            style, text = value(definition, "numFmt") or "decimal", value(definition, "lvlText") or ""
            levels[depth] = Level(style[:40], text[:100], number(value(definition, "start"), 1))
    return levels


def _levels_replaced(element: Any) -> Mapping[int, Level]:
    replaced = (child(override, "lvl") for override in element if local(override) == "lvlOverride")
    return {
        depth: level
        for definition in replaced
        if definition is not None
        for depth, level in _levels([definition]).items()
    }


MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LEFT_OUT = frozenset({
    "del", "moveFrom", "delText", "instrText", "rPr", "pPr", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr",
    "sdtPr", "rt", "proofErr",
})  # fmt: skip
NOTES = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
STYLES_ABOVE = 10
WIDEST = 100

Inline: TypeAlias = Callable[[Any], str]


def read_word(archive: Archive) -> Extract:
    """Return the text of a DOCX. Raises Refused."""
    name = main_part(archive)
    document = archive.xml(name)
    reader = _Reader(
        archive=archive,
        styles=_styles(archive.xml(related(archive, name, "styles"))),
        numbering=numbering(archive.xml(related(archive, name, "numbering"))),
        links=relations(archive, name),
        laid_out=any(local(node) == "lastRenderedPageBreak" for node in document.iter()),
    )
    body = child(document, "body")
    blocks = list(reader.blocks(document if body is None else body))
    notes = [note for kind, one in NOTES.items() for note in reader.notes(name, kind, one)]
    text, places = paged(joined([*blocks, *notes]))
    return Extract(text, MEDIA_TYPE, title=reader.title, places=places)


@dataclass(frozen=True, slots=True)
class _Style:
    """The heading level and list that a paragraph style defines."""

    name: str = ""
    outline: int | None = None
    listed: tuple[str, int] | None = None


@dataclass(slots=True)
class _Reader:
    archive: Archive
    styles: Mapping[str, _Style]
    numbering: Numbering
    links: Mapping[str, Relation]
    laid_out: bool
    title: str = ""
    boxes: list[str] = field(default_factory=list)

    def blocks(self, element: Any) -> Iterator[str]:
        """Yield the blocks of an element that contains paragraphs and tables."""
        for block in element:
            name = local(block)
            if name == "p":
                yield self._paragraph(block)
                boxes, self.boxes = self.boxes, []
                yield from boxes
            elif name == "tbl":
                rows = list(_descendants(block, "tr"))
                alone = list(_descendants(rows[0], "tc")) if len(rows) == 1 else []
                yield joined(self.blocks(alone[0])) if len(alone) == 1 else table(list(self._rows(rows)))
            elif name not in LEFT_OUT:
                yield from self.blocks(block)

    def notes(self, part: str, kind: str, one: str) -> Iterator[str]:
        """Return the footnotes, endnotes or comments of the document."""
        for note in self.archive.xml(related(self.archive, part, kind)):
            text = one_line(joined(self.blocks(note))).replace(PAGE_BREAK, "")
            if local(note) == one and text:
                yield f"[^{one}-{attribute(note, 'id')[:9]}]: {text}"

    def _paragraph(self, paragraph: Any) -> str:
        text = self._inside(paragraph)
        properties = child(paragraph, "pPr")
        style = self.styles.get("" if properties is None else value(properties, "pStyle") or "", _Style())
        own_outline = None if properties is None else value(properties, "outlineLvl")
        outline = style.outline if own_outline is None else number(own_outline, 9)
        level = _level_of(style.name) or (outline + 1 if outline is not None and 0 <= outline < 9 else 0)
        listed = style.listed if properties is None else _listed(properties) or style.listed
        mark = self.numbering.mark(*listed) if listed and text.strip() and 0 <= listed[1] < 9 else ""
        if level:
            self.title = self.title or one_line(text.replace(PAGE_BREAK, " "))
            return heading(f"{'' if mark == BULLET else mark} {text}", level)
        if mark and listed:
            simple = mark == BULLET or mark[:-1].isdecimal()
            return item(text if simple else f"{mark} {text}", listed[1], mark if simple else BULLET)
        return plain(text)

    def _rows(self, rows: Iterable[Any]) -> Iterator[list[str]]:
        """Return the rows of a table. A merged cell is repeated in each row and column that it spans."""
        above: dict[int, str] = {}
        for row in rows:
            cells = [""] * _width(value(row, "trPr", "gridBefore"), 0)
            for cell in _descendants(row, "tc"):
                merged = child(cell, "tcPr", "vMerge")
                continued = merged is not None and attribute(merged, "val", "continue") == "continue"
                cell_text = "" if continued else joined(self.blocks(cell)).replace("\n", " ")
                text = above.get(len(cells), "") if continued else cell_text
                above[len(cells)] = text
                cells += [text] * _width(value(cell, "tcPr", "gridSpan"), 1)
            yield cells

    def _inside(self, element: Any) -> str:
        return "".join(map(self._inline, element))

    def _inline(self, element: Any) -> str:
        name = local(element)
        if name in LEFT_OUT:
            return ""
        if name == "t":
            return element.text or ""
        written = _MARKS.get(name)
        if written is not None:
            return written
        special = self._specials().get(name)
        return special(element) if special else self._inside(element)

    def _specials(self) -> Mapping[str, Inline]:
        return {
            "br": self._break,
            "lastRenderedPageBreak": lambda _: PAGE_BREAK,
            "sym": _symbol,
            "hyperlink": self._link,
            "oMath": lambda formula: f"${latex(formula).strip()}$",
            "oMathPara": lambda formula: f"$${latex(formula).strip()}$$",
            "footnoteReference": lambda note: f"[^footnote-{attribute(note, 'id')[:9]}]",
            "endnoteReference": lambda note: f"[^endnote-{attribute(note, 'id')[:9]}]",
            "commentReference": lambda note: f"[^comment-{attribute(note, 'id')[:9]}]",
            "AlternateContent": self._alternative,
            "txbxContent": self._box,
            "chart": lambda drawing: self._related(attribute(drawing, "id"), chart),
            "relIds": lambda drawing: self._related(attribute(drawing, "dm"), diagram),
            "sdt": self._control,
        }

    def _break(self, element: Any) -> str:
        if attribute(element, "type") == "page":
            return "" if self.laid_out else PAGE_BREAK
        return "\n"

    def _link(self, element: Any) -> str:
        text = self._inside(element)
        relation = self.links.get(attribute(element, "id"))
        is_useful = relation is not None and relation.external and text.strip() and relation.target != text
        return f"[{text}]({relation.target})" if is_useful and relation is not None else text

    def _alternative(self, element: Any) -> str:
        """Return the first alternative of a drawing that has text."""
        for form in element:
            before = len(self.boxes)
            text = self._inside(form)
            if text.strip() or len(self.boxes) > before:
                return text
        return ""

    def _box(self, element: Any) -> str:
        outer, self.boxes = self.boxes, []
        self.boxes = [*outer, *filter(None, [joined(self.blocks(element))])]
        return ""

    def _related(self, id: str, read: Callable[[Any], Iterable[str]]) -> str:
        """Read a chart or a diagram, which is shown after the paragraph."""
        relation = self.links.get(id)
        if relation is not None:
            self.boxes.append(joined(read(self.archive.xml(relation.target))))
        return ""

    def _control(self, element: Any) -> str:
        checked = value(element, "sdtPr", "checkbox", "checked")
        return self._inside(element) if checked is None else "[x]" if checked in {"1", "true"} else "[ ]"


def _width(text: str | None, least: int) -> int:
    return max(least, min(number(text, least), WIDEST))


_MARKS = {"tab": "\t", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}


def _descendants(element: Any, name: str) -> Iterator[Any]:
    """Return the rows of a table or the cells of a row, including those inside controls and changes."""
    for node in element:
        if local(node) == name:
            yield node
        elif local(node) in {"sdt", "sdtContent", "customXml", "ins", "smartTag"}:
            yield from _descendants(node, name)


def _styles(part: Any) -> Mapping[str, _Style]:
    elements = {attribute(style, "styleId"): style for style in part if local(style) == "style"}
    return {name: _style(style, elements) for name, style in elements.items()}


def _style(element: Any, elements: Mapping[str, Any]) -> _Style:
    """Return a style with the properties that it inherits."""
    names, outline, listed = [], None, None
    current: Any | None = element
    for _ in range(STYLES_ABOVE):
        if current is None:
            break
        names.append((value(current, "name") or "").lower())
        outline = value(current, "pPr", "outlineLvl") if outline is None else outline
        properties = child(current, "pPr")
        listed = listed or (None if properties is None else _listed(properties))
        current = elements.get(value(current, "basedOn") or "")
    named = next((name for name in names if _level_of(name)), "")
    return _Style(named, None if outline is None else number(outline, 9), listed)


def _listed(properties: Any) -> tuple[str, int] | None:
    name = value(properties, "numPr", "numId")
    return None if name is None else (name, number(value(properties, "numPr", "ilvl")))


def _level_of(name: str) -> int:
    if name == "title":
        return 1
    return number(name.removeprefix("heading ")) if name.startswith("heading ") else 0


def _symbol(element: Any) -> str:
    code = attribute(element, "char")
    try:
        character = int(code[:6], 16)
    except ValueError:
        return ""
    return "" if 0xD800 <= character < 0xF900 or character > 0x10FFFF or character < 32 else chr(character)
