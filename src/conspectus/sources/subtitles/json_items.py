"""One caption as a JSON object: which of its fields is the text, which are times, and in what unit."""

from collections.abc import Mapping
from datetime import timedelta
from math import isinf

from conspectus.errors import InvalidInput
from conspectus.sources.json_values import items, mapping, text_in
from conspectus.sources.subtitles.cues import VIDEO, Cue, Time, is_instant
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
    | {"key", "vector", "metadata"}
)
_OF_RECOGNISERS = frozenset({
    "id", "seek", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob", "confidence",
})  # fmt: skip


def item_cue(item: Item, *, recognised: bool = False) -> tuple[Cue, bool]:
    """The cue, and whether its times could be read; `recognised` leaves out how sure a recogniser was."""
    times = _Times(item)
    start, end = times.span()
    text = next((name for name in TEXTS if isinstance(item.get(name), str)), "")
    left = _SPENT | {text} | (_OF_RECOGNISERS if recognised else frozenset())
    metadata = {name: value for name, value in item.items() if name not in left and _is_known(value)}
    metadata.update(mapping(item.get("metadata")))
    if VIDEO in metadata:
        metadata[VIDEO] = str(metadata[VIDEO])
    names = tuple(name for name in items(item.get("entities")) if isinstance(name, str))
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
        vector=_vector(item.get("vector")),
    )
    return cue, times.readable


def has_times(value: object) -> bool:
    """Whether an object is a caption without doubt: a text, a start, and an end or a duration."""
    item = mapping(value)
    start, end = _Times(item).span()
    return start is not None and end is not None and any(isinstance(item.get(name), str) for name in TEXTS)


class _Times:
    """The times of an item; `readable` turns false where something stands in them that is no time."""

    def __init__(self, item: Item) -> None:
        self._item = item
        self.readable = True

    def span(self) -> tuple[Time, Time]:
        pair = items(self._item.get("timestamp"))
        if len(pair) == 2:
            return self._time(pair[0], 1), self._time(pair[1], 1)
        offsets = mapping(self._item.get("offsets"))
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


def _vector(value: object) -> tuple[float, ...] | None:
    numbers = [float(each) for each in items(value) if isinstance(each, int | float)]
    return tuple(numbers) if numbers and len(numbers) == len(items(value)) else None


def _number(item: Item) -> int | None:
    """Its number where the item has one: whole, and not below 0."""
    found = next((item[name] for name in NUMBERS if name in item), None)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**53 else None
