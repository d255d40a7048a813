"""Repair of cues: texts, times, keys and numbers that cannot be stored as they are."""

from collections import Counter
from typing import Final

from conspectus.sources.subtitles.cues import NO_TEXT, Cue, ParsedCues, Time, second_of, video_of
from conspectus.text.clean import clean

MAX_SECONDS: Final = 1_000_000 * 3600.0
"""A million hours in seconds, the longest recording."""

_REPLACED = "captions with characters that cannot be stored, which were replaced"
_TOO_LATE = "captions with times beyond a million hours, kept without times"
_TOO_EARLY = "captions with times before 0, kept at 0"
_NO_START = "captions with an end but no start, kept without times"
_BACKWARDS = "captions that end before they start, kept as instants"
_DOUBLES = "duplicate captions with equal times, kept once"
_SAME_KEY = "captions with ambiguous keys, renamed"
_SAME_NUMBER = "captions with ambiguous numbers, renumbered"


def tidy(reading: ParsedCues) -> None:
    """Keep distinct cues with text, numbered. Every change is counted."""
    _name(reading)
    _number(reading)
    distinct: list[Cue] = []
    seen: set[tuple[object, ...]] = set()
    for cue in reading.cues:
        text, speaker = clean(cue.text), clean(cue.speaker or "") or None
        reading.left[_REPLACED] += text != cue.text or speaker != cue.speaker
        cue.text, cue.speaker = text, speaker
        cue.entities = tuple(map(clean, cue.entities))
        if not cue.text.strip():
            reading.left[NO_TEXT] += 1
            continue
        cue.start, cue.end = _times(cue.start, cue.end, reading.left)
        same = (cue.track, cue.start, cue.end, cue.speaker, cue.text, cue.key)
        if cue.start is not None and same in seen:
            reading.left[_DOUBLES] += 1
            continue
        seen.add(same)
        distinct.append(cue)
    reading.cues = distinct


def _number(reading: ParsedCues) -> None:
    """Number the cues of each recording from 1, unless all have valid numbers of their own."""
    recordings: dict[object, list[Cue]] = {}
    for position, cue in enumerate(reading.cues, 1):
        cue.position = position
        recordings.setdefault(video_of(cue), []).append(cue)
    numbered = [_are_numbered(cues, reading.left) for cues in recordings.values()]
    reading.numbered = numbered == [True]


def _name(reading: ParsedCues) -> None:
    """Keep the keys of the file if they are unique."""
    keys = [cue.key for cue in reading.cues if cue.key is not None]
    if len(set(keys)) < len(keys):
        reading.left[_SAME_KEY] += len(keys)
        for cue in reading.cues:
            cue.key = None


def _are_numbered(cues: list[Cue], skipped: Counter[str]) -> bool:
    numbers = [cue.number for cue in cues if cue.number is not None]
    if all(cue.key for cue in cues):
        return False
    if numbers and len(set(numbers)) == len(cues):
        return True
    skipped[_SAME_NUMBER] += len(numbers)
    for number, cue in enumerate(cues, 1):
        cue.number = number
    return False


def _times(start: Time, end: Time, skipped: Counter[str]) -> tuple[Time, Time]:
    """Clamp times to the range of a stream's clock."""
    start, end = (_limit_time(time, skipped) for time in (start, end))
    if start is None:
        skipped[_NO_START] += end is not None
        return None, None
    begins, ends = second_of(start), second_of(end)
    if begins is not None and ends is not None and ends < begins:
        skipped[_BACKWARDS] += 1
        return start, start
    return start, end


def _limit_time(time: Time, skipped: Counter[str]) -> Time:
    if not isinstance(time, float):
        return time
    if time > MAX_SECONDS:
        skipped[_TOO_LATE] += 1
        return None
    if time < 0:
        skipped[_TOO_EARLY] += 1
    return max(time, 0.0)
