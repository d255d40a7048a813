"""Which candidates go into a room of so many tokens, as far as estimates can say."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from conspectus.model.results import Hit
from conspectus.window.cost_estimate import LEAST_TEXT, Estimator
from conspectus.window.duplicates import SeenTexts
from conspectus.window.passages import SelectedChunk, group_key
from conspectus.window.spans import Spans
from conspectus.window.thread_gaps import Gaps

WORTH_FILLING = 24
_MOST_CUTS_TRIED = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate is out.

    It is blank, or the text of rank `same_as`; or it was `swapped` for others; or it needs more tokens
    than were left.
    """

    same_as: int | None = None
    blank: bool = False
    swapped: bool = False
    needs: int = 0
    left: int = 0

    @property
    def for_want_of_room(self) -> bool:
        """Whether a larger budget would let it in."""
        return self.same_as is None and not self.blank


@dataclass(slots=True)
class WindowPlan:
    """What goes in, by rank; what each of it costs, as far as can be said; and why the rest is out."""

    pieces: dict[int, SelectedChunk] = field(default_factory=dict)
    costs: dict[int, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether nothing was left out for want of room."""
        cut = any(piece.cut for piece in self.pieces.values())
        return not cut and not any(refusal.for_want_of_room for refusal in self.refused.values())


@dataclass(frozen=True, slots=True)
class Swap:
    """Only the ranks in `keep` go in as they are; the room of `out` goes to the best of the others."""

    keep: frozenset[int]
    out: int


class Planner:
    """Fills a room of so many tokens, by estimates. One planner makes one plan.

    A room of less than `worth` tokens is left as it is; `spare` tokens may be wasted on a better cut.
    """

    def __init__(self, costs: Estimator, room: int, *, gaps: Gaps, worth: int, spare: int) -> None:
        self._costs = costs
        self._gaps = gaps
        self._room = room
        self._worth = worth
        self._spare = spare
        self._plan = WindowPlan()
        self._spans: dict[str, Spans] = {}
        self._beside: set[tuple[object, ...]] = set()
        self._shown = SeenTexts()

    def plan(self, hits: Sequence[Hit], swap: Swap | None = None) -> WindowPlan:
        """Take each hit that fits, then cut one that did not to the room that is left."""
        reserved = self._reserve(hits[0])
        self._room -= reserved
        for rank, hit in enumerate(hits):
            if rank == 0 and reserved:
                self._plan.refused[rank] = Refusal(needs=self._price(hit), left=self._room + reserved)
                self._shown.add(rank, hit, whole=False)
            elif swap is not None and rank == swap.out:
                self._plan.refused[rank] = Refusal(swapped=True)
            else:
                self._consider(rank, hit, closed=swap is not None and rank not in swap.keep)
        self._room += reserved
        self._fill(hits)
        return self._plan

    def _reserve(self, best: Hit) -> int:
        if self._price(best) <= self._room:
            return 0
        around = self._head(best) + self._costs.cut_mark
        text = max(WORTH_FILLING, self._room * 3 // 4)
        start, stop = self._costs.part(best, 0, tokens=text, spare=self._spare)
        return min(self._room, around + text) if start < stop else self._room

    def _consider(self, rank: int, hit: Hit, *, closed: bool) -> None:
        same_as = self._shown.rank_of(hit)
        blank = not hit.chunk.text.strip()
        if same_as is not None or blank:
            self._plan.refused[rank] = Refusal(same_as=same_as, blank=blank)
            return
        alone = hit.document.id not in self._spans
        price = self._costs.least(hit)
        if not alone or price <= self._room:
            price = self._price(hit)
        if closed or price > self._room:
            self._plan.refused[rank] = Refusal(needs=price, left=0 if closed else self._room)
            return
        self._take(SelectedChunk(rank, hit, 0, len(hit.chunk.text)), price)
        self._shown.add(rank, hit)

    def _take(self, piece: SelectedChunk, price: int) -> None:
        document, chunk = piece.hit.document, piece.hit.chunk
        self._plan.pieces[piece.rank] = piece
        self._plan.costs[piece.rank] = max(price, 0)
        self._room -= price
        self._spans.setdefault(document.id, Spans()).add(piece.begins, chunk.start + piece.stop)
        self._beside.add(_line_key(piece.hit))
        self._gaps.show(document)

    def _price(self, hit: Hit) -> int:
        chunk, spans = hit.chunk, self._spans.get(hit.document.id)
        text = self._costs.text(hit)
        if spans is not None and chunk.text:
            text = -(-text * spans.fresh(chunk.start, chunk.end) // len(chunk.text))
        return self._head(hit) + text

    def _head(self, hit: Hit) -> int:
        spans = self._spans.get(hit.document.id)
        if spans is None:
            gaps = self._gaps.added_by(hit.document)
            marks = gaps * self._costs.left_out if gaps else 0
            return self._costs.head(hit, beside=_line_key(hit) in self._beside) + marks
        near = spans.near(hit.chunk.start, hit.chunk.end)
        return 0 if near.start < near.stop else self._costs.gap(hit)

    def _fill(self, hits: Sequence[Hit]) -> None:
        refused = self._plan.refused.items()
        skipped = [rank for rank, why in refused if why.for_want_of_room and not why.swapped]
        for rank in skipped[:_MOST_CUTS_TRIED]:
            if self._room < self._worth:
                return
            if self._cut(rank, hits[rank]):
                del self._plan.refused[rank]
                if self._plan.pieces[rank].cut:
                    return

    def _cut(self, rank: int, hit: Hit) -> bool:
        chunk, spans = hit.chunk, self._spans.get(hit.document.id)
        tokens = self._room - self._head(hit) - self._costs.cut_mark
        if tokens < LEAST_TEXT:
            return False
        covered = spans.covered_until(chunk.start) - chunk.start if spans else 0
        start, stop = self._costs.part(hit, covered, tokens=tokens, spare=self._spare)
        if not chunk.text[start:stop].strip():
            return False
        piece = SelectedChunk(rank, hit, start if start > covered else 0, stop)
        self._take(piece, self._room if piece.cut else min(self._room, self._price(hit)))
        return True


def _line_key(hit: Hit) -> tuple[object, ...]:
    document = hit.document
    day = document.occurred.start.date() if document.occurred else None
    return (group_key(document), document.title, day)
