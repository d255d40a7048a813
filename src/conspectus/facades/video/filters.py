"""Metadata to look for, as filters that the index applies, and metadata as the engine keeps them."""

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from conspectus.ingest.prepare import DocumentLimits, storable
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, Not, Or
from conspectus.model.records import Json
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, fits, stable_id

STREAM: Final = "stream_id"
UNNAMED: Final = "unnamed"
"""The stream of documents whose metadata name none."""
WHOLE: Final = "whole values"
"""Beside lists and objects their text is kept, so that they can be looked for as they are: a filter on a
list would match any of its elements."""
_LIMITS: Final = DocumentLimits(sys.maxsize, sys.maxsize, 100)
_CAPTIONS: Final = Eq("kind", "caption")
_NOTHING: Final = Not(EVERYTHING)


def kept(metadata: Mapping[str, Any]) -> dict[str, Json]:
    """Metadata as they are stored. Raises InvalidInput for what is not JSON."""
    given = plain(metadata)
    whole: dict[str, Json] = {
        name: _canonical(each) for name, each in given.items() if isinstance(each, list | dict)
    }
    return {**given, WHOLE: whole} if whole else given


def told(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as they were given."""
    return {name: value for name, value in metadata.items() if name != WHOLE}


def stream_name(stream_id: object) -> str:
    """The name of the source that keeps a stream."""
    if stream_id is None or stream_id == "":
        return UNNAMED
    name = clean(stream_id) if isinstance(stream_id, str) else json.dumps(stream_id, sort_keys=True)
    usable = name.strip() and fits(name, NAME_BYTES) and name.isprintable()
    return name if usable else f"stream {stable_id('stream', name)}"


def wanted(filter_metadata: Mapping[str, Any] | None, sources: Mapping[str, str]) -> Filter:
    """Captions whose metadata have exactly these values; `sources` are the ids of streams by name.

    Those that the engine has of a stream otherwise, say from a file of subtitles, are of it too. Raises
    InvalidInput for a value that is not JSON.
    """
    parts: list[Filter] = [_CAPTIONS]
    for name, value in plain(filter_metadata or {}).items():
        parts.append(_of_stream(value, sources) if name == STREAM else _equals(name, value))
    return And(tuple(parts))


def of_stream(stream_id: object, sources: Mapping[str, str]) -> Filter:
    """The captions of a stream."""
    return wanted({STREAM: stream_id}, sources)


def _of_stream(value: Json, sources: Mapping[str, str]) -> Filter:
    name = stream_name(value)
    if name not in sources:
        return _NOTHING
    named = _equals(STREAM, value)
    if name != UNNAMED:
        named = Or((Not(Exists((STREAM,))), named))
    return And((Eq("source", sources[name]), named))


def _equals(name: str, value: Json) -> Filter:
    if value is None:
        return Not(Exists((name,)))
    if isinstance(value, list | dict):
        return Eq((WHOLE, name), _canonical(value))
    return And((Eq((name,), value), Not(Exists((WHOLE, name)))))


def has_values(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether metadata have exactly these values; None is where there is none."""
    return all(_canonical(metadata.get(name)) == _canonical(value) for name, value in wanted.items())


def plain(metadata: Mapping[str, Any]) -> dict[str, Json]:
    """JSON; times without a zone stay as they are written."""
    written = {
        name: each.isoformat() if isinstance(each, datetime) and each.tzinfo is None else each
        for name, each in metadata.items()
    }
    return dict(storable(written, _LIMITS))


def _canonical(value: object) -> str:
    """The same text for equal values, be a number written as 1 or as 1.0."""
    same = json.loads(json.dumps(value), parse_float=_number)
    return json.dumps(same, ensure_ascii=False, sort_keys=True)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
