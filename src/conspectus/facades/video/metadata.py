"""Metadata of captions as the engine stores them, and filters on them."""

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from conspectus.ingest.document_fields import storable
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, Not, Or
from conspectus.model.records import Json
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, fits, stable_id

STREAM_KEY: Final = "stream_id"
UNNAMED_STREAM: Final = "unnamed"
"""The stream of documents whose metadata name none."""
WHOLE_VALUES_KEY: Final = "whole values"
"""Metadata key for the text of lists and objects.

It makes them comparable as a whole, while a filter on a list matches any element.
"""
_UNLIMITED: Final = Settings(max_metadata_bytes=sys.maxsize, max_metadata_depth=100)
_CAPTIONS: Final = Eq("kind", "caption")
_NO_CAPTIONS: Final = Not(EVERYTHING)


def to_stored(metadata: Mapping[str, Any]) -> dict[str, Json]:
    """Return metadata in their stored form. Raises InvalidInput for values that are not JSON."""
    json_metadata = to_json_value(metadata)
    comparable: dict[str, Json] = {
        name: _canonical(member) for name, member in json_metadata.items() if isinstance(member, list | dict)
    }
    if comparable:
        return {**json_metadata, WHOLE_VALUES_KEY: comparable}
    return json_metadata


def from_stored(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as the caller supplied them."""
    return {name: value for name, value in metadata.items() if name != WHOLE_VALUES_KEY}


def stream_name(stream_id: object) -> str:
    """Return the name of the source of a stream."""
    if stream_id is None or stream_id == "":
        return UNNAMED_STREAM
    name = clean(stream_id) if isinstance(stream_id, str) else json.dumps(stream_id, sort_keys=True)
    usable = name.strip() and fits(name, NAME_BYTES) and name.isprintable()
    return name if usable else f"stream {stable_id('stream', name)}"


def metadata_filter(filter_metadata: Mapping[str, Any] | None, sources: Mapping[str, str]) -> Filter:
    """Return the filter for captions with exactly these metadata; `sources` maps names of streams to ids.

    It includes captions that were imported otherwise, such as from subtitle files. Raises InvalidInput for a
    value that is not JSON.
    """
    parts: list[Filter] = [_CAPTIONS]
    for name, value in to_json_value(filter_metadata or {}).items():
        parts.append(_match_stream(value, sources) if name == STREAM_KEY else _equals(name, value))
    return And(tuple(parts))


def _match_stream(value: Json, sources: Mapping[str, str]) -> Filter:
    name = stream_name(value)
    if name not in sources:
        return _NO_CAPTIONS
    named = _equals(STREAM_KEY, value)
    if name != UNNAMED_STREAM:
        named = Or((Not(Exists((STREAM_KEY,))), named))
    return And((Eq("source", sources[name]), named))


def _equals(name: str, value: Json) -> Filter:
    if value is None:
        return Not(Exists((name,)))
    if isinstance(value, list | dict):
        return Eq((WHOLE_VALUES_KEY, name), _canonical(value))
    return And((Eq((name,), value), Not(Exists((WHOLE_VALUES_KEY, name)))))


def has_values(metadata: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Return whether metadata have exactly these values; None matches a missing key."""
    return all(_canonical(metadata.get(name)) == _canonical(value) for name, value in expected.items())


def to_json_value(metadata: Mapping[str, Any]) -> dict[str, Json]:
    """Convert metadata to JSON. Times without a time zone keep their form."""
    written = {
        name: member.isoformat() if isinstance(member, datetime) and member.tzinfo is None else member
        for name, member in metadata.items()
    }
    return dict(storable(written, _UNLIMITED))


def _canonical(value: object) -> str:
    """Return the same text for equal values; 1 and 1.0 are equal."""
    same = json.loads(json.dumps(value), parse_float=_number)
    return json.dumps(same, ensure_ascii=False, sort_keys=True)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
