"""Plans made to fit: rendered, counted whole, and made again until the budget is used but not passed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conspectus.model.results import Hit
from conspectus.window.arrange import Layout, arrange
from conspectus.window.estimate import Estimator
from conspectus.window.plan import Plan, Planner, Refusal
from conspectus.window.render import Rendered, Renderer

_MOST_RENDERS = 8
_MOST_SWAPS = 4
_FULL = 0.95


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan that fits, arranged, rendered and counted."""

    plan: Plan
    layout: Layout
    rendered: Rendered
    tokens: int


def pack(
    hits: Sequence[Hit], allowed: int, *, renderer: Renderer, count: Callable[[str], int], counted: bool
) -> Packed:
    """The best hits that cost at most `allowed` tokens when rendered, everything included.

    Best first, each that fits; the first one that does not is cut to what is left. The best hit of all
    is never given up for others: if it is too large, it is cut, and the others share what remains.

    Args:
        hits: best first.
        allowed: tokens, not negative.
        counted: whether the chunks' own token counts are of the same tokenizer as `count`.
    """
    if not hits or allowed <= 0:
        return Packed(Plan(refused={rank: Refusal() for rank in range(len(hits))}), (), Rendered(), 0)
    costs = Estimator(renderer, count, counted=counted, sample=hits[0])
    packer = _Packer(hits, allowed, renderer, count, costs)
    best = packer.fit(frozenset())
    for rank in sorted(best.plan.pieces, reverse=True)[:_MOST_SWAPS]:
        if rank == 0 or best.plan.complete or best.tokens >= _FULL * allowed:
            break
        other = packer.fit(frozenset({rank}))
        best = other if other.tokens > best.tokens else best
    return best


@dataclass(frozen=True, slots=True)
class _Packer:
    hits: Sequence[Hit]
    allowed: int
    renderer: Renderer
    count: Callable[[str], int]
    costs: Estimator

    def fit(self, without: frozenset[int]) -> Packed:
        """Plan by estimates, count what comes out, and plan again with as much more or less room."""
        best: Packed | None = None
        fits, fails = 0, 2 * self.allowed + 1
        room = self.allowed - self.costs.frame
        for _ in range(_MOST_RENDERS):
            packed = self._packed(room, without)
            slack = self.allowed - packed.tokens
            if slack >= 0 and (best is None or packed.tokens > best.tokens):
                best = packed
            if slack >= 0 and (packed.plan.complete or slack <= self._tolerance):
                break
            fits, fails = (max(fits, room), fails) if slack >= 0 else (fits, min(fails, room))
            if fails - fits <= 1:
                break
            room = room + slack if fits < room + slack < fails else (fits + fails) // 2
        while best is None:
            room = min(room, fails) // 2
            packed = self._packed(room, without)
            best = packed if packed.tokens <= self.allowed else None
        return best

    @property
    def _tolerance(self) -> int:
        return max(1, self.allowed // 64)

    def _packed(self, room: int, without: frozenset[int]) -> Packed:
        plan = Planner(self.costs, max(room, 0), self.allowed).plan(self.hits, without)
        layout = arrange(plan.pieces.values())
        rendered = self.renderer.render(layout)
        return Packed(plan, layout, rendered, rendered.tokens(self.count))
