"""The budgets from which on candidates are in the window that leaves them out or cuts them."""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from conspectus.deferred import dataclass
from conspectus.window.checkpoints import Checkpoint
from conspectus.window.packed_window import Packed

MIN_STEP_TOKENS: Final = 16
STEP_DIVISOR: Final = 64
"""A guess is changed by this part of it at first, and by MIN_STEP_TOKENS tokens at least."""


class FittingTime:
    """A checkpoint that also ends the search for budgets, once that has begun."""

    def __init__(self, checkpoint: Checkpoint, is_over: Callable[[], bool]) -> None:
        self.is_fitting = False
        self._checkpoint = checkpoint
        self._is_over = is_over

    def __call__(self) -> None:
        """Raise what the checkpoint raises, or TimeoutError when the time for the search is over."""
        self._checkpoint()
        if self.is_fitting and self._is_over():
            raise TimeoutError


@dataclass(frozen=True, slots=True)
class FittingBudget:
    """The tokens with which a whole candidate is in the window and with one less is not, if they are known.

    Else it is not in a window of `above` tokens, and more were not tried; without both it is in none, for
    instance because it has the same text as a better one.
    """

    tokens: int | None = None
    above: int | None = None


class BudgetSearch:
    """Finds budgets of candidates by packing; what one candidate shows serves the others.

    The costs of the largest plan, added up in its order, are the first guess.
    """

    def __init__(self, pack: Callable[[int], Packed], allowed: int, maximum: int) -> None:
        self._pack = pack
        self._allowed = allowed
        self._maximum = maximum
        self._tried = [allowed]
        self._complete: dict[int, frozenset[int]] = {allowed: frozenset()}
        self._guess_error = 0

    def budgets(self, ranks: Iterable[int]) -> Mapping[int, FittingBudget]:
        """Return the budgets of ranks that are not whole with the tokens allowed, as far as time allows."""
        tried_ranks, budgets = list(ranks), dict[int, FittingBudget]()
        try:
            largest = self._pack(max(self._maximum, self._allowed))
            self._note(self._maximum, largest)
            guesses = _tokens_by_rank(largest)
            for rank in tried_ranks:
                refusal = largest.plan.refused.get(rank)
                if any(rank in complete for complete in self._complete.values()):
                    budgets[rank] = FittingBudget(self._boundary(rank, guesses.get(rank, self._allowed)))
                elif refusal is not None and not refusal.for_want_of_room:
                    budgets[rank] = FittingBudget()
        except TimeoutError:
            pass
        return {rank: budgets.get(rank) or FittingBudget(above=self._bounds(rank)[0]) for rank in tried_ranks}

    def _boundary(self, rank: int, guess: int) -> int:
        """Return tokens with which the rank is whole, and with one less is not."""
        low, high = self._bounds(rank)
        step, tokens = max(MIN_STEP_TOKENS, guess // STEP_DIVISOR), guess + self._guess_error
        while high - low > 1:
            tokens = min(max(tokens, low + 1), high - 1)
            if self._includes_rank(rank, tokens):
                high, tokens = tokens, tokens - step
            else:
                low, tokens = tokens, tokens + step
            step *= 2
            if high - low < 2 * step:
                tokens = (low + high) // 2
        self._guess_error = high - guess
        return high

    def _bounds(self, rank: int) -> tuple[int, int]:
        """Return the most tokens tried with which a rank is not whole, below the least with which it is."""
        high = next((at for at, tokens in enumerate(self._tried) if rank in self._complete[tokens]), None)
        if high is None:
            return self._tried[-1], self._maximum
        return self._tried[high - 1], self._tried[high]

    def _includes_rank(self, rank: int, tokens: int) -> bool:
        if tokens not in self._complete:
            self._note(tokens, self._pack(tokens))
        return rank in self._complete[tokens]

    def _note(self, tokens: int, packed: Packed) -> None:
        if tokens > self._allowed:
            insort(self._tried, tokens)
            self._complete[tokens] = frozenset(filter(packed.plan.holds_whole, packed.plan.pieces))


def _tokens_by_rank(packed: Packed) -> dict[int, int]:
    """Return the tokens up to each rank of a plan, by its estimates, in the order of selection."""
    total = sum(packed.plan.costs.values())
    tokens, guesses = max(packed.tokens - total, 0), dict[int, int]()
    for rank, cost in packed.plan.costs.items():
        tokens += cost
        guesses[rank] = tokens
    return guesses
