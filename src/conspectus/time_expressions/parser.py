"""What a question says about time: a range of the stream, and what is left to search for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice, pairwise
from typing import Final

from conspectus.text.clocks import timecode
from conspectus.time_expressions.clock import ClockFace, bounded
from conspectus.time_expressions.language import ENGLISH, Language
from conspectus.time_expressions.phrases import PhraseReader, TimeRange
from conspectus.time_expressions.points import PointReader
from conspectus.time_expressions.tokens import Words

_MOST_PHRASES: Final = 4
_MOST_ATTEMPTS: Final = 64
_CLOSING: Final = ",.;:?!)]"
_BRACKETS: Final = {"()", "[]"}


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A range of a stream, [start, end) where None is open, as a question says it.

    Args:
        start: its first instant.
        end: where it is over.
        phrase: the words that say so.
        rest: the question without them; empty where that is nothing to search for.
        relation: how they say it, such as `before` or `between`.
        unused: what else is said about time, but cannot be true of the same instant.
    """

    start: datetime | None
    end: datetime | None
    phrase: str
    rest: str
    relation: str
    unused: tuple[str, ...] = ()


def time_said(question: str, face: ClockFace) -> TimeExpression | None:
    """The range of a stream that a question names, or None: what happened "before the explosion" is no time.

    The rules, where there is a choice:

    - `12:30` is 12 minutes and 30 seconds of a recording (of one of 12 hours and more hours and minutes, and
      wherever only the one lies in it, that one). On a wall clock it is a time of day in the clock's zone: on
      the day that is named, else on the last on which the stream has it. Days and `3 pm` are known to wall
      clocks only. "Monday" is the last one that the stream covers, "today" that of the question.
    - A point is as wide as what was said: a second, a minute, an hour, a day. "Around" adds 30 seconds, two
      minutes, half an hour or a day to both sides. "Minute 12" is what the clock shows as 12.
    - "The last ten minutes" go back from the end of the captions, from now where a wall clock is live.
    - Ranges that are said together hold together; one that contradicts the first is named in `unused`.
    """
    words = Words(question)
    found = _phrases(words, face, ENGLISH, None)
    day = next((each.day for each in found if each.day is not None), None)
    if day is not None:
        found = _phrases(words, face, ENGLISH, day)
    return _together(question, words, found, ENGLISH) if found else None


def described(said: TimeExpression, face: ClockFace) -> str:
    """The range for people, with the words that it was read from: `00:12:00 to 00:13:01 (around 12:30)`."""
    zone = f" {face.clock.zone}" if face.wall else ""
    unused = f", but not {', '.join(said.unused)}" if said.unused else ""
    return f"{_range_shown(said, face, zone)} ({said.phrase}{unused})"


def _range_shown(said: TimeExpression, face: ClockFace, zone: str) -> str:
    start = None if said.start is None else _shown(said.start, face)
    end = None if said.end is None else _shown(said.end, face)
    if end is None:
        return f"from {start}{zone} on"
    if start is None:
        return f"until {end}{zone}"
    day, between, time = end.rpartition(" ")
    return f"{start} to {time if between and start.startswith(day) else end}{zone}"


def _phrases(words: Words, face: ClockFace, language: Language, day: date | None) -> list[TimeRange]:
    reader = PhraseReader(words, language, PointReader(words, language, face, day), face)
    found: list[TimeRange] = []
    behind = 0
    for index in islice(filter(reader.may_begin, range(len(words))), _MOST_ATTEMPTS):
        read = reader.read(index) if index >= behind and len(found) < _MOST_PHRASES else None
        if read is not None:
            found.append(read)
            behind = read.last
    return found


def _together(question: str, words: Words, found: Sequence[TimeRange], language: Language) -> TimeExpression:
    """The ranges that hold together with the first."""
    range_, used, unused = found[0], [found[0]], []
    for each in found[1:]:
        start = max(filter(None, (range_.start, each.start)), default=None)
        end = min(filter(None, (range_.end, each.end)), default=None)
        if start is not None and end is not None and start >= end:
            unused.append(_text(question, words, each))
        else:
            range_ = replace(range_, start=start, end=end)
            used.append(each)
    phrase = ", ".join(_text(question, words, each) for each in used)
    relation = ", ".join(each.relation for each in used)
    rest = _without(question, words, found, language)
    return TimeExpression(range_.start, range_.end, phrase, rest, relation, tuple(unused))


def _text(question: str, words: Words, found: TimeRange) -> str:
    return " ".join(question[words[found.first].start : words[found.last - 1].end].split())


def _without(question: str, words: Words, found: Sequence[TimeRange], language: Language) -> str:
    """The question without the phrases; empty where only words are left that say nothing."""
    gone = [(words[each.first].start, words[each.last - 1].end) for each in found]
    for before, after in pairwise(found):
        between = [words.text(index) for index in range(before.last, after.first)]
        if all(text in language.conjunction or text == "," for text in between):
            gone.append((words[before.last - 1].end, words[after.first].start))
    kept, last = "", 0
    for start, end in sorted(gone):
        kept, last = _joined(kept, question[last:start]), end
    rest = _joined(kept, question[last:]).lstrip(" ,;:").rstrip(" ,;:")
    left = Words(rest)
    heard = any(
        left.kind(index) not in {"mark", "dash"} and left.text(index) not in language.empties
        for index in range(len(left))
    )
    return rest if heard else ""


def _joined(before: str, after: str) -> str:
    after = after.strip()
    if before[-1:] + after[:1] in _BRACKETS:
        return _joined(before[:-1].rstrip(), after[1:])
    if after[:1] in _CLOSING:
        return before.rstrip(" ,;:") + after
    return f"{before} {after}" if before else after


def _shown(moment: datetime, face: ClockFace) -> str:
    if not face.wall:
        return timecode(max(face.clock.seconds(bounded(moment)), 0.0))
    local = face.local(moment).replace(tzinfo=None)
    return local.isoformat(sep=" ", timespec="milliseconds" if local.microsecond else "seconds")
