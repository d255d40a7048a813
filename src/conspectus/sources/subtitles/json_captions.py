"""Captions as JSON: YouTube's events, what recognisers of speech write, lists of captions, and JSON Lines."""

from collections.abc import Iterable

from conspectus.sources.json_values import NotJson, items, load, mapping, mappings, text_in
from conspectus.sources.subtitles.cues import NO_TIME, ParsedCues
from conspectus.sources.subtitles.json_items import Item, has_times, item_cue

LISTS = ("captions", "cues", "segments", "transcript", "transcription", "chunks", "subtitles")
_RECOGNISED = frozenset({"segments", "transcription", "chunks"})
_TELLING = ('"segs"', '"start', '"begin"', '"from"', '"timestamp"')
_MORE = "Extra data"
_NO_OBJECT = "items that are no caption, left out"
_NO_JSON = "lines that are not JSON, left out"


def read_json(text: str) -> ParsedCues:
    """The captions of one JSON value, or of one a line. Raises ValueError where it is none, or holds none."""
    try:
        value = load(text)
    except NotJson as error:
        if _MORE in str(error):
            return _lines(text)
        raise ValueError(f"not valid JSON: {error}") from None
    return _whole(value)


def read_json_lines(text: str) -> ParsedCues:
    """A caption for each line; a line alone may hold a list. Raises ValueError without a JSON object."""
    lines = [line for line in text.split("\n") if line.strip()]
    return read_json(text) if len(lines) == 1 else _lines(text)


def _whole(value: object) -> ParsedCues:
    reading = _events(value) or _listed(value)
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
    """Whether a JSON text is captions without doubt, and no other data with texts in them."""
    if not any(name in text for name in _TELLING):
        return False
    try:
        value = load(text)
    except NotJson:
        return False
    if _events(value):
        return True
    found = _list_in(value)[0] or []
    return bool(found) and all(map(has_times, found))


def _events(value: object) -> ParsedCues | None:
    """YouTube's own form: events with pieces of text; those that only break the line are no captions."""
    events = list(mappings(mapping(value).get("events")))
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


def _listed(value: object) -> ParsedCues | None:
    found, name = _list_in(value)
    if found is None:
        return None
    described = mapping(value)
    reading = ParsedCues(
        title=text_in(described, "title").strip(),
        language=text_in(described, "language", "lang", "language_code").strip() or None,
    )
    _take(reading, found, recognised=name in _RECOGNISED)
    return reading


def _list_in(value: object) -> tuple[list[object] | None, str]:
    """The list of captions in a JSON value, or one level deeper, and the name it stands under."""
    if isinstance(value, list):
        return value, ""
    outer = mapping(value)
    for holder in (outer, mapping(outer.get("transcript")), mapping(outer.get("result"))):
        for name in LISTS:
            if any(isinstance(each, dict) for each in items(holder.get(name))):
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
