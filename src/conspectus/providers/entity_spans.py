"""Spans that models label, in a text that is read in pieces."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.records import Mention

KeyOf = Callable[[str], str]
"""The form in which names are compared."""
TYPES: Final = {
    "per": "person", "person": "person", "people": "person", "org": "organisation",
    "organization": "organisation", "organisation": "organisation", "company": "organisation",
    "gpe": "place", "loc": "place", "fac": "place", "location": "place", "place": "place", "date": "date",
    "time": "date", "money": "number", "percent": "number", "quantity": "number", "cardinal": "number",
    "ordinal": "number", "work_of_art": "title", "work of art": "title", "title": "title",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labelled:
    """Characters [start, end) of a text with the label of a model."""

    start: int
    end: int
    label: str
    score: float = 1.0


def pieces(text: str, longest: int) -> Iterator[tuple[int, str]]:
    """Split a text into pieces of limited length with their positions, at spaces if there are any."""
    start = 0
    while start < len(text):
        end = min(len(text), start + longest)
        space = text.rfind(" ", start + max(1, longest // 2), end) if end < len(text) else -1
        end = end if space < 0 else space
        yield start, text[start:end]
        start = end


def found_in(text: str, spans: Iterable[Labelled], key_of: KeyOf) -> list[Mention]:
    """Return mentions in order without overlaps, longest first. Spans outside of the text are dropped."""
    inside = [_trim(text, span) for span in spans if 0 <= span.start < span.end <= len(text)]
    separate: list[Labelled] = []
    for span in sorted(inside, key=lambda span: (span.start, -span.end, -span.score)):
        if span.start < span.end and (not separate or span.start >= separate[-1].end):
            separate.append(span)
        elif separate and span.end - span.start > separate[-1].end - separate[-1].start:
            separate[-1] = span
    mentions = (_mention_of(text, span, key_of) for span in separate)
    return [mention for mention in mentions if mention.key]


def _trim(text: str, span: Labelled) -> Labelled:
    label_text = text[span.start : span.end]
    start = span.start + len(label_text) - len(label_text.lstrip())
    return Labelled(start, start + len(label_text.strip()), span.label, span.score)


def _mention_of(text: str, span: Labelled, key_of: KeyOf) -> Mention:
    name = text[span.start : span.end]
    label = span.label.strip().lower()
    score = min(1.0, max(0.0, span.score))
    return Mention(span.start, span.end, name, key_of(name), TYPES.get(label, label or "entity"), score)
