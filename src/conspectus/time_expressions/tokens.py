"""The tokens of a query: words, numbers, dates, clock times and marks."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from conspectus.deferred import dataclass
from conspectus.text.late_patterns import re_pattern

TokenKind = Literal["date", "clock", "amount", "number", "dash", "word", "mark"]
MAX_PARSED_CHARACTERS: Final = 2_000
"""Maximum number of characters that are parsed; times after that are not recognized."""

_TOKEN: Final = re_pattern(
    r"""
    (?P<date>(?<![\w./-])[0-3]?[0-9]\.[01]?[0-9]\.[12][0-9]{3}(?![\w:]|[.,][0-9])
        |(?<![\w.-])[12][0-9]{3}(?:-[0-9]{2}){2}
        (?:[Tt\ ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?:\ ?[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?
        (?![\w:]))
    |(?P<clock>(?<![\w:./])[0-9]{1,3}:[0-5][0-9](?::[0-5][0-9])?(?:[.,][0-9]{1,6})?
        (?P<after_clock>[a-z]{2})?(?![\w:/]|\.[0-9]))
    |(?P<amount>(?<![\w.:])(?=[0-9])(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m(?:in)?)?(?:[0-9]{1,6}(?:\.[0-9]{1,3})?s(?:ec)?)?(?!\w))
    |(?P<number>(?<![\w.:/])[0-9]{1,9}(?:\.[0-9]{1,6})?(?P<after_number>[a-z]{1,5})?(?![\w:/]|[.,][0-9]))
    |(?P<dash>[-\u2010-\u2015])
    |(?P<word>(?:avant-hier|après-midi)(?!\w)|\w+(?:['\u2019]\w+)*)
    |(?P<mark>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KINDS: Final[tuple[TokenKind, ...]] = ("word", "number", "clock", "mark", "dash", "date", "amount")


@dataclass(frozen=True, slots=True)
class Token:
    """`text` in lower case without `ending`, the letters directly after a number."""

    kind: TokenKind
    text: str
    ending: str
    start: int
    end: int


def split_into_tokens(query: str) -> Sequence[Token]:
    """Return the tokens of the first characters of a query."""
    return tuple(map(_make_token, _TOKEN.finditer(query[:MAX_PARSED_CHARACTERS])))


def _make_token(match: re.Match[str]) -> Token:
    kind = next(name for name in _KINDS if match[name] is not None)
    ending = (match["after_clock"] or match["after_number"] or "").lower()
    text = match[0].lower().replace("\u2019", "'")
    return Token(kind, text.removesuffix(ending) if ending else text, ending, match.start(), match.end())
