"""A question as words, numbers, times of the clock and dates, each with its place."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

TokenKind = Literal["date", "clock", "amount", "number", "dash", "word", "mark"]
MOST_READ: Final = 2_000
"""Characters of a question that are looked at; what follows is searched for, but holds no times."""

_TOKEN: Final = re.compile(
    r"""
    (?P<date>(?<![\w.-])[12][0-9]{3}(?:-[0-9]{2}){2}
        (?:[Tt\ ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?:\ ?[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?
        (?![\w:]))
    |(?P<clock>(?<![\w:./])[0-9]{1,3}:[0-5][0-9](?::[0-5][0-9])?(?:[.,][0-9]{1,6})?
        (?P<after_clock>[a-z]{2})?(?![\w:/]|\.[0-9]))
    |(?P<amount>(?<![\w.:])(?=[0-9])(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m(?:in)?)?(?:[0-9]{1,6}(?:\.[0-9]{1,3})?s(?:ec)?)?(?!\w))
    |(?P<number>(?<![\w.:/])[0-9]{1,9}(?:\.[0-9]{1,6})?(?P<after_number>[a-z]{1,5})?(?![\w:/]|[.,][0-9]))
    |(?P<dash>[-\u2010-\u2015])
    |(?P<word>\w+(?:['\u2019]\w+)*)
    |(?P<mark>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`text` in lower case, and without `ending`, which are the letters that follow a number at once."""

    kind: TokenKind
    text: str
    ending: str
    start: int
    end: int


class Words:
    """The tokens of a question; beyond the last one there is nothing, and no fault."""

    def __init__(self, question: str) -> None:
        self._tokens: Sequence[Token] = tuple(map(_token, _TOKEN.finditer(question[:MOST_READ])))

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> Token:
        return self._tokens[index]

    def kind(self, index: int) -> TokenKind | None:
        """What stands there."""
        return self._tokens[index].kind if 0 <= index < len(self._tokens) else None

    def text(self, index: int) -> str:
        """The word, number or mark that stands there."""
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def ending(self, index: int) -> str:
        """The letters right behind a number."""
        return self._tokens[index].ending if 0 <= index < len(self._tokens) else ""

    def number(self, index: int) -> float | None:
        """The value of plain digits."""
        plain = self.kind(index) == "number" and not self.ending(index)
        return float(self.text(index)) if plain else None

    def over(self, index: int) -> bool:
        """Whether a sentence, or a part of one, is over before this."""
        return self.kind(index) in {None, "mark"}


def _token(found: re.Match[str]) -> Token:
    kind = next(name for name in _KINDS if found[name] is not None)
    ending = (found["after_clock"] or found["after_number"] or "").lower()
    text = found[0].lower().replace("\u2019", "'")
    return Token(kind, text.removesuffix(ending) if ending else text, ending, found.start(), found.end())


_KINDS: Final[tuple[TokenKind, ...]] = ("word", "number", "clock", "mark", "dash", "date", "amount")
