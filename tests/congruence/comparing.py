"""Where two answers to one question differ, and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from conspectus.model.results import Hit

TOP = 10
LOOKED_AT = 60
ROUNDING = 1e-6
Why: TypeAlias = Literal["tie", "rounding", "approximate", "unexplained"]
Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class Agreement:
    """How many entries of the best ten were the same, and how often others were not, by reason."""

    entries: int = 0
    same: int = 0
    reasons: Counter[Why] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The part of all entries that agree."""
        return self.same / max(1, self.entries)

    def add(self, question: object, exact: Sequence[Hit], hits: Sequence[Hit]) -> None:
        """Compare the best ten of one question; both lists may be longer."""
        true = {key_of(hit): hit for hit in exact}
        pairs = list(zip(exact[:TOP], hits[:TOP], strict=False))
        self.entries += max(len(exact[:TOP]), len(hits[:TOP]))
        self.reasons["unexplained"] += abs(len(exact[:TOP]) - len(hits[:TOP]))
        missing = _left_out(exact, hits)
        for expected, other in pairs:
            if key_of(expected) == key_of(other):
                self.same += 1
                continue
            why = _reason(expected, other, true.get(key_of(other)), missing)
            self.reasons[why] += 1
            self.examples.append(f"{why}: {question}: {key_of(expected)} {expected.score} {key_of(other)}")


def key_of(hit: Hit) -> Key:
    """A chunk by the name that its document has in every store."""
    return hit.document.key, hit.chunk.position


def _reason(expected: Hit, other: Hit, true: Hit | None, missing: Sequence[Hit]) -> Why:
    if true is not None and true.score == expected.score:
        return "tie"
    if true is not None and abs(true.score - expected.score) <= ROUNDING:
        return "rounding"
    if missing:
        return "approximate"
    return "unexplained"


def _left_out(exact: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """What a list of vectors that is looked through in part may miss: hits that have no word of the question.

    Each of these is nearer than the farthest that was found, and is not among what was found at all.
    """
    there = {key_of(hit) for hit in hits}
    farthest = min((hit.similarity for hit in hits if hit.similarity is not None), default=1.0)
    return [
        hit
        for hit in exact
        if key_of(hit) not in there and hit.bm25 is None and (hit.similarity or 0.0) >= farthest
    ]
