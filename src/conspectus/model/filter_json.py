"""Filters as JSON, both ways, and as `field=value` pairs.

{"field": "kind", "eq": "page"}                         {"field": "metadata.lang", "in": ["de", "fr"]}
{"field": "sequence", "from": 10, "to": 20}             {"field": ["metadata", "a.b"], "exists": true}
{"overlaps": {"from": "2024-05-01T00:00:00+00:00"}}     {"not": F}   {"and": [F, F]}   {"or": [F, F]}

`from` is included, `to` is not, and either may be missing. Instants are written {"time": "ISO 8601"}.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias, assert_never, cast

from conspectus.errors import InvalidInput
from conspectus.model.filter import (
    EVERYTHING,
    FIELDS,
    And,
    Between,
    Eq,
    Exists,
    Field,
    FieldName,
    Filter,
    In,
    Leaf,
    Not,
    Or,
    Overlaps,
    Scalar,
)
from conspectus.model.records import Json

DEEPEST = 32
MOST_PARTS = 1_000
LONGEST = 100_000
METADATA = "metadata"
_FORMS = frozenset({"field", "not", "and", "or", "overlaps"})
Object: TypeAlias = Mapping[str, object]


def filter_to_json(condition: Filter) -> Json:
    """The JSON form of a filter. Raises InvalidInput for numbers that JSON does not have."""
    match condition:
        case Not():
            return {"not": filter_to_json(condition.inner)}
        case And():
            return {"and": [filter_to_json(part) for part in condition.inner]}
        case Or():
            return {"or": [filter_to_json(part) for part in condition.inner]}
        case Overlaps():
            return {"overlaps": {**_bound("from", condition.start), **_bound("to", condition.end)}}
        case _:
            return {"field": _field_to_json(condition.field), **_test_to_json(condition)}


def filter_from_json(value: object) -> Filter:
    """The filter that a JSON value stands for. Raises InvalidInput for anything else, or if it is too big."""
    return _Reading().read(value, 0)


def filter_from_mapping(value: Object) -> Filter:
    """The filter of a mapping: its JSON form, or fields with the value, or the list of values, of each.

    Raises InvalidInput for anything else.
    """
    if value.keys() & _FORMS:
        return filter_from_json(value)
    parts = [
        {"field": name, "in" if isinstance(each, list | tuple) else "eq": each}
        for name, each in value.items()
    ]
    return filter_from_json(parts[0] if len(parts) == 1 else {"and": parts})


def parse_filter(text: str) -> Filter:
    """A filter from JSON text (if it starts with a brace) or from `field=value`. Raises InvalidInput.

    In a pair the value is a JSON scalar where it can be read as one, else a string; `occurred=START..END`
    takes times, of which either may be missing, in UTC if they have no zone.
    """
    if len(text) > LONGEST:
        raise _wrong(f"is longer than {LONGEST} characters")
    if not text.lstrip().startswith("{"):
        return _pair(text)
    try:
        return filter_from_json(json.loads(text))
    except RecursionError:
        raise _wrong("is nested too deeply") from None
    except ValueError as error:
        raise _wrong(f"is not JSON: {error}") from None


def parse_filters(texts: Sequence[str]) -> Filter:
    """All of them together; with none, everything matches."""
    parts = tuple(map(parse_filter, texts))
    return parts[0] if len(parts) == 1 else And(parts) if parts else EVERYTHING


class _Reading:
    """One filter being read, with the number of its parts so far."""

    def __init__(self) -> None:
        self.parts = 0

    def read(self, value: object, depth: int) -> Filter:
        given = _object(value)
        self.count()
        if depth > DEEPEST:
            raise _wrong(f"is nested more than {DEEPEST} deep")
        match sorted(given):
            case ["not"]:
                return Not(self.read(given["not"], depth + 1))
            case ["and"]:
                return And(self.all(given["and"], depth + 1))
            case ["or"]:
                return Or(self.all(given["or"], depth + 1))
            case ["overlaps"]:
                return _overlaps(given["overlaps"])
            case _:
                return self.leaf(given)

    def all(self, value: object, depth: int) -> tuple[Filter, ...]:
        return tuple(self.read(part, depth) for part in _list(value))

    def leaf(self, given: Object) -> Leaf:
        field = _field(given.get("field"))
        match sorted(given.keys() - {"field"}):
            case ["eq"]:
                return Eq(field, _scalar(given["eq"]))
            case ["in"]:
                return In(field, tuple(map(self.scalar, _list(given["in"]))))
            case ["exists"] if given["exists"] is True:
                return Exists(field)
            case ["from"] | ["to"] | ["from", "to"]:
                return Between(field, _optional(given.get("from")), _optional(given.get("to")))
            case _:
                raise _wrong("a field needs one of eq, in, exists (true), from, to")

    def scalar(self, value: object) -> Scalar:
        self.count()
        return _scalar(value)

    def count(self) -> None:
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise _wrong(f"has more than {MOST_PARTS} parts")


def _wrong(reason: str) -> InvalidInput:
    return InvalidInput("where", reason)


def _object(value: object) -> Object:
    if not isinstance(value, Mapping):
        raise _wrong(f"expected an object, not {_shown(value)}")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise _wrong(f"expected a list, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    return f"{value!r:.40}"


def _field(value: object) -> Field:
    if isinstance(value, str) and value in FIELDS:
        return cast(FieldName, value)
    dotted = isinstance(value, str)
    steps = value.split(".") if isinstance(value, str) else value
    if isinstance(steps, list | tuple) and len(steps) > 1 and steps[0] == METADATA:
        path = tuple(step for step in steps[1:] if isinstance(step, str) and (step or not dotted))
        if len(path) == len(steps) - 1:
            return path
    raise _wrong(f"{_shown(value)} is no field; use metadata.KEY or one of {', '.join(sorted(FIELDS))}")


def _scalar(value: object) -> Scalar:
    if isinstance(value, Mapping) and list(value) == ["time"]:
        return _time(value["time"])
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("numbers must be finite")
    if isinstance(value, str | int | float):
        return value
    raise _wrong(f"expected a string, a number, true, false or a time, not {_shown(value)}")


def _optional(value: object) -> Scalar | None:
    return None if value is None else _scalar(value)


def _overlaps(value: object) -> Overlaps:
    given = _object(value)
    if given.keys() - {"from", "to"}:
        raise _wrong("overlaps takes from and to")
    start, end = (None if given.get(name) is None else _time(given[name]) for name in ("from", "to"))
    return Overlaps(start, end)


def _time(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _wrong(f"{_shown(value)} is not an ISO 8601 time with a zone")
    return moment


def _pair(text: str) -> Filter:
    name, equals, value = text.partition("=")
    if not equals:
        raise _wrong(f"{_shown(text)} is neither field=value nor a JSON object")
    field = _field(name.strip())
    if field == "occurred":
        start, dots, end = value.partition("..")
        if not dots:
            raise _wrong("write a span of time as occurred=START..END")
        return Overlaps(_zoned(start), _zoned(end))
    if field == "recorded":
        moment = _zoned(value)
        return Eq(field, moment) if moment else Exists(field)
    return Eq(field, _loose(value))


def _zoned(text: str) -> datetime | None:
    """A time of a pair: without a zone it is UTC, and nothing at all is an open end."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _wrong(f"{_shown(text)} is not an ISO 8601 time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _loose(text: str) -> Scalar:
    try:
        return _scalar(json.loads(text))
    except (ValueError, RecursionError, InvalidInput):
        return text


def _field_to_json(field: Field) -> Json:
    if isinstance(field, str):
        return field
    plain = all(step and "." not in step for step in field)
    return ".".join((METADATA, *field)) if plain else [METADATA, *field]


def _test_to_json(leaf: Eq | In | Between | Exists) -> dict[str, Json]:
    match leaf:
        case Eq():
            return {"eq": _scalar_to_json(leaf.value)}
        case In():
            return {"in": [_scalar_to_json(value) for value in leaf.values]}
        case Exists():
            return {"exists": True}
        case Between():
            low, high = _limit("from", leaf.low), _limit("to", leaf.high)
            return {**low, **high} or {"from": None}
        case _:
            assert_never(leaf)


def _limit(name: str, value: Scalar | None) -> dict[str, Json]:
    return {} if value is None else {name: _scalar_to_json(value)}


def _bound(name: str, moment: datetime | None) -> dict[str, Json]:
    return {} if moment is None else {name: moment.isoformat()}


def _scalar_to_json(value: Scalar) -> Json:
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("numbers must be finite")
    return value
