"""The numbers and bullets of a word processor's lists and headings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus.sources.files.zip_xml import attribute, child, local, number, value

BULLET = "-"
_DEEPEST = 9
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
    (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """How one level of a list is numbered: `text` has %1 to %9 for the numbers of the levels."""

    style: str = "bullet"
    text: str = ""
    start: int = 1

    def show(self, count: int) -> str:
        """A number as this level writes it."""
        if self.style.endswith("Letter"):
            shown = chr(ord("a") + (count - 1) % 26) * min(1 + (count - 1) // 26, 9)
        elif self.style.endswith("Roman") and 0 < count < 4000:
            shown = _roman(count)
        else:
            shown = str(count)
        return shown.upper() if self.style.startswith("upper") else shown


@dataclass(slots=True)
class Numbering:
    """All lists of a document, with how far each has been counted."""

    lists: Mapping[str, tuple[str, Mapping[int, Level]]] = field(default_factory=dict)
    counts: dict[str, list[int | None]] = field(default_factory=dict)

    def mark(self, name: str, depth: int) -> str:
        """The mark of the next item of a list on a level; empty for no list, or one without marks."""
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

        def shown(found: re.Match[str]) -> str:
            above = int(found[1]) - 1
            each = levels.get(above, Level("decimal"))
            count = counts[above]
            return each.show(each.start if count is None else count)

        return _PLACEHOLDER.sub(shown, level.text).strip()


def numbering(part: Any) -> Numbering:
    """The lists that a numbering part defines."""
    abstract = {attribute(each, "abstractNumId"): each for each in part if local(each) == "abstractNum"}
    lists = {}
    for each in part:
        if local(each) == "num":
            shared = value(each, "abstractNumId") or ""
            levels = {**_levels(abstract.get(shared)), **_levels_replaced(each)}
            lists[attribute(each, "numId")] = (shared, levels)
    return Numbering(lists)


def _levels(element: Any | None) -> Mapping[int, Level]:
    found = () if element is None else (each for each in element if local(each) == "lvl")
    levels = {}
    for each in found:
        depth = number(attribute(each, "ilvl"))
        if 0 <= depth < _DEEPEST:
            style, text = value(each, "numFmt") or "decimal", value(each, "lvlText") or ""
            levels[depth] = Level(style[:40], text[:100], number(value(each, "start"), 1))
    return levels


def _levels_replaced(element: Any) -> Mapping[int, Level]:
    replaced = (child(each, "lvl") for each in element if local(each) == "lvlOverride")
    return {depth: level for each in replaced if each is not None for depth, level in _levels([each]).items()}


def _roman(count: int) -> str:
    shown = ""
    for worth, letters in _ROMAN:
        shown += letters * (count // worth)
        count %= worth
    return shown
