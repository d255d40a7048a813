"""Expressions of attack patterns, and the letters and symbols that a match needs."""

from typing import Any, NamedTuple

import regex

from conspectus.text.late_patterns import re2_pattern, regex_pattern

_SEPARATORS = r"\s_*`~/\\+\x1e\"'()|-"
_BETWEEN = f"[{_SEPARATORS}]"
"""What may stand between words."""


class _AttackExpression(NamedTuple):
    """A pattern: what the letters of a match hold, or the symbols that it has, and the expression itself."""

    name: str
    expression: regex.Pattern[str]
    letters: str
    by_letters: Any
    symbols: tuple[str, ...]

    def is_possible(self, text: str, only_letters: bytes) -> bool:
        """Return whether a plain text with these letters may match."""
        return (
            any(symbol in text for symbol in self.symbols) or self.by_letters.search(only_letters) is not None
        )


def attack_expression(name: str, letters: str, *expressions: str, symbols: str = "") -> _AttackExpression:
    spaced = "|".join(expressions).replace(" ?", f"{_BETWEEN}*").replace(" ", f"{_BETWEEN}+")
    return _AttackExpression(
        name,
        regex_pattern(spaced),
        letters,
        re2_pattern(letters),
        tuple(filter(None, symbols.split(";"))),
    )


def match_words(most: int) -> str:
    return rf"(?:[^.!?;={_SEPARATORS}]+ ){{0,{most}}}?"
