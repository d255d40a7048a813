"""The parts of a token budget: what is beside the window, and the window piece by piece."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from conspectus.model.query import Budget
from conspectus.model.results import (
    PartKind,
    WindowPart,
)
from conspectus.text.clean import clean
from conspectus.window.counting import BORDER, DIVISIBLE
from conspectus.window.packed_window import Packed
from conspectus.window.passages import Layout, WindowPassage
from conspectus.window.render import Renderer

MAX_COUNTED_AGAIN = 100_000
"""Maximum number of characters that are counted again for an end, if a text has no borders."""
Piece = tuple[PartKind, int | None, int]
"""What a piece of the text is, the number of its passage, and where it ends."""


def parts_of(
    packed: Packed, budget: Budget, renderer: Renderer, count: Callable[[str], int]
) -> tuple[WindowPart, ...]:
    """The parts of a budget: what stands beside the window, the window in reading order, and what is left.

    The tokens add up to `budget.max_tokens`, or to what stands beside the window where that is more. A token
    that reaches over a border counts for the part that it begins in, as far as the counter can tell.
    """
    texts: dict[PartKind, str] = {"system": budget.system, "query": budget.query}
    beside = [WindowPart(kind, count(clean(text))) for kind, text in texts.items() if text]
    inside = list(_inside(packed, renderer, count, divisible=budget.tokenizer in DIVISIBLE))
    used = sum(part.tokens for part in (*beside, *inside)) + budget.reserved_tokens
    free = WindowPart("free", max(budget.max_tokens - used, 0))
    reserved = [WindowPart("reserved", budget.reserved_tokens)] if budget.reserved_tokens else []
    return (*beside, *inside, free, *reserved)


def _inside(
    packed: Packed, renderer: Renderer, count: Callable[[str], int], *, divisible: bool
) -> Iterator[WindowPart]:
    text = packed.rendered.text
    pieces = list(_pieces(packed.layout, renderer, len(text))) if text else []
    ends = [end for _, _, end in pieces]
    start, done = 0, 0
    for (kind, number, end), reached in zip(pieces, _count_up_to(text, ends, count, divisible), strict=True):
        last = packed.tokens if end == len(text) else min(max(reached, done), packed.tokens)
        yield WindowPart(kind, last - done, number, start, end)
        start, done = end, last


def _count_up_to(text: str, ends: list[int], count: Callable[[str], int], divisible: bool) -> Iterator[int]:
    """The tokens of the text up to each end; nothing before a border is counted twice.

    Without borders, nothing is counted again that is MAX_COUNTED_AGAIN characters before an end.
    """
    before, border = 0, 0
    for end in ends:
        reached = before + count(text[border:end])
        yield reached
        is_border = divisible and BORDER.match(text, end)
        if is_border or end - border > MAX_COUNTED_AGAIN:
            before, border = reached, end


def _passage_starts(group: Sequence[WindowPassage], renderer: Renderer) -> Iterator[int]:
    """The characters of a rendered group before each passage, and of all; each depends on the one before."""
    length = len(renderer.group(group[:1]))
    yield from (0, length)
    for before, passage in pairwise(group):
        length += len(renderer.group([before, passage])) - len(renderer.group([before]))
        yield length


def _pieces(layout: Layout, renderer: Renderer, length: int) -> Iterator[Piece]:
    """Headers and texts of passages, and the frame around them, without empty ones."""
    cuts: list[Piece] = [("frame", None, 0)]
    at = len(renderer.before)
    for group in layout:
        cuts.append(("frame", None, at))
        begins = list(_passage_starts(group, renderer))
        rendered = renderer.group(group)
        for passage, (first, last) in zip(group, pairwise(begins), strict=True):
            text = renderer.render_text(passage)
            start = rendered.rfind(text, first, last)
            start, end = (last, last) if start < 0 else (start, start + len(text))
            cuts += [("header", passage.number, at + start), ("passage", passage.number, at + end)]
            cuts.append(("frame", None, at + last))
        at += len(rendered) + len(renderer.between)
    cuts.append(("frame", None, length))
    for (*_, start), (kind, number, end) in pairwise(cuts):
        if end > start:
            yield kind, number, end
