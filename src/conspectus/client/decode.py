"""Decode JSON to the model's dataclasses by the types of their fields.

Unknown fields are ignored and missing ones take their defaults, so that clients and servers of neighboring
versions are compatible.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin

from conspectus.errors import InvalidInput
from conspectus.model.annotations import base_of
from conspectus.model.filter import Filter
from conspectus.model.filter_json import filter_from_json
from conspectus.model.records import Json

T = TypeVar("T")
Read = Callable[[Any, object, str], Any]


class Misread(ValueError):
    """A value has an unexpected form; the message says where and how."""


def decode(kind: type[T], value: object) -> T:
    """Return the dataclass or scalar of a JSON value. Raises Misread."""
    decoded_value: T = _read(kind, value, "answer")
    return decoded_value


def decode_list(kind: type[T], value: object) -> list[T]:
    """Decode each element of a JSON list. Raises Misread."""
    return [
        _read(kind, member, f"answer.{position}") for position, member in enumerate(_list(value, "answer"))
    ]


def decode_member(kind: type[T], name: str, value: object) -> T:
    """Decode the member of that name of a JSON object. Raises Misread."""
    decoded_value: T = _read(kind, _object(value, "answer").get(name), f"answer.{name}")
    return decoded_value


def _read(hint: Any, value: object, at: str) -> Any:
    return _reader(hint)(hint, value, at)


@cache
def _reader(hint: Any) -> Read:
    """Return the decoder of a type, cached: inspecting a type is slower than decoding a value."""
    if hint == Json:
        return _as_it_is
    if hint == Filter:
        return _read_filter
    if isinstance(hint, NewType):
        return _read_new_type
    if is_dataclass(hint):
        return _record
    shape = get_origin(hint) or hint
    if shape not in _SHAPES:
        raise TypeError(f"unsupported type {hint!r}")
    return _SHAPES[shape]


def _as_it_is(_: Any, value: object, at: str) -> object:
    return value


def _read_filter(_: Any, value: object, at: str) -> Filter:
    try:
        return filter_from_json(value)
    except InvalidInput as fault:
        raise Misread(f"{at} is not a filter: {fault.reason}") from fault


def _read_new_type(hint: Any, value: object, at: str) -> Any:
    return _read(base_of(hint), value, at)


def _record(hint: Any, value: object, at: str) -> object:
    values, decoded_fields = _object(value, at), {}
    for name, kind, is_required in _members(hint):
        if name in values:
            decoded_fields[name] = _read(kind, values[name], f"{at}.{name}")
        elif is_required:
            raise Misread(f"{at}.{name} is missing")
    return hint(**decoded_fields)


@cache
def _members(kind: Any) -> Sequence[tuple[str, Any, bool]]:
    """Return name, type without what is declared about it, and if it is required, for each field."""
    return [
        (field.name, _bare(field.type), field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    ]


def _bare(hint: Any) -> Any:
    members = get_args(hint)
    if get_origin(hint) is Annotated:
        return _bare(members[0])
    if all(_bare(member) is member for member in members):
        return hint
    is_union = get_origin(hint) in {Union, UnionType}
    if is_union:
        return reduce(or_, map(_bare, members))
    return GenericAlias(tuple, tuple(map(_bare, members)))


def _read_scalar(hint: Any, value: object, at: str) -> object:
    if type(value) is not hint:
        raise _wrong(at, _SCALARS[hint], value)
    return value


def _read_number(_: Any, value: object, at: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _wrong(at, "a number", value)
    return float(value)


def _read_instant(_: Any, value: object, at: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise _wrong(at, "an ISO 8601 time with a zone", value)
    return moment


def _read_choice(hint: Any, value: object, at: str) -> object:
    if value not in get_args(hint):
        raise _wrong(at, f"one of {', '.join(map(repr, get_args(hint)))}", value)
    return value


def _read_optional(hint: Any, value: object, at: str) -> Any:
    inner = [member for member in get_args(hint) if member is not NoneType]
    if len(inner) != 1:
        raise TypeError(f"{at}: {hint!r} is ambiguous")
    return None if value is None else _read(inner[0], value, at)


def _read_tuple(hint: Any, value: object, at: str) -> tuple[Any, ...]:
    values, kinds = _list(value, at), get_args(hint)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(values)
    if len(kinds) != len(values):
        raise _wrong(at, f"a list of {len(kinds)}", value)
    pairs = enumerate(zip(kinds, values, strict=True))
    return tuple(_read(kind, member, f"{at}.{position}") for position, (kind, member) in pairs)


def _read_mapping(hint: Any, value: object, at: str) -> dict[Any, Any]:
    names, kind = get_args(hint)
    values = _object(value, at)
    if _reader(kind) is _as_it_is and names is str:
        return dict(values)
    return {_read(names, name, at): _read(kind, member, f"{at}.{name}") for name, member in values.items()}


def _list(value: object, at: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise _wrong(at, "a list", value)
    return value


def _object(value: object, at: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(at, "an object", value)
    return value


def _wrong(at: str, expected: str, value: object) -> Misread:
    return Misread(f"{at} is {value!r:.40}, not {expected}")


_SCALARS: Final[Mapping[Any, str]] = {str: "a string", bool: "true or false", int: "a whole number"}
_SHAPES: Final[Mapping[Any, Read]] = {
    **dict.fromkeys(_SCALARS, _read_scalar),
    float: _read_number,
    datetime: _read_instant,
    Literal: _read_choice,
    Union: _read_optional,
    UnionType: _read_optional,
    tuple: _read_tuple,
    Mapping: _read_mapping,
}
