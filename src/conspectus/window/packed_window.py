"""A packed window: a plan that fits, rendered and counted."""

from collections.abc import Sequence

from conspectus.deferred import dataclass
from conspectus.model.results import CachePlan, Hit
from conspectus.text.hashing import content_hash
from conspectus.window.counting import Part
from conspectus.window.passages import Layout, SelectedChunk, in_reading_order
from conspectus.window.planner import WindowPlan
from conspectus.window.render import Rendered

DIGEST_LENGTH = 12
"""Characters of a digest."""


def digest(text: str) -> str:
    """Return a short digest of the rendering of a group."""
    return content_hash(text)[:DIGEST_LENGTH]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The groups at the beginning of a window that are given, with their tokens as a window."""

    pieces: tuple[Sequence[SelectedChunk], ...] = ()
    layout: Layout = ()
    parts: tuple[Part, ...] = ()
    tokens: int = 0

    @property
    def next_number(self) -> int:
        """The number of the passage after them."""
        return 1 + sum(map(len, self.layout))


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan that fits, arranged, rendered and counted; `pieces` and `parts` are those of its groups."""

    plan: WindowPlan
    layout: Layout
    rendered: Rendered
    tokens: int
    pieces: tuple[Sequence[SelectedChunk], ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def quality(self) -> tuple[bool, int]:
        """The quality of a plan: first whether it has the best hit, then its tokens."""
        return (0 in self.plan.pieces, self.tokens)

    @property
    def state(self) -> str:
        """Its chunks by group, in reading order, each group after a digest of its rendering."""
        return ";".join(
            f"{digest(part.text)}:{','.join(map(_chunk_reference, in_reading_order(pieces)))}"
            for part, pieces in zip(self.parts, self.pieces, strict=True)
        )


@dataclass(frozen=True, slots=True)
class WindowResult:
    """A packed window with its candidates, and its cache plan if there is a previous window.

    `unpacked_hits` are lower candidates, which no window of these tokens looks at.
    """

    packed: Packed
    hits: Sequence[Hit]
    plan: CachePlan | None = None
    unpacked_hits: Sequence[Hit] = ()


def _chunk_reference(piece: SelectedChunk) -> str:
    span = f".{piece.start}.{piece.stop}" if piece.cut else ""
    return f"{piece.hit.chunk.id}{span}"
