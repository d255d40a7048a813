"""What extractors of names have in common: texts in pieces that a model can take, and names out of spans."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from conspectus.model.graph import Mention

KeyOf = Callable[[str], str]
"""What names are compared by."""
TYPES: Final = {
    "per": "person", "person": "person", "people": "person", "org": "organisation",
    "organization": "organisation", "organisation": "organisation", "company": "organisation",
    "gpe": "place", "loc": "place", "fac": "place", "location": "place", "place": "place", "date": "date",
    "time": "date", "money": "number", "percent": "number", "quantity": "number", "cardinal": "number",
    "ordinal": "number", "work_of_art": "title", "work of art": "title", "title": "title",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labelled:
    """Characters [start, end) of a text with the label that a model gave them."""

    start: int
    end: int
    label: str
    score: float = 1.0


def pieces(text: str, longest: int) -> Iterator[tuple[int, str]]:
    """A text in pieces of so many characters at most, with their places, cut at spaces if there are any."""
    start = 0
    while start < len(text):
        end = min(len(text), start + longest)
        space = text.rfind(" ", start + max(1, longest // 2), end) if end < len(text) else -1
        end = end if space < 0 else space
        yield start, text[start:end]
        start = end


def found_in(text: str, spans: Iterable[Labelled], key_of: KeyOf) -> list[Mention]:
    """Names in order and without overlaps, the longest of those; spans outside of the text are none."""
    inside = [_trimmed(text, each) for each in spans if 0 <= each.start < each.end <= len(text)]
    taken: list[Labelled] = []
    for each in sorted(inside, key=lambda each: (each.start, -each.end, -each.score)):
        if each.start < each.end and (not taken or each.start >= taken[-1].end):
            taken.append(each)
        elif taken and each.end - each.start > taken[-1].end - taken[-1].start:
            taken[-1] = each
    made = (_found(text, each, key_of) for each in taken)
    return [each for each in made if each.key]


def _trimmed(text: str, span: Labelled) -> Labelled:
    said = text[span.start : span.end]
    start = span.start + len(said) - len(said.lstrip())
    return Labelled(start, start + len(said.strip()), span.label, span.score)


def _found(text: str, span: Labelled, key_of: KeyOf) -> Mention:
    said = text[span.start : span.end]
    label = span.label.strip().lower()
    score = min(1.0, max(0.0, span.score))
    return Mention(span.start, span.end, said, key_of(said), TYPES.get(label, label or "entity"), score)
