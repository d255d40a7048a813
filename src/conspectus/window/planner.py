"""Plan a window by estimated costs: which chunks are selected, and why the others are not."""

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.results import Hit
from conspectus.window.checkpoints import Checkpoint, proceed
from conspectus.window.cost_estimate import MIN_TEXT_TOKENS, Estimator
from conspectus.window.duplicates import Candidate, Refusal, SeenTexts
from conspectus.window.passages import MIN_LARGE_TOKENS, SelectedChunk, names_of_successors
from conspectus.window.spans import Spans
from conspectus.window.threads import Gaps

MIN_FILLED_TOKENS = 24
_MAX_CUTS_TRIED = 16


@dataclass(slots=True)
class WindowPlan:
    """The selected chunks by rank with estimated costs, and the reasons for rejecting the others.

    `unmoved` are the ranks of those that stand where they stood in the previous window.
    """

    pieces: dict[int, SelectedChunk] = field(default_factory=dict)
    costs: dict[int, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    unmoved: frozenset[int] = frozenset()

    def count_unused(self, room: int) -> int:
        """Return the tokens of a budget that the plan leaves, by its estimates."""
        return max(room - sum(self.costs.values()), 0)

    def holds_whole(self, rank: int) -> bool:
        """Return whether the whole text of a rank is selected."""
        return rank in self.pieces and not self.pieces[rank].cut

    @property
    def complete(self) -> bool:
        """Whether all candidates fit."""
        cut = any(piece.cut for piece in self.pieces.values())
        return not cut and not any(refusal.for_want_of_room for refusal in self.refused.values())


@dataclass(frozen=True, slots=True)
class Swap:
    """Keeps the ranks in `keep`, and gives the tokens of the ranks in `out` to the best other candidates."""

    keep: frozenset[int]
    out: int


class Planner:
    """Selects chunks for a number of tokens by estimates. One planner makes one plan.

    A remainder below `min_remainder` tokens stays unused. Up to `max_waste` tokens may be wasted for a better
    border of a truncated text.
    """

    def __init__(
        self, costs: Estimator, room: int, *, gaps: Gaps, min_remainder: int, max_waste: int
    ) -> None:
        self._costs = costs
        self._gaps = gaps
        self._room = room
        self._min_remainder = min_remainder
        self._max_waste = max_waste
        self._plan = WindowPlan()
        self._spans: dict[str, Spans] = {}
        self._beside: set[tuple[object, ...]] = set()
        self._texts = SeenTexts()
        self._listed: frozenset[str] = frozenset()

    def plan(
        self, candidates: Sequence[Candidate], swap: Swap | None = None, checkpoint: Checkpoint = proceed
    ) -> WindowPlan:
        """Select each hit that fits, then truncate one of the others to the tokens left."""
        self._listed = frozenset(candidate.hit.document.id for candidate in candidates)
        others = _in_order(candidates[1:], self._room)
        reserved = self._reserve(candidates[0])
        self._room -= reserved
        for candidate in [candidates[0], *others]:
            checkpoint()
            rank = candidate.rank
            if rank == 0 and reserved:
                self._plan.refused[rank] = Refusal(needs=self._price(candidate), left=self._room + reserved)
                self._texts.add(candidate, is_complete=False)
            elif swap is not None and rank == swap.out:
                self._plan.refused[rank] = Refusal(swapped=True)
            else:
                self._consider(candidate, closed=swap is not None and rank not in swap.keep)
        self._room += reserved
        self._fill_rest(candidates)
        return self._plan

    def _reserve(self, candidate: Candidate) -> int:
        if self._price(candidate) <= self._room:
            return 0
        best = candidate.hit
        around = self._head(candidate) + self._costs.cut_mark
        text = max(
            MIN_FILLED_TOKENS, self._room * 3 // 4 if best.document.kind == "page" else self._room // 3
        )
        start, stop = self._costs.part(best, 0, tokens=text, max_waste=self._max_waste)
        return min(self._room, around + text) if start < stop else self._room

    def _consider(self, candidate: Candidate, *, closed: bool) -> None:
        rank, hit = candidate.rank, candidate.hit
        same_as = self._texts.rank_of(candidate)
        if same_as is not None or candidate.blank:
            self._plan.refused[rank] = Refusal(same_as=same_as, blank=candidate.blank)
            return
        alone = hit.document.id not in self._spans
        price = self._costs.least(hit)
        if not alone or price <= self._room:
            price = self._price(candidate)
        if closed or price > self._room:
            self._plan.refused[rank] = Refusal(needs=price, left=0 if closed else self._room)
            return
        near = self._texts.find_near_duplicate(candidate)
        if near is not None:
            self._plan.refused[rank] = near
            return
        if self._waits(candidate):
            self._plan.refused[rank] = _refuse_alone(candidate)
            return
        self._select(candidate, SelectedChunk(rank, hit, 0, len(hit.chunk.text)), price)
        self._texts.add(candidate)

    def _waits(self, candidate: Candidate) -> bool:
        """Return whether the document that supersedes that of a candidate fits nowhere so far."""
        successors = candidate.successors & self._listed
        return bool(successors) and successors.isdisjoint(self._spans)

    def _select(self, candidate: Candidate, piece: SelectedChunk, price: int) -> None:
        document, chunk = piece.hit.document, piece.hit.chunk
        self._plan.pieces[piece.rank] = piece
        self._plan.costs[piece.rank] = max(price, 0)
        self._room -= price
        spans = self._spans.get(document.id)
        if spans is None:
            self._spans[document.id] = Spans([piece.begins], [chunk.start + piece.stop])
        else:
            spans.add(piece.begins, chunk.start + piece.stop)
        self._beside.add(candidate.line)
        self._gaps.show(document)

    def _price(self, candidate: Candidate) -> int:
        chunk, spans = candidate.hit.chunk, self._spans.get(candidate.hit.document.id)
        text = self._costs.text(candidate.hit)
        if spans is not None and chunk.text:
            text = -(-text * spans.count_uncovered(chunk.start, chunk.end) // len(chunk.text))
        return self._head(candidate) + text

    def _head(self, candidate: Candidate) -> int:
        hit = candidate.hit
        spans = self._spans.get(hit.document.id)
        if spans is None:
            gaps = self._gaps.count_added_gaps(hit.document)
            marks = gaps * self._costs.left_out if gaps else 0
            return self._costs.head(hit, beside=candidate.line in self._beside) + marks
        near = spans.find_touching(hit.chunk.start, hit.chunk.end)
        return 0 if near.start < near.stop else self._costs.gap(hit)

    def _fill_rest(self, candidates: Sequence[Candidate]) -> None:
        refused = self._plan.refused.items()
        skipped = [rank for rank, why in refused if why.for_want_of_room and not why.swapped]
        for rank in skipped[:_MAX_CUTS_TRIED]:
            if self._room < self._min_remainder:
                return
            near = self._texts.find_near_duplicate(candidates[rank])
            if self._waits(candidates[rank]):
                self._plan.refused[rank] = _refuse_alone(candidates[rank])
            elif near is not None:
                self._plan.refused[rank] = near
            elif self._select_part(candidates[rank]):
                del self._plan.refused[rank]
                if self._plan.pieces[rank].cut:
                    return

    def _select_part(self, candidate: Candidate) -> bool:
        hit = candidate.hit
        chunk, spans = hit.chunk, self._spans.get(hit.document.id)
        tokens = self._room - self._head(candidate) - self._costs.cut_mark
        if tokens < MIN_TEXT_TOKENS:
            return False
        covered = spans.find_cover_end(chunk.start) - chunk.start if spans else 0
        start, stop = self._costs.part(hit, covered, tokens=tokens, max_waste=self._max_waste)
        if not chunk.text[start:stop].strip():
            return False
        piece = SelectedChunk(candidate.rank, hit, start if start > covered else 0, stop)
        self._select(candidate, piece, self._room if piece.cut else min(self._room, self._price(candidate)))
        return True


def _refuse_alone(candidate: Candidate) -> Refusal:
    return Refusal(without=names_of_successors(candidate.hit))


def _in_order(candidates: Sequence[Candidate], room: int) -> list[Candidate]:
    """Return candidates by their score for the room; a successor stands before what it supersedes."""
    scores = {candidate.rank: score_for_length(candidate.hit, room) for candidate in candidates}
    if any(candidate.successors for candidate in candidates):
        best: dict[str, float] = {}
        for candidate in candidates:
            document = candidate.hit.document.id
            best[document] = max(best.get(document, -math.inf), scores[candidate.rank])
        for candidate in candidates:
            limits = [best[document] for document in candidate.successors if document in best]
            scores[candidate.rank] = min([scores[candidate.rank], *limits])
    return sorted(candidates, key=lambda candidate: (-scores[candidate.rank], candidate.rank))


_TYPICAL_LENGTH: Final = 500
"""Characters of a text whose score is its worth."""
_MORE_LENGTH: Final = 400
"""Added to each length, so that short texts differ little."""
_LENGTH_EXPONENT: Final = 0.25


def score_for_length(hit: Hit, room: int) -> float:
    """Return the score of a hit: less for a long turn with an assistant, and in little room for a long page.

    At 2,000 characters it is 20 % less. What people say to each other keeps its score: there, longer
    messages are evidence more often.
    """
    long_waits = hit.document.assisted or (hit.document.kind == "page" and room < MIN_LARGE_TOKENS)
    if hit.score <= 0 or not long_waits:
        return hit.score
    typical = (_TYPICAL_LENGTH + _MORE_LENGTH) / (len(hit.chunk.text) + _MORE_LENGTH)
    return float(hit.score * typical**_LENGTH_EXPONENT)
