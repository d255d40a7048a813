"""Filters in JSON, as text, and as mappings of fields to values."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, assert_never, cast

from conspectus.errors import InvalidInput
from conspectus.model.filter import (
    EVERYTHING,
    FIELDS,
    And,
    Between,
    Contains,
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
from conspectus.model.filter_operands import MetadataPath
from conspectus.model.records import Json

DEEPEST = 32
MAX_PARTS = 1_000
MAX_FILTER_LENGTH = 100_000
METADATA = "metadata"
_NUMBER_FIELDS = frozenset({"sequence", "position"})
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
    """Parse the JSON form of a filter. Raises InvalidInput, also if it is too large."""
    return _Reading().read(value, 0)


def filter_from_mapping(value: Object) -> Filter:
    """Parse a mapping: the JSON form of a filter, or fields with a value or a list of values.

    Raises InvalidInput for anything else.
    """
    if value.keys() & _FORMS:
        return filter_from_json(value)
    parts = [
        {"field": name, "in" if isinstance(operand, list | tuple) else "eq": operand}
        for name, operand in value.items()
    ]
    return filter_from_json(parts[0] if len(parts) == 1 else {"and": parts})


def parse_filter(text: str) -> Filter:
    """A filter from JSON text (if it starts with a brace) or from `field=value`. Raises InvalidInput.

    In a pair the value is a JSON scalar where it can be read as one, else a string, and always a string
    where the field is a text. `START..END` of numbers or ISO 8601 times is a range without its end, and
    either may be missing; times are in UTC if they have no zone. `occurred` and `recorded` take times only.
    `field~=part` selects texts that contain a part.
    """
    if len(text) > MAX_FILTER_LENGTH:
        raise _wrong(f"is longer than {MAX_FILTER_LENGTH} characters")
    if not text.lstrip().startswith("{"):
        return _pair(text)
    try:
        return filter_from_json(json.loads(text))
    except RecursionError:
        raise _wrong("is nested too deeply") from None
    except ValueError as error:
        raise _wrong(f"is not JSON: {error}") from None


def parse_filters(texts: Sequence[str]) -> Filter:
    """Combine filters with `and`; without any, everything matches."""
    parts = tuple(map(parse_filter, texts))
    if len(parts) == 1:
        return parts[0]
    return And(parts) if parts else EVERYTHING


class _Reading:
    """The parser of one filter, with the number of its parts so far."""

    def __init__(self) -> None:
        self.parts = 0

    def read(self, value: object, depth: int) -> Filter:
        operators = _object(value)
        self.count()
        if depth > DEEPEST:
            raise _wrong(f"is nested more than {DEEPEST} deep")
        match sorted(operators):
            case ["not"]:
                return Not(self.read(operators["not"], depth + 1))
            case ["and"]:
                return And(self.all(operators["and"], depth + 1))
            case ["or"]:
                return Or(self.all(operators["or"], depth + 1))
            case ["overlaps"]:
                return _overlaps(operators["overlaps"])
            case _:
                return self.leaf(operators)

    def all(self, value: object, depth: int) -> tuple[Filter, ...]:
        return tuple(self.read(part, depth) for part in _list(value))

    def leaf(self, operators: Object) -> Leaf:
        field = _field(operators.get("field"))
        match sorted(operators.keys() - {"field"}):
            case ["eq"]:
                return Eq(field, _scalar(operators["eq"]))
            case ["in"]:
                return In(field, tuple(map(self.scalar, _list(operators["in"]))))
            case ["exists"] if operators["exists"] is True:
                return Exists(field)
            case ["contains"]:
                return Contains(field, _require_text(operators["contains"]))
            case ["from"] | ["to"] | ["from", "to"]:
                return Between(field, _optional(operators.get("from")), _optional(operators.get("to")))
            case _:
                raise _wrong("a field needs one of eq, in, contains, exists (true), from, to")

    def scalar(self, value: object) -> Scalar:
        self.count()
        return _scalar(value)

    def count(self) -> None:
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise _wrong(f"has more than {MAX_PARTS} parts")


def _wrong(reason: str) -> InvalidInput:
    return InvalidInput("filter", reason)


def _object(value: object) -> Object:
    if not isinstance(value, Mapping):
        raise _wrong(f"expected an object, not {_preview(value)}")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise _wrong(f"expected a list, not {_preview(value)}")
    return value


def _preview(value: object) -> str:
    return f"{value!r:.40}"


def _field(value: object) -> Field:
    if isinstance(value, str) and value in FIELDS:
        return cast(FieldName, value)
    dotted = isinstance(value, str)
    steps = value.split(".") if isinstance(value, str) else value
    if isinstance(steps, list | tuple) and len(steps) > 1 and steps[0] == METADATA:
        path = tuple(step for step in steps[1:] if isinstance(step, str) and (step or not dotted))
        if len(path) == len(steps) - 1:
            return MetadataPath(path)
    raise _wrong(f"{_preview(value)} is not a field; use metadata.KEY or one of {', '.join(sorted(FIELDS))}")


def _scalar(value: object) -> Scalar:
    if isinstance(value, Mapping) and list(value) == ["time"]:
        return _time(value["time"])
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("numbers must be finite")
    if isinstance(value, str | int | float):
        return value
    raise _wrong(f"expected a string, a number, true, false or a time, not {_preview(value)}")


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(f"contains takes a text, not {_preview(value)}")
    return value


def _optional(value: object) -> Scalar | None:
    return None if value is None else _scalar(value)


def _overlaps(value: object) -> Overlaps:
    operators = _object(value)
    if operators.keys() - {"from", "to"}:
        raise _wrong("overlaps takes from and to")
    start, end = (None if operators.get(name) is None else _time(operators[name]) for name in ("from", "to"))
    return Overlaps(start, end)


def _time(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _wrong(f"{_preview(value)} is not an ISO 8601 time with a zone")
    return moment


def _pair(text: str) -> Filter:
    name, equals, value = text.partition("=")
    if not equals:
        raise _wrong(f"{_preview(text)} is neither field=value nor a JSON object")
    name = name.strip()
    if name.endswith("~"):
        return Contains(_field(name[:-1].strip()), value.strip())
    field = _field(name)
    if field == "occurred":
        start, dots, end = value.partition("..")
        if not dots:
            raise _wrong("write a span of time as occurred=START..END")
        return Overlaps(_parse_time(start), _parse_time(end))
    if field == "recorded":
        start, dots, end = value.partition("..")
        if dots:
            return Between(field, _parse_time(start), _parse_time(end))
        moment = _parse_time(value)
        return Eq(field, moment) if moment else Exists(field)
    if isinstance(field, str) and field not in _NUMBER_FIELDS:
        return Eq(field, _text_of(value))
    return _range(field, value) or Eq(field, _scalar_of(value))


def _text_of(text: str) -> Scalar:
    """Return the value of a field that is a text: what is in quotes, a time, or the text as it is."""
    scalar = _scalar_of(text)
    return scalar if isinstance(scalar, str | datetime) else text


def _scalar_of(text: str) -> Scalar:
    try:
        return _scalar(json.loads(text))
    except (ValueError, RecursionError, InvalidInput):
        return text


def _range(field: Field, text: str) -> Filter | None:
    """Return the range that START..END means; None if these are neither numbers nor times."""
    start, dots, end = (part.strip() for part in text.partition(".."))
    bounds = _bounds(start, end) if dots and (start or end) else None
    if bounds is None:
        return None
    low, high = bounds
    if low is not None and high is not None and low > high:
        raise _wrong(f"{_preview(text)} ends before it starts")
    in_range = Between(field, low, high)
    if not isinstance(low or high, datetime) or not isinstance(field, tuple):
        return in_range
    # Metadata hold dates as texts, which have no zone, or as instants.
    return Or((Between(field, start or None, end or None), in_range))


def _bounds(start: str, end: str) -> tuple[Any, Any] | None:
    """Return two numbers or two instants, of which an empty text is none; None if a text is neither."""
    for read in (_number_of, _parse_time):
        try:
            return read(start), read(end)
        except (ValueError, InvalidInput):
            continue
    return None


def _number_of(text: str) -> float | None:
    scalar = json.loads(text) if text else None
    if isinstance(scalar, bool) or not isinstance(scalar, int | float | None) or scalar != scalar:
        raise _wrong(f"{_preview(text)} is not a number")
    return scalar


def _parse_time(text: str) -> datetime | None:
    """Parse a time of a pair: the default zone is UTC, an empty string is an open end."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _wrong(f"{_preview(text)} is not an ISO 8601 time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _field_to_json(field: Field) -> Json:
    if isinstance(field, str):
        return field
    plain = all(step and "." not in step for step in field)
    return ".".join((METADATA, *field)) if plain else [METADATA, *field]


def _test_to_json(leaf: Eq | In | Between | Contains | Exists) -> dict[str, Json]:
    match leaf:
        case Eq():
            return {"eq": _scalar_to_json(leaf.value)}
        case In():
            return {"in": [_scalar_to_json(value) for value in leaf.values]}
        case Contains():
            return {"contains": leaf.text}
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
