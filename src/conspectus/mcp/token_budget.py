"""The token budget of a result, and pages of items that fit into it."""

from collections.abc import Callable, Sequence

from conspectus.deferred import dataclass
from conspectus.ports import CountTokens
from conspectus.text.graphemes import last_border

MIN_TOKENS = 200
"""The smallest token limit of a result: the size of a receipt or an error."""
CUT_MARK = " […]"
MAX_TOKEN_CHARACTERS = 16
"""At most this number of characters for each token is examined."""
MIN_CUT_TOKENS = 24


def omission_line(number: int) -> str:
    """Return the line that stands for items that did not fit."""
    return f"[{number} more left out: raise max_tokens, or ask for less]"


@dataclass(frozen=True, slots=True)
class ToolBudget:
    """A token limit with its tokenizer."""

    tokens: int
    count: CountTokens

    def holds(self, text: str) -> bool:
        """Return whether a text is within the limit."""
        return len(text) <= self.tokens * MAX_TOKEN_CHARACTERS and self.count(text) <= self.tokens

    def cut(self, text: str) -> str:
        """Cut a text to its beginning with a mark, unless it fits."""
        if self.holds(text):
            return text
        low, high = 0, min(len(text), self.tokens * MAX_TOKEN_CHARACTERS - len(CUT_MARK))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.holds(_cut_at(text, middle)) else (low, middle - 1)
        end = last_border(text, low)
        while end > 0 and not self.holds(_cut_at(text, end)):
            end = last_border(text, end - 1)
        return _cut_at(text, end)


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Items between a head and a foot.

    With `upwards` the first item stands last, as the newest of a conversation does.
    """

    items: Sequence[str]
    head: str = ""
    foot: str = ""
    between: str = "\n\n"
    rest: Callable[[int], str] = omission_line
    upwards: bool = False

    def render(self, items: Sequence[str]) -> str:
        """Render the page with only these items."""
        missing = len(self.items) - len(items)
        omission = [self.rest(missing)] if missing else []
        inner = [*omission, *reversed(items)] if self.upwards else [*items, *omission]
        return self.between.join(filter(None, (self.head, *inner, self.foot)))


def fill_page(page: ResultPage, budget: ToolBudget) -> tuple[str, int]:
    """Fill a page with its first items. Return its text and their number; a single item may be cut."""
    low, high = 0, len(page.items)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if budget.holds(page.render(page.items[:middle])) else (low, middle - 1)
    if low or not page.items:
        return budget.cut(page.render(page.items[:low])), low
    spare = budget.tokens - budget.count(page.render([""]))
    while spare >= MIN_CUT_TOKENS:
        first = page.render([ToolBudget(spare, budget.count).cut(page.items[0])])
        if budget.holds(first):
            return first, 1
        spare -= MIN_CUT_TOKENS // 2
    return budget.cut(page.render([])), 0


def _cut_at(text: str, end: int) -> str:
    return text[:end].rstrip() + CUT_MARK
