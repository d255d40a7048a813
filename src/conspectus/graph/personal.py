"""What somebody means by something of their own ("my city"): a name that was said before, or follows."""

from collections.abc import Sequence
from typing import Final

import regex

from conspectus.model.graph import Mention

_OWN: Final = regex.compile(
    r"(?<!\w)my(?:\s+(?:own|all[- ]?time|very|absolute|most|personal))*+"
    r"\s+(?:favou?rites?\s+)?[\p{L}'-]{2,40}+",
    regex.IGNORECASE,
)
_STATED: Final = regex.compile(
    r"[^.!?\n]{0,40}?\b(?:is|are|was|were|be|called|named|would be|has been|have been)\b[^.!?\n]{0,40}"
    r"|\s*[:,(-]?\s*",
    regex.IGNORECASE,
)
_ENDS: Final = regex.compile(r"[.!?\n]")
_MOST: Final = 100


def own(text: str) -> list[tuple[int, int]]:
    """Where a text speaks of something that is the speaker's own."""
    return [found.span() for found in _OWN.finditer(text)][:_MOST]


def meant_by(
    text: str, reference: tuple[int, int], said: Sequence[Mention], earlier: Sequence[Mention] = ()
) -> Mention | None:
    """The name that a reference stands for.

    That is the one it is said to be ("my city is London"), else the nearest before it in the text, else the
    last that was said `earlier`; None where there is none.
    """
    start, end = reference
    after = next((each for each in said if each.start >= end), None)
    if after is not None and _STATED.fullmatch(text, end, after.start):
        return after
    before = [each for each in said if each.end <= start]
    if before and not (after is not None and _ENDS.search(text, before[-1].end, start)):
        return before[-1]
    same = after is not None and not _ENDS.search(text, end, after.start)
    return after if same else before[-1] if before else earlier[-1] if earlier else None
