"""The short term: the last turns of a conversation, by number and by tokens."""

from collections.abc import Sequence

from conspectus.model.memory import Memory, RecentMemory
from conspectus.ports import CountTokens
from conspectus.text.clean import graphemes_prefix, sentence_end_before

MARK = " …"
"""Stands where a turn was cut, and is paid for."""


def recent(
    newest_first: Sequence[Memory], *, turns: int, tokens: int, count: CountTokens
) -> list[RecentMemory]:
    """The last turns that fit, oldest first: at most so many, of at most so many tokens together.

    What came first goes first: behind the first turn that does not fit nothing older stays. One that is
    larger than all of the tokens is cut to what is left of them, with a mark.
    """
    kept: list[RecentMemory] = []
    left = tokens
    for memory in newest_first[: max(turns, 0)]:
        cost = count(memory.text)
        if cost <= left:
            kept.append(RecentMemory(memory, memory.text, cost))
            left -= cost
            continue
        if cost > tokens and left > 0:
            text = _cut(memory.text, left, count)
            if text:
                kept.append(RecentMemory(memory, text, count(text), cut=True))
        break
    return kept[::-1]


def _cut(text: str, tokens: int, count: CountTokens) -> str:
    """The beginning of a text with the mark behind it, at most so many tokens; empty if that is too many."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(graphemes_prefix(text, middle) + MARK) <= tokens:
            low = middle
        else:
            high = middle - 1
    for end in (sentence_end_before(text, low), len(graphemes_prefix(text, low))):
        shown = text[:end].rstrip()
        if shown and count(shown + MARK) <= tokens:
            return shown + MARK
    return ""
