"""Sections of a text: where they begin, and which of them are joined into one piece."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from conspectus.model.records import TextPosition

_LEAST_SHARE = 8


@dataclass(frozen=True, slots=True)
class Section:
    """A section begins at character `start`; those of a greater depth that follow are parts of it."""

    start: int
    depth: int


def sections_of(places: Sequence[TextPosition]) -> list[Section]:
    """A section begins wherever the headings change."""
    before = ((), *(place.headings for place in places))
    changed = (place for place, above in zip(places, before, strict=False) if place.headings != above)
    return [Section(place.start, len(place.headings)) for place in changed]


def stretches(
    text: str, sections: Sequence[Section], fits: Callable[[int, int], bool]
) -> Iterator[tuple[int, int]]:
    """The text in stretches that begin at sections; only a section without its parts may be too long.

    A section stays with its parts where they fit, and siblings are joined as long as they do. What is joined
    has the same parent, or stands below the first of it.
    """
    if not sections or text[: sections[0].start].strip():
        sections = [Section(0, 0), *sections]
    starts = [0, *(section.start for section in sections[1:]), len(text)]
    after = _ends(sections)
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
        if not (is_part and fits(start, start + _LEAST_SHARE * (end - start))):
            yield start, end
            start = end


def _ends(sections: Sequence[Section]) -> list[int]:
    """For each section the index of the first one behind it that is no part of it."""
    ends = [len(sections)] * len(sections)
    open_sections: list[int] = []
    for place, section in enumerate(sections):
        while open_sections and sections[open_sections[-1]].depth >= section.depth:
            ends[open_sections.pop()] = place
        open_sections.append(place)
    return ends
