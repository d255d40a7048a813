"""The sources that an answer cites."""

from collections.abc import Sequence
from itertools import chain

import regex

from conspectus.model.chat import (
    ChatSource,
    Citations,
)
from conspectus.model.records import Json
from conspectus.text.citation_marks import marks
from conspectus.text.late_patterns import regex_pattern

_FENCED = regex_pattern(
    r"^[ \t]{0,3}(```+|~~~+)[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*[ \t]*$|\Z)", regex.DOTALL | regex.MULTILINE
)
_INLINE = regex_pattern(r"(?<!`)(`{1,3})(?!`)[^\n]{1,1000}?(?<!`)\1(?!`)")


def find_citations(answer: str, sources: Sequence[ChatSource]) -> Citations:
    """Return the sources that an answer cites, in order, and the cited numbers without a source.

    A range cites every source in it; its ends are unknown if they have no source. Citations in code are
    ignored.
    """
    source_numbers = {source.number for source in sources}
    named: set[int] = set()
    invented: dict[int, None] = {}
    prose = _INLINE.sub(" ", _FENCED.sub(" ", answer))
    for first, last in chain.from_iterable(mark.spans for mark in marks(prose)):
        named |= {number for number in source_numbers if first <= number <= last}
        invented |= dict.fromkeys(end for end in (first, last) if end not in source_numbers)
    return Citations(tuple(source for source in sources if source.number in named), tuple(map(str, invented)))


def answer_metadata(answer: str, sources: Sequence[ChatSource]) -> dict[str, Json]:
    """Return the metadata of a stored answer, with the cited sources under `citations`."""
    return {"citations": [_reference(source) for source in find_citations(answer, sources).cited]}


def _reference(source: ChatSource) -> Json:
    return {
        "number": source.number,
        "document": source.document,
        "key": source.key,
        "start": source.start,
        "end": source.end,
    }
