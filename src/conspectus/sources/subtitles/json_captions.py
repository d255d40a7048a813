"""Captions as JSON: YouTube's events, output of speech recognizers, lists of captions, and JSON Lines."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from math import isinf
from typing import get_args

from conspectus.errors import InvalidInput
from conspectus.model.records import ReadBy
from conspectus.sources.json_values import NotJson, as_mapping, items, load, mappings, text_in
from conspectus.sources.subtitles.cues import NO_TIME, VIDEO, Cue, ParsedCues, Time, is_instant
from conspectus.text.times import canonical, parse_instant, parse_offset

Item = Mapping[str, object]

TEXTS = ("text", "content", "caption", "description", "utf8")
STARTS = ("start", "start_s", "start_time", "startTime", "begin", "from")
ENDS = ("end", "end_s", "end_time", "endTime", "to")
LASTS = ("duration", "dur", "duration_s")
IN_MILLISECONDS: Mapping[str, tuple[str, ...]] = {
    "start": ("start_ms", "startMs", "tStartMs"),
    "end": ("end_ms", "endMs"),
    "last": ("duration_ms", "durationMs", "dDurationMs"),
}
NUMBERS = ("index", "i", "chunk_idx", "chunk_index")
SPEAKERS = ("speaker", "speaker_name")
_SPENT = frozenset(
    {*STARTS, *ENDS, *LASTS, *(name for names in IN_MILLISECONDS.values() for name in names), *NUMBERS}
    | {*SPEAKERS, "entities", "timestamp", "timestamps", "offsets", "words", "tokens"}
    | {"key", "vector", "metadata", "read_by"}
)
_OF_RECOGNISERS = frozenset({
    "id", "seek", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob", "confidence",
})  # fmt: skip


def item_cue(item: Item, *, recognised: bool = False) -> tuple[Cue, bool]:
    """Return the cue, and whether its times are valid. `recognised` drops the confidence of a recognizer."""
    times = _Times(item)
    start, end = times.span()
    text = next((name for name in TEXTS if isinstance(item.get(name), str)), "")
    left = _SPENT | {text} | (_OF_RECOGNISERS if recognised else frozenset())
    metadata = {name: value for name, value in item.items() if name not in left and _is_known(value)}
    metadata.update(as_mapping(item.get("metadata")))
    if VIDEO in metadata:
        metadata[VIDEO] = str(metadata[VIDEO])
    names = tuple(name for name in items(item.get("entities")) if isinstance(name, str))
    value = item.get("vector")
    numbers = [float(number) for number in items(value) if isinstance(number, int | float)]
    cue = Cue(
        start,
        end,
        str(item.get(text, "")),
        text_in(item, *SPEAKERS) or None,
        track=str(metadata.get(VIDEO, "")),
        number=_number(item),
        entities=names,
        metadata=metadata,
        key=text_in(item, "key").strip() or None,
        vector=tuple(numbers) if numbers and len(numbers) == len(items(value)) else None,
        read_by=_read_by(item),
    )
    return cue, times.readable


def _read_by(item: Item) -> ReadBy:
    """Return how the text of a caption was read, if the file says so."""
    return next((way for way in get_args(ReadBy) if way == item.get("read_by")), "text")


def has_times(value: object) -> bool:
    """Return whether an object is certainly a caption: a text, a start, and an end or a duration."""
    item = as_mapping(value)
    start, end = _Times(item).span()
    return start is not None and end is not None and any(isinstance(item.get(name), str) for name in TEXTS)


class _Times:
    """Reads the times of an item. `readable` becomes false if any is invalid."""

    def __init__(self, item: Item) -> None:
        self._item = item
        self.readable = True

    def span(self) -> tuple[Time, Time]:
        pair = items(self._item.get("timestamp"))
        if len(pair) == 2:
            return self._time(pair[0], 1), self._time(pair[1], 1)
        offsets = as_mapping(self._item.get("offsets"))
        if offsets:
            return self._time(offsets.get("from"), 1000), self._time(offsets.get("to"), 1000)
        start = self._first(STARTS, IN_MILLISECONDS["start"])
        end = self._first(ENDS, IN_MILLISECONDS["end"])
        return start, end if end is not None else self._after(start)

    def _after(self, start: Time) -> Time:
        last = self._first(LASTS, IN_MILLISECONDS["last"])
        if start is None or not isinstance(last, float):
            return None
        if isinstance(start, float):
            return round(start + last, 6)
        try:
            return canonical(parse_instant(start) + timedelta(seconds=last))
        except (InvalidInput, OverflowError):
            self.readable = False
            return None

    def _first(self, names: tuple[str, ...], in_milliseconds: tuple[str, ...]) -> Time:
        for name in (*names, *in_milliseconds):
            value = self._item.get(name)
            if value is not None and value != "":
                return self._time(value, 1000 if name in in_milliseconds else 1)
        return None

    def _time(self, value: object, unit: int) -> Time:
        if value is None:
            return None
        if isinstance(value, str) and is_instant(value.strip()):
            return value.strip()
        try:
            return _seconds(value, unit)
        except (InvalidInput, OverflowError):
            self.readable = False
            return None


def _seconds(value: object, unit: int) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput("time", "is neither a number nor a timecode")
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith("-"):
        return -_seconds(text[1:], unit)
    return (parse_offset(text) if isinstance(value, str) else float(value)) / unit


def _is_known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and isinf(value))


def _number(item: Item) -> int | None:
    """Return the item's number, if it is a non-negative integer."""
    number = next((item[name] for name in NUMBERS if name in item), None)
    return (
        number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**53 else None
    )


LISTS = ("captions", "cues", "segments", "transcript", "transcription", "chunks", "subtitles")
_RECOGNISED = frozenset({"segments", "transcription", "chunks"})
_TELLING = ('"segs"', '"start', '"begin"', '"from"', '"timestamp"')
_MORE = "Extra data"
_NO_OBJECT = "items that are not captions, skipped"
_NO_JSON = "lines that are not JSON, skipped"


def read_json(text: str) -> ParsedCues:
    """Return the captions of one JSON value or of JSON Lines. Raises ValueError if there are none."""
    try:
        value = load(text)
    except NotJson as error:
        if _MORE in str(error):
            return _lines(text)
        raise ValueError(f"not valid JSON: {error}") from None
    return _read_value(value)


def read_json_lines(text: str) -> ParsedCues:
    """Return a caption for each line; a single line may contain a list. Raises ValueError."""
    lines = [line for line in text.split("\n") if line.strip()]
    return read_json(text) if len(lines) == 1 else _lines(text)


def _read_value(value: object) -> ParsedCues:
    reading = _events(value) or _read_list(value)
    if reading is None and isinstance(value, dict) and item_cue(value)[0].start is not None:
        reading = ParsedCues()
        _take(reading, [value], recognised=False)
    if reading is None:
        raise ValueError("no list of captions is in this JSON")
    return reading


def _lines(text: str) -> ParsedCues:
    reading = ParsedCues()
    good = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            value = load(line)
        except NotJson:
            reading.left[_NO_JSON] += 1
            continue
        good += isinstance(value, dict)
        _take(reading, [value], recognised=False)
    if not good:
        raise ValueError("no line is a JSON object")
    return reading


def is_captions(text: str) -> bool:
    """Return whether a JSON text certainly contains captions, and not other data with texts."""
    if not any(name in text for name in _TELLING):
        return False
    try:
        value = load(text)
    except NotJson:
        return False
    if _events(value):
        return True
    captions = _list_in(value)[0] or []
    return bool(captions) and all(map(has_times, captions))


def _events(value: object) -> ParsedCues | None:
    """Parse YouTube's events with pieces of text. Events that only break the line are not captions."""
    events = list(mappings(as_mapping(value).get("events")))
    if not any(isinstance(event.get("segs"), list) for event in events):
        return None
    reading = ParsedCues()
    for event in events:
        words = "".join(text_in(piece, "utf8") or _blank(piece) for piece in mappings(event.get("segs")))
        if words.strip():
            times = {name: event.get(name) for name in ("tStartMs", "dDurationMs")}
            _take(reading, [{**times, "text": words.strip()}], recognised=True)
    return reading


def _blank(piece: Item) -> str:
    blank = piece.get("utf8")
    return blank if isinstance(blank, str) else ""


def _read_list(value: object) -> ParsedCues | None:
    captions, name = _list_in(value)
    if captions is None:
        return None
    described = as_mapping(value)
    reading = ParsedCues(
        title=text_in(described, "title").strip(),
        language=text_in(described, "language", "lang", "language_code").strip() or None,
    )
    _take(reading, captions, recognised=name in _RECOGNISED)
    return reading


def _list_in(value: object) -> tuple[list[object] | None, str]:
    """Return the list of captions in a JSON value, up to one level deep, and the name of its member."""
    if isinstance(value, list):
        return value, ""
    outer = as_mapping(value)
    for holder in (outer, as_mapping(outer.get("transcript")), as_mapping(outer.get("result"))):
        for name in LISTS:
            if any(isinstance(caption, dict) for caption in items(holder.get(name))):
                return items(holder[name]), name
    return None, ""


def _take(reading: ParsedCues, values: Iterable[object], *, recognised: bool) -> None:
    for value in values:
        if not isinstance(value, dict):
            reading.left[_NO_OBJECT] += 1
            continue
        cue, readable = item_cue(value, recognised=recognised)
        reading.left[NO_TIME] += not readable
        if cue.key is None:
            cue.text = cue.text.strip()
        reading.cues.append(cue)
