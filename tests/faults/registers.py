"""Documents as registers: what was done to each, and whether every read fits one order of the writes."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["done", "unknown", "refused"]


@dataclass(frozen=True, slots=True)
class Write:
    """A text that was written, or None for a deletion; an unknown one may be done at any time since."""

    value: str | None
    begun: float
    ended: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Read:
    """What a read returned, None for nothing."""

    value: str | None
    begun: float
    ended: float


@dataclass(slots=True)
class Register:
    """One document. It has one writer, whose writes follow one after the other."""

    writes: list[Write] = field(default_factory=lambda: [Write(None, -1.0, -1.0, "done")])
    reads: list[Read] = field(default_factory=list)

    def faults(self) -> list[Read]:
        """The reads that fit no order: of what was overwritten or refused, or older than one read before."""
        seen: list[tuple[float, int]] = []
        wrong = []
        for read in sorted(self.reads, key=lambda candidate: candidate.begun):
            sure = [position for position, write in enumerate(self.writes) if _is_over(write, read.begun)]
            least = max([*sure, *(position for ended, position in seen if ended < read.begun)])
            fitting = [position for position in range(least, len(self.writes)) if self._fits(read, position)]
            if fitting:
                seen.append((read.ended, fitting[0]))
            else:
                wrong.append(read)
        return wrong

    def _fits(self, read: Read, position: int) -> bool:
        write = self.writes[position]
        return write.value == read.value and write.begun <= read.ended and write.outcome != "refused"


def _is_over(write: Write, at: float) -> bool:
    return write.outcome == "done" and write.ended < at
