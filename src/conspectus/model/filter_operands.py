"""Fields and values of filters: which of them can be equal, and how texts are compared."""

import unicodedata
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import get_args

from conspectus.errors import InvalidInput
from conspectus.model.checks import format_value
from conspectus.model.records import Kind
from conspectus.model.trust import TRUST

_SCALARS = (str, bool, int, float, datetime)
_NUMBER: tuple[tuple[type, ...], str] = ((int, float), "a number")
_TEXT: tuple[tuple[type, ...], str] = ((str, datetime), "a text, in quotes")
_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "sequence": _NUMBER,
    "position": _NUMBER,
    "recorded": ((datetime,), "a time with a zone"),
}
"""The types of values that a field may have, and their name; other fields are texts."""
CONTAINING_FIELDS = ("title", "key", "file", "folder")
"""The named fields that may be searched for a part of their text."""
_CHOICES: Mapping[object, tuple[str, ...]] = {"trust": TRUST, "kind": get_args(Kind)}
"""The texts that a field may have, if they are few."""


class MetadataPath(tuple[str, ...]):
    """A path that may start with a key that is itself called `metadata`."""

    __slots__ = ()


def compose_accents(text: str) -> str:
    """Return the text with composed accents (NFC), as it is compared. What would become ASCII stays."""
    if text.isascii():
        return text
    normalized = unicodedata.normalize("NFC", text)
    return text if normalized.isascii() else normalized


def fold_text(text: str) -> str:
    """Return the text as parts of it are compared: without case, and with composed accents."""
    return compose_accents(compose_accents(text).casefold())


def folders_of(key: str) -> tuple[str, ...] | None:
    """Return each folder that a key with slashes is in, from the outermost; None if it is in none."""
    steps = key.split("/")[:-1]
    folders = tuple("/".join(steps[: depth + 1]) for depth in range(len(steps)))
    return tuple(folder for folder in folders if folder) or None


def require_field(field: object, names: Collection[str]) -> None:
    """Refuse a text that is no name of a field; a path in the metadata is a tuple."""
    if isinstance(field, str) and field not in names:
        first, *deeper = field.split(".")
        path = tuple(deeper) if first == "metadata" and deeper else (first, *deeper)
        reason = f"{field!r:.80} is not a field; for metadata, write the path as a tuple: {path!r:.80}"
        raise InvalidInput("filter", f"{reason}. The fields are {', '.join(sorted(names))}")


def require_path(field: str | tuple[str, ...]) -> None:
    """Refuse a path that starts with `metadata`, as it does in JSON and on the command line."""
    if isinstance(field, str | MetadataPath) or len(field) < 2 or field[0] != "metadata":
        return
    raise InvalidInput(
        "filter",
        f"{field!r:.80} starts inside the metadata already; write {field[1:]!r:.80}"
        " (or MetadataPath of it, for a key that is called metadata)",
    )


def require_comparable(field: str | tuple[str, ...], operand: object) -> None:
    """Refuse a value that the field can never have."""
    if isinstance(operand, datetime) and operand.utcoffset() is None:
        raise InvalidInput("filter", f"{operand.isoformat()} must have a zone")
    if field == ():
        raise InvalidInput("filter", "is an empty path; name a key of the metadata")
    if field == "occurred":
        raise InvalidInput("filter", "occurred is a period; use Overlaps(start, end), or occurred=START..END")
    types, advice = _TYPES.get(field, _TEXT) if isinstance(field, str) else (_SCALARS, "")
    if isinstance(operand, bool) > (bool in types) or not isinstance(operand, types):
        raise InvalidInput("filter", f"{field} is never {format_value(operand)}; give {advice}")
    choices = _CHOICES.get(field)
    if choices and operand not in choices:
        raise InvalidInput(
            "filter", f"{field} is never {format_value(operand)}; it is one of {', '.join(choices)}"
        )


def require_containing_field(field: str | tuple[str, ...], text: str) -> None:
    """Refuse a field whose text is not searched for parts, and an empty part."""
    if isinstance(field, str) and field not in CONTAINING_FIELDS:
        names = ", ".join(CONTAINING_FIELDS)
        raise InvalidInput("filter", f"contains is not for {field}; it is for {names} and metadata")
    if field == ():
        raise InvalidInput("filter", "is an empty path; name a key of the metadata")
    if not text:
        raise InvalidInput("filter", "contains needs at least one character")


def require_common_type(low: object, high: object) -> None:
    """Refuse bounds that no value can be compared with both of."""
    if low is not None and high is not None and _type_of(low) != _type_of(high):
        reason = f"nothing is between {format_value(low)} and {format_value(high)}; give two of one type"
        raise InvalidInput("filter", reason)


def _type_of(bound: object) -> str:
    """Return the type of values that compare with a bound; a text may spell an instant."""
    if isinstance(bound, bool):
        return "truth value"
    return "text" if isinstance(bound, str | datetime) else "number"
