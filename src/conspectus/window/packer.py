"""Select the chunks that fit into the budget: plan with estimates, render, count and plan again."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.results import CachePlan, Hit
from conspectus.text.hashing import content_hash
from conspectus.window.checkpoints import Checkpoint, proceed
from conspectus.window.cost_estimate import MIN_TEXT, Estimator
from conspectus.window.counting import Part, RenderingCounter
from conspectus.window.duplicates import Candidate, Refusal, SeenTexts
from conspectus.window.passages import (
    Gaps,
    Layout,
    SelectedChunk,
    Threads,
    WindowPassage,
    grouped,
    in_reading_order,
    joined,
    worth,
)
from conspectus.window.render import Rendered, Renderer

WORTH_FILLING = 24
_MAX_CUTS_TRIED = 16


@dataclass(slots=True)
class WindowPlan:
    """The selected chunks by rank with estimated costs, and the reasons for rejecting the others.

    `kept` are the ranks of those that stand where they stood in the previous window.
    """

    pieces: dict[int, SelectedChunk] = field(default_factory=dict)
    costs: dict[int, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    kept: frozenset[int] = frozenset()

    def unused(self, room: int) -> int:
        """Return the tokens of a budget that the plan leaves, by its estimates."""
        return max(room - sum(self.costs.values()), 0)

    def holds(self, rank: int) -> bool:
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

    A remainder below `worth` tokens stays unused. Up to `spare` tokens may be wasted for a better border of a
    truncated text.
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

    def plan(
        self, candidates: Sequence[Candidate], swap: Swap | None = None, checkpoint: Checkpoint = proceed
    ) -> WindowPlan:
        """Select each hit that fits, then truncate one of the others to the tokens left."""
        others = sorted(candidates[1:], key=lambda candidate: -worth(candidate.hit, self._room))
        reserved = self._reserve(candidates[0])
        self._room -= reserved
        for candidate in [candidates[0], *others]:
            checkpoint()
            rank = candidate.rank
            if rank == 0 and reserved:
                self._plan.refused[rank] = Refusal(needs=self._price(candidate), left=self._room + reserved)
                self._shown.add(candidate, whole=False)
            elif swap is not None and rank == swap.out:
                self._plan.refused[rank] = Refusal(swapped=True)
            else:
                self._consider(candidate, closed=swap is not None and rank not in swap.keep)
        self._room += reserved
        self._fill(candidates)
        return self._plan

    def _reserve(self, candidate: Candidate) -> int:
        if self._price(candidate) <= self._room:
            return 0
        best = candidate.hit
        around = self._head(candidate) + self._costs.cut_mark
        text = max(WORTH_FILLING, self._room * 3 // 4 if best.document.kind == "page" else self._room // 3)
        start, stop = self._costs.part(best, 0, tokens=text, spare=self._spare)
        return min(self._room, around + text) if start < stop else self._room

    def _consider(self, candidate: Candidate, *, closed: bool) -> None:
        rank, hit = candidate.rank, candidate.hit
        same_as = self._shown.rank_of(candidate)
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
        near = self._shown.near(candidate)
        if near is not None:
            self._plan.refused[rank] = near
            return
        self._take(candidate, SelectedChunk(rank, hit, 0, len(hit.chunk.text)), price)
        self._shown.add(candidate)

    def _take(self, candidate: Candidate, piece: SelectedChunk, price: int) -> None:
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
            text = -(-text * spans.fresh(chunk.start, chunk.end) // len(chunk.text))
        return self._head(candidate) + text

    def _head(self, candidate: Candidate) -> int:
        hit = candidate.hit
        spans = self._spans.get(hit.document.id)
        if spans is None:
            gaps = self._gaps.added_by(hit.document)
            marks = gaps * self._costs.left_out if gaps else 0
            return self._costs.head(hit, beside=candidate.line in self._beside) + marks
        near = spans.near(hit.chunk.start, hit.chunk.end)
        return 0 if near.start < near.stop else self._costs.gap(hit)

    def _fill(self, candidates: Sequence[Candidate]) -> None:
        refused = self._plan.refused.items()
        skipped = [rank for rank, why in refused if why.for_want_of_room and not why.swapped]
        for rank in skipped[:_MAX_CUTS_TRIED]:
            if self._room < self._worth:
                return
            near = self._shown.near(candidates[rank])
            if near is not None:
                self._plan.refused[rank] = near
            elif self._cut(candidates[rank]):
                del self._plan.refused[rank]
                if self._plan.pieces[rank].cut:
                    return

    def _cut(self, candidate: Candidate) -> bool:
        hit = candidate.hit
        chunk, spans = hit.chunk, self._spans.get(hit.document.id)
        tokens = self._room - self._head(candidate) - self._costs.cut_mark
        if tokens < MIN_TEXT:
            return False
        covered = spans.covered_until(chunk.start) - chunk.start if spans else 0
        start, stop = self._costs.part(hit, covered, tokens=tokens, spare=self._spare)
        if not chunk.text[start:stop].strip():
            return False
        piece = SelectedChunk(candidate.rank, hit, start if start > covered else 0, stop)
        self._take(candidate, piece, self._room if piece.cut else min(self._room, self._price(candidate)))
        return True


_MAX_RENDERS = 8
_MAX_SWAPS = 4
_FULL = 0.95
_MIN_FILL = 200


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
    def worth(self) -> tuple[bool, int]:
        """The quality of a plan: first whether it has the best hit, then its tokens."""
        return (0 in self.plan.pieces, self.tokens)

    @property
    def state(self) -> str:
        """Its chunks by group, in reading order, each group after a digest of its rendering."""
        return ";".join(
            f"{digest(part.text)}:{','.join(map(_named, in_reading_order(pieces)))}"
            for part, pieces in zip(self.parts, self.pieces, strict=True)
        )


DIGEST = 12
"""The characters of a digest."""


def digest(text: str) -> str:
    """Return a short digest of the rendering of a group."""
    return content_hash(text)[:DIGEST]


def _named(piece: SelectedChunk) -> str:
    span = f".{piece.start}.{piece.stop}" if piece.cut else ""
    return f"{piece.hit.chunk.id}{span}"


@dataclass(frozen=True, slots=True)
class Made:
    """A packed window with all of its candidates, and its cache plan if there is a previous window."""

    packed: Packed
    hits: Sequence[Hit]
    plan: CachePlan | None = None


@dataclass(frozen=True, slots=True)
class Packing:
    """How a window is packed and counted.

    `estimator` makes the cost estimate from a sample. The omitted messages of `threads` are counted and
    marked; the marks use tokens.
    """

    renderer: Renderer
    count: RenderingCounter
    estimator: Callable[[Hit], Estimator]
    threads: Threads
    checkpoint: Checkpoint = proceed

    def pack(self, hits: Sequence[Hit], beginning: Beginning) -> Callable[[int], Packed]:
        """Return a function that packs the best hits into so many tokens of rendered text, at most.

        Hits that fit are added, best first, after the groups of the beginning. The first hit that does not
        fit is truncated to the tokens left. The best hit is never dropped for others. If it is too large, it
        is truncated to at least three quarters of the budget (a message to a third), and the others share the
        rest.
        """
        if not hits:
            return lambda _: _nothing(hits, beginning, self.renderer)
        candidates = [Candidate(rank, hit) for rank, hit in enumerate(hits)]
        estimator = self.estimator(hits[0])
        return lambda allowed: _pack(_Packer(candidates, allowed, self, estimator, beginning))


def _pack(packer: "_Packer") -> Packed:
    allowed = packer.allowed
    if allowed <= 0:
        return packer.nothing
    best = packer.fit()
    if allowed < _MIN_FILL or best.plan.complete or packer.is_full(best):
        return best
    kept = sorted(best.plan.pieces)
    swaps = (Swap(frozenset(kept) - {out}, out) for out in reversed(kept[1:][-_MAX_SWAPS:]))
    full = filter(packer.is_full, map(packer.fit, swaps))
    return next((packed for packed in full if packed.worth > best.worth), best)


@dataclass(frozen=True, slots=True)
class _Packer:
    candidates: Sequence[Candidate]
    allowed: int
    packing: Packing
    costs: Estimator
    begins: Beginning
    groups: dict[tuple[object, ...], tuple[tuple[WindowPassage, ...], Part]] = field(default_factory=dict)

    def fit(self, swap: Swap | None = None) -> Packed:
        """Plan with estimates, count the rendered text, and plan again with a corrected budget."""
        best: Packed | None = None
        fits, fails = 0, 2 * self.allowed + 1
        room = self.allowed - (self.begins.tokens or self.costs.frame)
        for attempt in range(_MAX_RENDERS):
            packed = self._packed(room, swap)
            slack = self.allowed - packed.tokens
            if slack >= 0 and (best is None or packed.worth > best.worth):
                best = packed
            if slack >= 0 and (packed.plan.complete or slack <= self._tolerance):
                break
            fits, fails = (max(fits, room), fails) if slack >= 0 else (fits, min(fails, room))
            if fails - fits <= 1:
                break
            wanted = room + (slack if slack >= 0 else min(slack - packed.plan.unused(room), -(1 << attempt)))
            room = wanted if fits < wanted < fails else (fits + fails) // 2
        while best is None and room > 0:
            room = min(room, fails) // 2
            packed = self._packed(room, swap)
            best = packed if packed.tokens <= self.allowed else None
        return best or self.nothing

    @property
    def nothing(self) -> Packed:
        """A window without any of the candidates."""
        return _nothing(self.candidates, self.begins, self.packing.renderer)

    def is_full(self, packed: Packed) -> bool:
        """Return whether the plan uses enough of the budget."""
        return packed.tokens >= _FULL * self.allowed

    @property
    def _tolerance(self) -> int:
        return max(1, self.allowed // 64)

    def _packed(self, room: int, swap: Swap | None) -> Packed:
        worth = min(WORTH_FILLING, 1 + self.allowed // 20)
        spare = self.allowed // (40 if self.allowed >= _MIN_FILL else 8)
        gaps = Gaps(self.packing.threads)
        planner = Planner(self.costs, max(room, 0), gaps=gaps, worth=worth, spare=spare)
        plan = planner.plan(self.candidates, swap, self.packing.checkpoint)
        begins = self.begins
        layout, groups, number = [*begins.layout], [*begins.parts], begins.next_number
        grouping = tuple(grouped(plan.pieces.values()))
        for pieces in grouping:
            self.packing.checkpoint()
            passages, group = self._group(pieces, number)
            layout.append(passages)
            groups.append(group)
            number += len(passages)
        rendered = self.packing.renderer.whole([group.text for group in groups])
        tokens = self.packing.count.tokens(rendered, groups)
        return Packed(
            plan, tuple(layout), rendered, tokens, pieces=(*begins.pieces, *grouping), parts=tuple(groups)
        )

    def _group(self, pieces: Sequence[SelectedChunk], number: int) -> tuple[tuple[WindowPassage, ...], Part]:
        """Return the rendering of a group, cached for plans that have the group at the same position."""
        key = (number, *((piece.rank, piece.start, piece.stop) for piece in pieces))
        if key not in self.groups:
            passages = joined(pieces, number, self.packing.threads)
            chunks = tuple(piece.hit.chunk for piece in pieces)
            self.groups[key] = passages, Part(self.packing.renderer.group(passages), chunks)
        return self.groups[key]


def _nothing(hits: Sequence[object], begins: Beginning, renderer: Renderer) -> Packed:
    plan = WindowPlan(refused=dict.fromkeys(range(len(hits)), Refusal()))
    rendered = renderer.whole([part.text for part in begins.parts])
    return Packed(plan, begins.layout, rendered, begins.tokens, pieces=begins.pieces, parts=begins.parts)


@dataclass(slots=True)
class Spans:
    """A set of half-open spans, ascending, that neither overlap nor touch."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def near(self, start: int, end: int) -> slice:
        """Return the spans that overlap or touch [start, end)."""
        first = bisect_left(self.ends, start)
        last = first
        while last < len(self.starts) and self.starts[last] <= end:
            last += 1
        return slice(first, last)

    def fresh(self, start: int, end: int) -> int:
        """Return the number of characters of [start, end) that no span covers."""
        near = self.near(start, end)
        covered = zip(self.starts[near], self.ends[near], strict=True)
        return end - start - sum(min(e, end) - max(s, start) for s, e in covered)

    def covered_until(self, start: int) -> int:
        """Return the end of the span that covers or touches a position, or else the position."""
        index = bisect_left(self.ends, start)
        inside = index < len(self.starts) and self.starts[index] <= start
        return self.ends[index] if inside else start

    def add(self, start: int, end: int) -> None:
        """Add a span and merge it with spans that it overlaps or touches."""
        near = self.near(start, end)
        if near.start < near.stop:
            start, end = min(start, self.starts[near.start]), max(end, self.ends[near.stop - 1])
        self.starts[near] = [start]
        self.ends[near] = [end]
