"""Pack the best hits into a budget: plan with estimates, render, count and plan again."""

from collections.abc import Callable, Sequence
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.results import Hit
from conspectus.window.checkpoints import Checkpoint, proceed
from conspectus.window.cost_estimate import Estimator
from conspectus.window.counting import Part, RenderingCounter
from conspectus.window.duplicates import Candidate, Refusal
from conspectus.window.packed_window import Beginning, Packed
from conspectus.window.passages import SelectedChunk, WindowPassage, group_pieces, join_passages
from conspectus.window.planner import MIN_FILLED_TOKENS, Planner, Swap, WindowPlan
from conspectus.window.render import Renderer
from conspectus.window.threads import Gaps, Threads

_MAX_RENDERS = 8
_MAX_SWAPS = 4
_MIN_FULL_SHARE = 0.95
_MIN_SWAP_TOKENS = 200


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
            return lambda _: _pack_nothing(hits, beginning, self.renderer)
        candidates = [Candidate(rank, hit) for rank, hit in enumerate(hits)]
        estimator = self.estimator(hits[0])
        return lambda allowed: _pack(_Packer(candidates, allowed, self, estimator, beginning))


def _pack(packer: "_Packer") -> Packed:
    allowed = packer.allowed
    if allowed <= 0:
        return packer.packed_nothing
    best = packer.fit()
    if allowed < _MIN_SWAP_TOKENS or best.plan.complete or packer.is_full(best):
        return best
    selected = sorted(best.plan.pieces)
    swaps = (Swap(frozenset(selected) - {out}, out) for out in reversed(selected[1:][-_MAX_SWAPS:]))
    full = filter(packer.is_full, map(packer.fit, swaps))
    return next((packed for packed in full if packed.quality > best.quality), best)


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
            packed = self._pack_into(room, swap)
            slack = self.allowed - packed.tokens
            if slack >= 0 and (best is None or packed.quality > best.quality):
                best = packed
            if slack >= 0 and (packed.plan.complete or slack <= self._tolerance):
                break
            fits, fails = (max(fits, room), fails) if slack >= 0 else (fits, min(fails, room))
            if fails - fits <= 1:
                break
            change = slack if slack >= 0 else min(slack - packed.plan.count_unused(room), -(1 << attempt))
            room = room + change if fits < room + change < fails else (fits + fails) // 2
        while best is None and room > 0:
            room = min(room, fails) // 2
            packed = self._pack_into(room, swap)
            best = packed if packed.tokens <= self.allowed else None
        return best or self.packed_nothing

    @property
    def packed_nothing(self) -> Packed:
        """A window without any of the candidates."""
        return _pack_nothing(self.candidates, self.begins, self.packing.renderer)

    def is_full(self, packed: Packed) -> bool:
        """Return whether the plan uses enough of the budget."""
        return packed.tokens >= _MIN_FULL_SHARE * self.allowed

    @property
    def _tolerance(self) -> int:
        return max(1, self.allowed // 64)

    def _pack_into(self, room: int, swap: Swap | None) -> Packed:
        min_remainder = min(MIN_FILLED_TOKENS, 1 + self.allowed // 20)
        max_waste = self.allowed // (40 if self.allowed >= _MIN_SWAP_TOKENS else 8)
        gaps = Gaps(self.packing.threads)
        planner = Planner(
            self.costs, max(room, 0), gaps=gaps, min_remainder=min_remainder, max_waste=max_waste
        )
        plan = planner.plan(self.candidates, swap, self.packing.checkpoint)
        begins = self.begins
        layout, groups, number = [*begins.layout], [*begins.parts], begins.next_number
        grouping = tuple(group_pieces(plan.pieces.values()))
        for pieces in grouping:
            self.packing.checkpoint()
            passages, group = self._render_group(pieces, number)
            layout.append(passages)
            groups.append(group)
            number += len(passages)
        rendered = self.packing.renderer.render_window([group.text for group in groups])
        tokens = self.packing.count.tokens(rendered, groups)
        return Packed(
            plan, tuple(layout), rendered, tokens, pieces=(*begins.pieces, *grouping), parts=tuple(groups)
        )

    def _render_group(
        self, pieces: Sequence[SelectedChunk], number: int
    ) -> tuple[tuple[WindowPassage, ...], Part]:
        """Return the rendering of a group, cached for plans that have the group at the same position."""
        key = (number, *((piece.rank, piece.start, piece.stop) for piece in pieces))
        if key not in self.groups:
            passages = join_passages(pieces, number, self.packing.threads)
            chunks = tuple(piece.hit.chunk for piece in pieces)
            self.groups[key] = passages, Part(self.packing.renderer.group(passages), chunks)
        return self.groups[key]


def _pack_nothing(hits: Sequence[object], begins: Beginning, renderer: Renderer) -> Packed:
    plan = WindowPlan(refused=dict.fromkeys(range(len(hits)), Refusal()))
    rendered = renderer.render_window([part.text for part in begins.parts])
    return Packed(plan, begins.layout, rendered, begins.tokens, pieces=begins.pieces, parts=begins.parts)
