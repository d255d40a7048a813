"""Sections of a text, and spans that begin at sections."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from conspectus.deferred import dataclass
from conspectus.model.records import TextPosition

_MIN_PART_DIVISOR = 8
"""A part of a section that is shorter than this fraction of a piece stays with the next one."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section that begins at character `start`.

    Following sections of a greater depth are its subsections.
    """

    start: int
    depth: int


def sections_of(positions: Sequence[TextPosition]) -> list[Section]:
    """Return a section for each change of the headings."""
    before = ((), *(position.headings for position in positions))
    pairs = zip(positions, before, strict=False)
    changed = (position for position, headings in pairs if position.headings != headings)
    return [Section(position.start, len(position.headings)) for position in changed]


def page_breaks(text: str, positions: Sequence[TextPosition]) -> list[int]:
    """Return where pages begin, but for the first one and those that begin within a line."""
    return [
        position.start
        for before, position in pairwise(positions)
        if position.page != before.page and text[position.start - 1 : position.start] == "\n"
    ]


def stretches(
    text: str, sections: Sequence[Section], fits: Callable[[int, int], bool]
) -> Iterator[tuple[int, int]]:
    """Yield spans of a text that begin at sections; only a section without subsections may be too long.

    A section stays with its subsections if they fit, and siblings are joined while they fit. Joined sections
    have the same parent, or are subsections of the first one.
    """
    if not sections or text[: sections[0].start].strip():
        sections = [Section(0, 0), *sections]
    starts = [0, *(section.start for section in sections[1:]), len(text)]
    after = _subsection_ends(sections)
    start = first = 0
    while first < len(sections):
        depth = sections[first].depth
        following = after[first] if fits(start, starts[after[first]]) else first + 1
        while (
            following < len(sections)
            and sections[following].depth >= depth
            and fits(start, starts[after[following]])
        ):
            following = after[following]
        end = starts[following]
        first = following
        is_part = following < len(sections) and sections[following].depth > depth
        if not (is_part and fits(start, start + _MIN_PART_DIVISOR * (end - start))):
            yield start, end
            start = end


def _subsection_ends(sections: Sequence[Section]) -> list[int]:
    """Return for each section the index of the next section that is not a subsection of it."""
    ends = [len(sections)] * len(sections)
    open_sections: list[int] = []
    for number, section in enumerate(sections):
        while open_sections and sections[open_sections[-1]].depth >= section.depth:
            ends[open_sections.pop()] = number
        open_sections.append(number)
    return ends
