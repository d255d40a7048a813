"""What filters can meet of a chunk as numbers: that a path has a value, that it has this one.

A fact is 62 bits of a hash of a path and a value, so that nothing a user gives ever stands in an expression,
and one index over numbers answers every question of equality.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, get_args

from conspectus.index.filter_values import path_name
from conspectus.model.filter import Field, FieldName, instant
from conspectus.text.times import to_microseconds

TEXTS: Final[tuple[FieldName, ...]] = ("source", "document", "kind", "author", "role", "thread", "parent")
NUMBERS: Final[tuple[FieldName, ...]] = ("sequence", "position", "recorded")
assert {*TEXTS, *NUMBERS, "occurred"} == set(get_args(FieldName))


def exists(field: Field) -> int:
    """The fact that there is a value other than null; it stands for the path, too."""
    return _fact(field, "exists")


def is_value(field: Field, value: object) -> int:
    """The fact that a value is this one, whatever it equals."""
    return _fact(field, *_canonical(value))


def is_moment(field: Field, microsecond: int) -> int:
    """The fact that a value spells this moment."""
    return _fact(field, "instant", str(microsecond))


def equals(field: Field, value: object) -> int | None:
    """The fact that a value equals this one; None for what equals nothing."""
    if isinstance(value, datetime):
        moment = instant(value)
        return None if moment is None else is_moment(field, to_microseconds(moment))
    return None if _canonical(value)[0] == "other" else is_value(field, value)


def spelled_moment(value: object) -> int | None:
    """The microsecond that a text spells."""
    spelled = instant(value) if isinstance(value, str) and value[:1].isdigit() else None
    return None if spelled is None else to_microseconds(spelled)


def stand_in(value: object) -> object:
    """The value itself, or an empty one of its kind: what is in it has paths of its own."""
    if isinstance(value, Mapping):
        return {}
    return [] if isinstance(value, list | tuple) else value


def _fact(field: Field, tag: str, text: str = "") -> int:
    content = json.dumps([path_name(field), tag, text]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 2


def _canonical(value: object) -> tuple[str, str]:
    """One spelling for all values that are equal, with a tag that keeps types apart."""
    match value:
        case bool():
            return "truth", str(value)
        case int():
            return "number", hex(value)
        case float() if value.is_integer():
            return "number", hex(int(value))
        case float() if value == value:
            return "number", repr(value)
        case str():
            return "text", value
        case _:
            return "other", json.dumps(stand_in(value))
