"""Plans made to fit: rendered, counted whole, and made again until the budget is used but not passed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conspectus.model.results import Hit
from conspectus.window.cost_estimate import Estimator
from conspectus.window.passages import Layout, arrange
from conspectus.window.render import Rendered, Renderer
from conspectus.window.selection import WORTH_FILLING, Planner, Refusal, Swap, WindowPlan
from conspectus.window.thread_gaps import Gaps, Threads

_MOST_RENDERS = 8
_MOST_SWAPS = 4
_FULL = 0.95
_LEAST_TO_FILL = 200


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan that fits, arranged, rendered and counted."""

    plan: WindowPlan
    layout: Layout
    rendered: Rendered
    tokens: int

    @property
    def worth(self) -> tuple[bool, int]:
        """More of it is better: first the best hit, then tokens."""
        return (0 in self.plan.pieces, self.tokens)


def pack(
    hits: Sequence[Hit],
    allowed: int,
    *,
    renderer: Renderer,
    count: Callable[[str], int],
    estimator: Callable[[Hit], Estimator],
    threads: Threads,
) -> Packed:
    """The best hits that cost at most `allowed` tokens when rendered, everything included.

    Best first, each that fits; the first one that does not is cut to what is left. The best hit of all
    is never given up for others: if it is too large, it is cut to three quarters of the room or more, and the
    others share the rest.

    Args:
        hits: best first.
        allowed: tokens, not negative.
        estimator: makes what knows the costs beforehand, from a sample.
        threads: of these, what is left out is counted and marked, and the marks are paid for.
    """
    if not hits or allowed <= 0:
        return _nothing(hits)
    packer = _Packer(hits, allowed, renderer, count, estimator(hits[0]), threads)
    best = packer.fit()
    if allowed < _LEAST_TO_FILL or best.plan.complete or packer.is_full(best):
        return best
    kept = sorted(best.plan.pieces)
    swaps = (Swap(frozenset(kept) - {out}, out) for out in reversed(kept[1:][-_MOST_SWAPS:]))
    full = filter(packer.is_full, map(packer.fit, swaps))
    return next((packed for packed in full if packed.worth > best.worth), best)


@dataclass(frozen=True, slots=True)
class _Packer:
    hits: Sequence[Hit]
    allowed: int
    renderer: Renderer
    count: Callable[[str], int]
    costs: Estimator
    threads: Threads

    def fit(self, swap: Swap | None = None) -> Packed:
        """Plan by estimates, count what comes out, and plan again with as much more or less room."""
        best: Packed | None = None
        fits, fails = 0, 2 * self.allowed + 1
        room = self.allowed - self.costs.frame
        for attempt in range(_MOST_RENDERS):
            packed = self._packed(room, swap)
            slack = self.allowed - packed.tokens
            if slack >= 0 and (best is None or packed.worth > best.worth):
                best = packed
            if slack >= 0 and (packed.plan.complete or slack <= self._tolerance):
                break
            fits, fails = (max(fits, room), fails) if slack >= 0 else (fits, min(fails, room))
            if fails - fits <= 1:
                break
            wanted = room + (slack if slack >= 0 else min(slack, -(1 << attempt)))
            room = wanted if fits < wanted < fails else (fits + fails) // 2
        while best is None and room > 0:
            room = min(room, fails) // 2
            packed = self._packed(room, swap)
            best = packed if packed.tokens <= self.allowed else None
        return best or _nothing(self.hits)

    def is_full(self, packed: Packed) -> bool:
        """Whether the budget is used as far as it should be where there is enough to say."""
        return packed.tokens >= _FULL * self.allowed

    @property
    def _tolerance(self) -> int:
        return max(1, self.allowed // 64)

    def _packed(self, room: int, swap: Swap | None) -> Packed:
        worth = min(WORTH_FILLING, 1 + self.allowed // 20)
        spare = self.allowed // (40 if self.allowed >= _LEAST_TO_FILL else 8)
        gaps = Gaps(self.threads)
        plan = Planner(self.costs, max(room, 0), gaps=gaps, worth=worth, spare=spare).plan(self.hits, swap)
        layout = arrange(plan.pieces.values(), self.threads)
        rendered = self.renderer.render(layout)
        return Packed(plan, layout, rendered, rendered.tokens(self.count))


def _nothing(hits: Sequence[Hit]) -> Packed:
    return Packed(WindowPlan(refused=dict.fromkeys(range(len(hits)), Refusal())), (), Rendered(), 0)
