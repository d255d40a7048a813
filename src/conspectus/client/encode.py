"""Encode arguments as JSON: only values that differ from the defaults, with minimal validation."""

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from typing import Any, Final

from conspectus.errors import InvalidInput
from conspectus.ingest.prepare import period, storable
from conspectus.model.checks import LARGEST, shown
from conspectus.model.records import Json, Metadata, NewDocument
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.positions import checked
from conspectus.text.times import parse_instant
from conspectus.text.vectors import unit

UNLIMITED: Final = Settings(max_metadata_bytes=sys.maxsize, max_metadata_depth=100)
"""The server validates sizes; the depth limit only protects the encoder."""


def encoded(value: object) -> Json:
    """Encode any value of the model as JSON: dataclasses by field, instants in ISO 8601.

    Raises InvalidInput for a number that JSON does not have, and for unsupported types.
    """
    match value:
        case None | bool():
            return value
        case int() | float() if _is_number(value):
            return value
        case str():
            return clean(value)
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(name): encoded(each) for name, each in value.items()}
        case list() | tuple():
            return [encoded(each) for each in value]
        case _ if is_dataclass(value):
            return {each.name: encoded(getattr(value, each.name)) for each in fields(value)}
        case _:
            raise InvalidInput("value", f"{shown(value)} cannot be written as JSON")


def _is_number(value: float) -> bool:
    return abs(value) <= LARGEST if isinstance(value, int) else math.isfinite(value)


def instant_json(moment: datetime | str | float | None) -> Json:
    """Return an instant in ISO 8601 with its zone (UTC if it has none). Raises InvalidInput."""
    return None if moment is None else parse_instant(moment).isoformat()


def document_json(new: NewDocument) -> dict[str, Json]:
    """Return a document to be written. Raises InvalidInput for values that cannot be stored."""
    usual = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(new)
    }
    return changes_json(
        {name: given for name, default in usual.items() if (given := getattr(new, name)) != default}
    )


def changes_json(changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return new values of a document's fields. Raises InvalidInput as `document_json` does."""
    values = dict(changes)
    if "metadata" in values:
        values["metadata"] = metadata_json(values["metadata"])
    if "occurred" in values:
        values["occurred"] = period(values["occurred"])
    if "text" in values and "places" in values:
        values["places"] = checked(values["places"], values["text"])
    if "text" in values and "spans" in values and len(clean(values["text"])) != len(values["text"]):
        raise InvalidInput("spans", "refer to a text with characters that cannot be stored")
    if values.get("vector") is not None:
        unit(values["vector"])
        values["vector"] = [float(number) for number in values["vector"]]
    return {name: encoded(value) for name, value in values.items()}


def metadata_json(metadata: Mapping[str, object]) -> Metadata:
    """Return metadata with instants as strings. Raises InvalidInput for values that are not JSON."""
    return storable(metadata, UNLIMITED)
