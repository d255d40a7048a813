"""Words of a query that look like a time which the grammar does not read."""

from collections.abc import Iterator, Sequence
from typing import Final

from conspectus.text.late_patterns import re_pattern
from conspectus.time_expressions.other_languages import OTHER_LANGUAGES
from conspectus.time_expressions.tokens import MAX_PARSED_CHARACTERS, Token, split_into_tokens
from conspectus.time_expressions.vocabulary import ENGLISH, Language

_NUMERIC_DATE: Final = re_pattern(
    r"(?<![\w/.-])"
    r"(?:[0-9]{1,4}/[0-9]{1,2}/[0-9]{2,4}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}|[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?![\w/-]|\.[0-9])"
)
_NOTICE: Final = (
    "{!r} looks like a time, but was not read; write it as 2025-03-10 or 'last week', or give a range"
)
_WORDS_BEFORE_AGO: Final = 2
_ORDINAL_MARKS: Final = frozenset({".", "de"})
"""What stands between the number and the name of a month: `31. Februar`, `31 de febrero`."""

_Span = tuple[Token, Token]
"""The first and the last token of a phrase."""


def describe_unread_times(query: str) -> tuple[str, ...]:
    """Return a notice for each phrase of a query that looks like a time which was not read."""
    return tuple(map(_NOTICE.format, unread_times(query)))


def unread_times(query: str) -> list[str]:
    """Return the phrases of a query that look like times: what is left of it after its times were read.

    Other languages are tried where English has no such phrase. A single word, or a number with a month, needs
    another word that tells the language, as "mars" is French for March, unless it is unmistakable.
    """
    tokens = split_into_tokens(query)
    dates = [match[0] for match in _NUMERIC_DATE.finditer(query[:MAX_PARSED_CHARACTERS])]
    spans = [*_find_named_periods(tokens, ENGLISH), *_amounts_ago(tokens, ENGLISH)]
    if not spans:
        spans = _spans_in_other_languages(tokens)
    return list(dict.fromkeys([*dates, *(query[first.start : last.end] for first, last in spans)]))


def _spans_in_other_languages(tokens: Sequence[Token]) -> list[_Span]:
    """Return the phrases of the first language that has some, and of which the query is."""
    words = {token.text for token in tokens}
    for language in OTHER_LANGUAGES:
        spans = [
            *_find_named_periods(tokens, language),
            *_find_trailing_offsets(tokens, language),
            *_find_amounts_back(tokens, language),
        ]
        phrase_words = {token.text for token in tokens if _is_in_spans(token, spans)}
        is_whole_query = words <= phrase_words | language.empties | language.prepositions.keys()
        has_evidence = not words.isdisjoint(language.evidence) or any(map(_tells_language, spans))
        if spans and (is_whole_query or has_evidence):
            return spans
    unmistakable = frozenset().union(*(language.unmistakable for language in OTHER_LANGUAGES))
    return [(token, token) for token in tokens if token.text in unmistakable]


def _find_named_periods(tokens: Sequence[Token], language: Language) -> Iterator[_Span]:
    """Yield `yesterday`, `last fortnight`, `31 February` as first and last token."""
    periods = language.unread_periods | language.weekdays.keys() | language.months.keys()
    for number, token in enumerate(tokens):
        if token.text in language.days:
            yield token, token
        following = tokens[number + 1 : number + 2]
        if token.text in language.period_offsets and following and following[0].text in periods:
            yield token, following[0]
        month = _following_month(tokens, number, language) if token.kind == "number" else None
        if month is not None:
            yield token, month


def _following_month(tokens: Sequence[Token], number: int, language: Language) -> Token | None:
    """Return the name of a month directly after a token, or behind a dot or `de`."""
    following = [token for token in tokens[number + 1 : number + 3] if token.text not in _ORDINAL_MARKS]
    return following[0] if following and following[0].text in language.months else None


def _find_trailing_offsets(tokens: Sequence[Token], language: Language) -> Iterator[_Span]:
    """Yield `l'été dernier`, `verano pasado` as first and last token."""
    periods = language.unread_periods | language.weekdays.keys() | language.months.keys()
    for number, token in enumerate(tokens[:-1]):
        if token.text.rpartition("'")[2] in periods and tokens[number + 1].text in language.period_offsets:
            yield token, tokens[number + 1]


def _amounts_ago(tokens: Sequence[Token], language: Language) -> Iterator[_Span]:
    """Yield `ten moons ago` as first and last token."""
    for number, token in enumerate(tokens):
        if number and token.text in language.ago:
            yield tokens[max(number - _WORDS_BEFORE_AGO, 0)], token


def _find_amounts_back(tokens: Sequence[Token], language: Language) -> Iterator[_Span]:
    """Yield `vor zwei Jahrzehnten`, `il y a deux siècles` as first and last token."""
    for number, token in enumerate(tokens):
        for phrase in language.before_amounts:
            amount = number + len(phrase)
            if tuple(word.text for word in tokens[number:amount]) != phrase or amount + 1 >= len(tokens):
                continue
            is_counted = tokens[amount].kind == "number" or tokens[amount].text in language.numbers
            if is_counted and tokens[amount + 1].text in language.unread_periods:
                yield token, tokens[amount + 1]


def _tells_language(span: _Span) -> bool:
    """Return whether a phrase has two words of one language, as `letzten Sommer`."""
    first, last = span
    return first is not last and first.kind == "word"


def _is_in_spans(token: Token, spans: Sequence[_Span]) -> bool:
    return any(first.start <= token.start <= last.start for first, last in spans)
