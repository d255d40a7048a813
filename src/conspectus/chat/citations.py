"""What an answer cites, held against what the model was given."""

from collections.abc import Iterator, Sequence

import regex

from conspectus.model.chat import ChatSource, Citations
from conspectus.model.records import Json
from conspectus.text.prompt_escaping import marks

_FENCED = regex.compile(
    r"^[ \t]{0,3}(```+|~~~+)[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*[ \t]*$|\Z)", regex.DOTALL | regex.MULTILINE
)
_INLINE = regex.compile(r"(?<!`)(`{1,3})(?!`)[^\n]{1,1000}?(?<!`)\1(?!`)")


def cited(answer: str, sources: Sequence[ChatSource]) -> Citations:
    """The sources that an answer cites, in their order, and the numbers in it that are none of theirs.

    Of a range, every source inside it is cited, and an end that is no source is invented; marks in code
    do not count.
    """
    given = {source.number for source in sources}
    named: set[int] = set()
    invented: dict[int, None] = {}
    for first, last in _spans(answer):
        named |= {number for number in given if first <= number <= last}
        invented |= dict.fromkeys(end for end in (first, last) if end not in given)
    return Citations(tuple(each for each in sources if each.number in named), tuple(map(str, invented)))


def kept(answer: str, sources: Sequence[ChatSource]) -> dict[str, Json]:
    """Metadata for a stored answer: under `citations` what it cites, and nothing that it does not."""
    return {"citations": [_reference(each) for each in cited(answer, sources).cited]}


def _reference(source: ChatSource) -> Json:
    return {
        "number": source.number,
        "document": source.document,
        "key": source.key,
        "start": source.start,
        "end": source.end,
    }


def _spans(answer: str) -> Iterator[tuple[int, int]]:
    prose = answer
    for code in (_FENCED, _INLINE):
        prose = code.sub(" ", prose)
    for mark in marks(prose):
        yield from mark.spans
