"""Words of a query that look like a time which the grammar does not read."""

from collections.abc import Iterator, Sequence
from typing import Final

from conspectus.text.late_patterns import re_pattern
from conspectus.time_expressions.tokens import MAX_PARSED_CHARACTERS, Token, split_into_tokens
from conspectus.time_expressions.vocabulary import ENGLISH, Language

_SLASH_DATE: Final = re_pattern(r"(?<![\w/.-])[0-9]{1,4}/[0-9]{1,2}/[0-9]{2,4}(?![\w/])")
_WORDS_BEFORE_AGO: Final = 2


def unread_times(query: str, language: Language = ENGLISH) -> list[str]:
    """Return the phrases of a query that look like times: what is left of it after its times were read."""
    tokens = split_into_tokens(query)
    dates = [match[0] for match in _SLASH_DATE.finditer(query[:MAX_PARSED_CHARACTERS])]
    spans = [*_find_named_periods(tokens, language), *_amounts_ago(tokens, language)]
    return list(dict.fromkeys([*dates, *(query[first.start : last.end] for first, last in spans)]))


def _find_named_periods(tokens: Sequence[Token], language: Language) -> Iterator[tuple[Token, Token]]:
    """Yield `yesterday`, `last fortnight`, `31 February` as first and last token."""
    periods = language.unread_periods | language.weekdays.keys() | language.months.keys()
    for number, token in enumerate(tokens):
        if token.text in language.days:
            yield token, token
        following = tokens[number + 1 : number + 2]
        if token.text in language.period_offsets and following and following[0].text in periods:
            yield token, following[0]
        if token.kind == "number" and following and following[0].text in language.months:
            yield token, following[0]


def _amounts_ago(tokens: Sequence[Token], language: Language) -> Iterator[tuple[Token, Token]]:
    """Yield `ten moons ago` as first and last token."""
    for number, token in enumerate(tokens):
        if number and token.text in language.ago:
            yield tokens[max(number - _WORDS_BEFORE_AGO, 0)], token
