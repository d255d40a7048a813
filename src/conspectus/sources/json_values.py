"""Access to JSON values of unknown type. A value of another type than expected counts as missing."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from conspectus.errors import InvalidInput
from conspectus.ports.imports import LeftOut
from conspectus.sources.encoding import decode
from conspectus.sources.notices import Notices
from conspectus.text.times import parse_instant

EMPTY: Mapping[str, object] = {}
MAX_LISTED = 100
MAX_LISTED_LENGTH = 200
MAX_INTEGER = 2**53


class NotJson(Exception):
    """Bytes or text that are not JSON; the message says why."""


def load(data: str | bytes) -> object:
    """Return the value, with NaN and infinity as null. Raises NotJson."""
    decoded = data if isinstance(data, str) else _text(data)
    try:
        value: object = json.loads(decoded, parse_constant=lambda _: None)
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    return value


def load_json(data: str | bytes) -> object:
    """Return the value, or None for what is not JSON."""
    try:
        return load(data)
    except NotJson:
        return None


def as_mapping(value: object) -> Mapping[str, object]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else EMPTY


def items(value: object) -> list[object]:
    """Return the value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def mappings(value: object) -> Iterator[Mapping[str, object]]:
    """Return the objects in a value, if it is an array."""
    return (element for element in items(value) if isinstance(element, dict))


def text_in(value: object, *names: str) -> str:
    """Return the first of the fields that is a non-blank string; empty if there is none."""
    fields = as_mapping(value)
    for name in names:
        text = fields.get(name)
        if isinstance(text, str) and not text.isspace() and text:
            return text
    return ""


def word_in(value: object, *names: str) -> str:
    """Return the first of the fields as stripped text, whole numbers included; empty if there is none."""
    fields = as_mapping(value)
    for name in names:
        word = fields.get(name)
        if isinstance(word, str) and word.strip():
            return word.strip()
        if isinstance(word, int) and not isinstance(word, bool):
            return str(word)
    return ""


def list_names(names: Iterator[str]) -> list[str]:
    """Return the distinct names in their order, within the limits of metadata."""
    return [name[:MAX_LISTED_LENGTH] for name in dict.fromkeys(names) if name][:MAX_LISTED]


def count_names(values: Iterable[tuple[str, object]]) -> dict[str, int]:
    """Return the count of each name; other values than numbers count once."""
    counts: dict[str, int] = {}
    for name, number in values:
        is_count = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MAX_INTEGER
        counts[name] = counts.get(name, 0) + (number if is_count and isinstance(number, int) else 1)
    names = list_names(iter(counts))
    return {name: counts[name] for name in names if name in counts}


def moment_in(value: object, name: str) -> datetime | None:
    """Return the time in a field, in UTC, or None."""
    return moment_of(as_mapping(value).get(name))


def moment_of(value: object) -> datetime | None:
    """Return the time that a value spells, in UTC, or None."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        return parse_instant(value).astimezone(UTC)
    except InvalidInput:
        return None


def load_part(data: bytes, name: str, notices: Notices) -> object:
    """Return the JSON of a file; None, with a notice, if it is none."""
    try:
        return load(data)
    except NotJson:
        notices.count_damage("files that are not JSON, skipped", name)
        return None


def _text(data: bytes) -> str:
    decoded = decode(data)
    if decoded is None:
        raise NotJson("not text in any encoding known here")
    return decoded.text.removeprefix("\ufeff")


def members(value: object, reason: str, name: str, left: LeftOut) -> Iterator[Mapping[str, object]]:
    """Yield the objects of an array; other members are counted."""
    for number, member in enumerate(items(value), 1):
        if isinstance(member, dict):
            yield member
        else:
            left.skip(reason, f"{name}:{number}")
