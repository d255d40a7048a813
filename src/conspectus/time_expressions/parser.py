"""Parse the time expression of a query: a range of the stream, and the text left to search for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, pairwise
from typing import Final

from conspectus.deferred import dataclass
from conspectus.text.stream_clocks import timecode
from conspectus.time_expressions.clock_face import ClockFace, clamp
from conspectus.time_expressions.grammar import ENGLISH_GRAMMAR, OTHER_GRAMMARS, START
from conspectus.time_expressions.interpreter import Grammar, Parse
from conspectus.time_expressions.points import TimeRange
from conspectus.time_expressions.timeline import Timeline
from conspectus.time_expressions.tokens import Token, split_into_tokens
from conspectus.time_expressions.vocabulary import Language

_MAX_PHRASES: Final = 4
_MAX_ATTEMPTS: Final = 64
_CLOSING: Final = ",.;:?!)]"
_BRACKETS: Final = {"()", "[]"}


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time range [start, end) of a stream that a query names; None is open.

    Args:
        start: the first instant.
        end: the end, not included.
        phrase: the words of the time expression.
        rest: the query without them; empty if no content is left to search for.
        relation: the preposition, such as `before` or `between`.
        unused: other time expressions, which contradict the range.
    """

    start: datetime | None
    end: datetime | None
    phrase: str
    rest: str
    relation: str
    unused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Phrase:
    """The tokens [first, end) of a time expression with its range."""

    first: int
    end: int
    range: TimeRange


def find_time(query: str, face: ClockFace) -> TimeExpression | None:
    """Return the time range that a query names; None if it names none, as "before the explosion".

    Ambiguous expressions are resolved by these rules:

    - `12:30` in a recording is 12 minutes and 30 seconds. It is 12 hours and 30 minutes in a recording of at
      least 12 hours, or if only that position exists. On a wall clock it is a time of day in its zone:
      on the day that is named, else on the last day on which the stream has it. Days and `3 pm` exist on wall
      clocks only. "Monday" is the last Monday of the stream, "today" the day of the query.
    - A point has the precision of its text: a second, a minute, an hour or a day. "Around" adds 30 seconds,
      two minutes, half an hour or a day to both sides. "Minute 12" is what the clock shows as 12.
    - "The last ten minutes" end with the captions, or now if a wall clock is live.
    - "Last week", "this month", "in April", "2024", "two days ago" and "10.03.2025" are calendar periods in
      the zone of the clock. Weeks begin on Monday. A month without a year is the last one of the stream.
    - German, French and Spanish words of days, weeks, months and years are read where English names no time,
      or less of it, as the year of "10. März 2025".
    - Several ranges are intersected. A range that contradicts the first one is listed in `unused`.
    """
    tokens = split_into_tokens(query)
    english = _read_expression(query, tokens, face, ENGLISH_GRAMMAR)
    if not face.wall:
        return english
    words = {token.text for token in tokens}
    for grammar in OTHER_GRAMMARS:
        expression = _read_expression(query, tokens, face, grammar)
        if expression is None or (english is not None and len(expression.phrase) <= len(english.phrase)):
            continue
        if not expression.rest or not words.isdisjoint(grammar.language.evidence):
            return expression
    return english


def _read_expression(
    query: str, tokens: Sequence[Token], face: ClockFace, grammar: Grammar
) -> TimeExpression | None:
    """Return the time range that a query names in one language."""
    phrases = _read_phrases(grammar, tokens, Timeline(face, tokens, None))
    day = next((phrase.range.day for phrase in phrases if phrase.range.day is not None), None)
    if day is not None:
        phrases = _read_phrases(grammar, tokens, Timeline(face, tokens, day))
    return _intersect(query, tokens, phrases, grammar.language) if phrases else None


def describe(expression: TimeExpression, face: ClockFace) -> str:
    """Return the range for users, with the words it was read from: `00:12:00 to 00:13:01 (around 12:30)`."""
    zone = f" {face.clock.zone}" if face.wall else ""
    unused = f", but not {', '.join(expression.unused)}" if expression.unused else ""
    return f"{_format_range(expression, face, zone)} ({expression.phrase}{unused})"


def _format_range(expression: TimeExpression, face: ClockFace, zone: str) -> str:
    start = None if expression.start is None else _format_point(expression.start, face)
    end = None if expression.end is None else _format_point(expression.end, face)
    if end is None:
        return f"from {start}{zone} on"
    if start is None:
        return f"until {end}{zone}"
    day, between, time = end.rpartition(" ")
    return f"{start} to {time if between and start.startswith(day) else end}{zone}"


def _read_phrases(grammar: Grammar, tokens: Sequence[Token], timeline: Timeline) -> list[_Phrase]:
    parse = Parse(grammar, tokens, timeline)
    phrases: list[_Phrase] = []
    end = 0
    openings = (index for index, token in enumerate(tokens) if _may_begin(token, grammar.language))
    for index in islice(openings, _MAX_ATTEMPTS):
        match = parse.read(START, index) if index >= end and len(phrases) < _MAX_PHRASES else None
        if match is not None:
            range_, end = match
            phrases.append(_Phrase(index, end, range_))
    return phrases


def _may_begin(token: Token, language: Language) -> bool:
    """Return quickly whether a time phrase may begin at a token."""
    return token.kind not in {"word", "mark", "dash"} or token.text in language.openers


def _intersect(
    query: str, tokens: Sequence[Token], phrases: Sequence[_Phrase], language: Language
) -> TimeExpression:
    """Intersect the ranges with the first one, as far as they overlap."""
    total, used, unused = phrases[0].range, [phrases[0]], []
    for phrase in phrases[1:]:
        start = max(filter(None, (total.start, phrase.range.start)), default=None)
        end = min(filter(None, (total.end, phrase.range.end)), default=None)
        if start is not None and end is not None and start >= end:
            unused.append(_text_of(query, tokens, phrase))
        else:
            total = replace(total, start=start, end=end)
            used.append(phrase)
    text = ", ".join(_text_of(query, tokens, phrase) for phrase in used)
    relation = ", ".join(phrase.range.relation for phrase in used)
    rest = _remove_phrases(query, tokens, phrases, language)
    return TimeExpression(total.start, total.end, text, rest, relation, tuple(unused))


def _text_of(query: str, tokens: Sequence[Token], phrase: _Phrase) -> str:
    return " ".join(query[tokens[phrase.first].start : tokens[phrase.end - 1].end].split())


def _remove_phrases(
    query: str, tokens: Sequence[Token], phrases: Sequence[_Phrase], language: Language
) -> str:
    """Return the query without the phrases; empty if only words without content are left."""
    cuts = [(tokens[phrase.first].start, tokens[phrase.end - 1].end) for phrase in phrases]
    for before, after in pairwise(phrases):
        between = [token.text for token in tokens[before.end : after.first]]
        if all(text in language.conjunction or text == "," for text in between):
            cuts.append((tokens[before.end - 1].end, tokens[after.first].start))
    rest, last = "", 0
    for start, end in sorted(cuts):
        rest, last = _join_texts(rest, query[last:start]), end
    rest = _join_texts(rest, query[last:]).lstrip(" ,;:").rstrip(" ,;:")
    has_content = any(
        token.kind not in {"mark", "dash"} and token.text not in language.empties
        for token in split_into_tokens(rest)
    )
    return rest if has_content else ""


def _join_texts(before: str, after: str) -> str:
    after = after.strip()
    if before[-1:] + after[:1] in _BRACKETS:
        return _join_texts(before[:-1].rstrip(), after[1:])
    if after[:1] in _CLOSING:
        return before.rstrip(" ,;:") + after
    return f"{before} {after}" if before else after


def _format_point(moment: datetime, face: ClockFace) -> str:
    if not face.wall:
        return timecode(max(face.clock.seconds(clamp(moment)), 0.0))
    local = face.local(moment).replace(tzinfo=None)
    return local.isoformat(sep=" ", timespec="milliseconds" if local.microsecond else "seconds")
