"""The newest turns of a conversation within limits."""

from collections.abc import Sequence

from conspectus.model.memory import (
    Memory,
    RecentMemory,
)
from conspectus.ports import CountTokens
from conspectus.text.graphemes import graphemes_prefix
from conspectus.text.sentences import sentence_end_before

MARK = " …"
"""Marks a truncated turn. Its tokens are counted."""


def recent(
    newest_first: Sequence[Memory], *, turns: int, tokens: int, count: CountTokens
) -> list[RecentMemory]:
    """Return the newest turns within both limits, oldest first.

    The selection stops at the first turn that does not fit. A turn that is larger than all of `tokens` is
    truncated to the tokens left, and marked.
    """
    selection: list[RecentMemory] = []
    left = tokens
    for memory in newest_first[: max(turns, 0)]:
        cost = count(memory.text)
        if cost <= left:
            selection.append(RecentMemory(memory, memory.text, cost))
            left -= cost
            continue
        if cost > tokens and left > 0:
            text = _cut(memory.text, left, count)
            if text:
                selection.append(RecentMemory(memory, text, count(text), cut=True))
        break
    return selection[::-1]


def _cut(text: str, tokens: int, count: CountTokens) -> str:
    """Truncate a text, with the mark, to at most `tokens` tokens; empty if not even that fits."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(graphemes_prefix(text, middle) + MARK) <= tokens:
            low = middle
        else:
            high = middle - 1
    for end in (sentence_end_before(text, low), len(graphemes_prefix(text, low))):
        prefix = text[:end].rstrip()
        if prefix and count(prefix + MARK) <= tokens:
            return prefix + MARK
    return ""
