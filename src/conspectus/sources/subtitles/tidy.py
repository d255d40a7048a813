"""What is done with the cues of any format: texts that can be stored, times that can be kept, no doubles."""

from collections import Counter
from typing import Final

from conspectus.sources.subtitles.cues import NO_TEXT, Cue, ParsedCues, Time, second_of, video_of
from conspectus.text.clean import clean

LONGEST: Final = 1_000_000 * 3600.0
"""A million hours, in seconds: no recording is longer."""

_REPLACED = "captions with characters that cannot be stored, which were replaced"
_TOO_LATE = "captions with times beyond a million hours, kept without"
_TOO_EARLY = "captions with times before 0, kept at 0"
_NO_START = "captions with an end but no start, kept without times"
_BACKWARDS = "captions that end before they start, kept as instants"
_DOUBLES = "captions that stand twice with the same times, taken once"
_SAME_KEY = "captions whose own keys do not tell them apart, named anew"
_SAME_NUMBER = "captions whose own numbers do not tell them apart, counted anew"


def tidy(reading: ParsedCues) -> None:
    """Keep the cues with text, each once; all of them get a number, and what was done is counted."""
    _name(reading)
    _number(reading)
    kept: list[Cue] = []
    seen: set[tuple[object, ...]] = set()
    for cue in reading.cues:
        _clean(cue, reading.left)
        if not cue.text.strip():
            reading.left[NO_TEXT] += 1
            continue
        cue.start, cue.end = _times(cue.start, cue.end, reading.left)
        same = (cue.track, cue.start, cue.end, cue.speaker, cue.text, cue.key)
        if cue.start is not None and same in seen:
            reading.left[_DOUBLES] += 1
            continue
        seen.add(same)
        kept.append(cue)
    reading.cues = kept


def _number(reading: ParsedCues) -> None:
    """Number them from 1 in each recording, in their order, unless all have numbers of their own."""
    recordings: dict[object, list[Cue]] = {}
    for place, cue in enumerate(reading.cues, 1):
        cue.place = place
        recordings.setdefault(video_of(cue), []).append(cue)
    numbered = [_numbered(cues, reading.left) for cues in recordings.values()]
    reading.numbered = numbered == [True]


def _name(reading: ParsedCues) -> None:
    """Keep the keys of the file where no two are the same."""
    given = [cue.key for cue in reading.cues if cue.key is not None]
    if len(set(given)) < len(given):
        reading.left[_SAME_KEY] += len(given)
        for cue in reading.cues:
            cue.key = None


def _numbered(cues: list[Cue], left: Counter[str]) -> bool:
    given = [cue.number for cue in cues if cue.number is not None]
    if all(cue.key for cue in cues):
        return False
    if given and len(set(given)) == len(cues):
        return True
    left[_SAME_NUMBER] += len(given)
    for number, cue in enumerate(cues, 1):
        cue.number = number
    return False


def _clean(cue: Cue, left: Counter[str]) -> None:
    text, speaker = clean(cue.text), clean(cue.speaker or "") or None
    left[_REPLACED] += text != cue.text or speaker != cue.speaker
    cue.text, cue.speaker = text, speaker
    cue.entities = tuple(map(clean, cue.entities))


def _times(start: Time, end: Time, left: Counter[str]) -> tuple[Time, Time]:
    """Times that a stream's clock can hold, changed as little as that takes."""
    start, end = (_bounded(time, left) for time in (start, end))
    if start is None:
        left[_NO_START] += end is not None
        return None, None
    begins, ends = second_of(start), second_of(end)
    if begins is not None and ends is not None and ends < begins:
        left[_BACKWARDS] += 1
        return start, start
    return start, end


def _bounded(time: Time, left: Counter[str]) -> Time:
    if not isinstance(time, float):
        return time
    if time > LONGEST:
        left[_TOO_LATE] += 1
        return None
    if time < 0:
        left[_TOO_EARLY] += 1
    return max(time, 0.0)
