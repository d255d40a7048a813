"""Numbers of list items and headings in DOCX."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from conspectus.deferred import dataclass
from conspectus.sources.files.zip_xml import (
    attribute_of,
    find_child,
    local_name,
    parse_number,
    val_attribute,
)

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


def read_numbering(part: Any) -> Numbering:
    """Return the lists that a numbering part defines."""
    abstract = {
        attribute_of(definition, "abstractNumId"): definition
        for definition in part
        if local_name(definition) == "abstractNum"
    }
    lists = {}
    for instance in part:
        if local_name(instance) == "num":
            shared = val_attribute(instance, "abstractNumId") or ""
            levels = {**_levels(abstract.get(shared)), **_levels_replaced(instance)}
            lists[attribute_of(instance, "numId")] = (shared, levels)
    return Numbering(lists)


def _levels(element: Any | None) -> Mapping[int, Level]:
    definitions = () if element is None else (node for node in element if local_name(node) == "lvl")
    levels = {}
    for definition in definitions:
        depth = parse_number(attribute_of(definition, "ilvl"))
        if 0 <= depth < _DEEPEST:
            style, text = (
                val_attribute(definition, "numFmt") or "decimal",
                val_attribute(definition, "lvlText") or "",
            )
            levels[depth] = Level(style[:40], text[:100], parse_number(val_attribute(definition, "start"), 1))
    return levels


def _levels_replaced(element: Any) -> Mapping[int, Level]:
    replaced = (find_child(override, "lvl") for override in element if local_name(override) == "lvlOverride")
    return {
        depth: level
        for definition in replaced
        if definition is not None
        for depth, level in _levels([definition]).items()
    }
