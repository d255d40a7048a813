"""What a caller gives, as JSON: only what differs from the defaults, checked as far as it has to be here."""

import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import datetime
from typing import Any, Final

from conspectus.errors import InvalidInput
from conspectus.ingest.prepare import DocumentLimits, period, storable
from conspectus.model.checks import LARGEST, shown
from conspectus.model.filter import filter_to_json
from conspectus.model.query import Budget, Query
from conspectus.model.records import Json, Metadata, NewDocument
from conspectus.text.clean import clean
from conspectus.text.positions import checked
from conspectus.text.times import parse_instant
from conspectus.text.vectors import unit

UNLIMITED: Final = DocumentLimits(characters=sys.maxsize, metadata_bytes=sys.maxsize, metadata_depth=100)
"""The server has the word on sizes; the depth only keeps the encoding itself within bounds."""


def encoded(value: object) -> Json:
    """Any value of the model as JSON: dataclasses by field, instants in ISO 8601.

    Raises InvalidInput for a number that JSON does not have, and for anything else that it cannot hold.
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
    """An instant in ISO 8601 with its zone, which is UTC where it names none. Raises InvalidInput."""
    return None if moment is None else parse_instant(moment).isoformat()


def document_json(new: NewDocument) -> dict[str, Json]:
    """A document to be written. Raises InvalidInput for what cannot be stored of it."""
    return changes_json(_given(new))


def changes_json(changes: Mapping[str, Any]) -> dict[str, Json]:
    """New values of a document's fields. Raises InvalidInput as `document_json` does."""
    told = dict(changes)
    if "metadata" in told:
        told["metadata"] = metadata_json(told["metadata"])
    if "occurred" in told:
        told["occurred"] = period(told["occurred"])
    if "text" in told and "places" in told:
        told["places"] = checked(told["places"], told["text"])
    if "text" in told and "spans" in told and len(clean(told["text"])) != len(told["text"]):
        raise InvalidInput("spans", "refer to a text that cannot be stored as it is")
    if told.get("vector") is not None:
        unit(told["vector"])
        told["vector"] = [float(number) for number in told["vector"]]
    return {name: encoded(value) for name, value in told.items()}


def metadata_json(metadata: Mapping[str, object]) -> Metadata:
    """Metadata with instants as strings. Raises InvalidInput for what is not JSON."""
    return storable(metadata, UNLIMITED)


def query_json(
    query: str | Query, given: Mapping[str, Any], *, only_given: Collection[str] = ()
) -> dict[str, Json]:
    """A question with what else was said of it. Raises InvalidInput for a part that no query has.

    The parts `only_given` count where they are given beside the question, not where they stand in it.
    """
    known = Query.__dataclass_fields__.keys()
    for name in given:
        if name not in known:
            raise InvalidInput(name, f"is not a part of a query; there are {', '.join(known)}")
    if "text" in given and not isinstance(query, Query):
        raise InvalidInput("text", "is given twice; give it once, as the query")
    asked = query if isinstance(query, Query) else Query(query)
    whole = replace(asked, **given)
    told = {
        name: value for name, value in {"text": asked.text, **_given(asked)}.items() if name not in only_given
    }
    told |= {name: getattr(whole, name) for name in given}
    told["query"] = told.pop("text")
    return {
        name: filter_to_json(value) if name == "filter" else encoded(value) for name, value in told.items()
    }


def budget_json(budget: int | Budget) -> Json:
    """A number of tokens, or all that a budget says."""
    return encoded(budget if isinstance(budget, int) else _given(budget))


def budget_fields(budget: int | Budget) -> dict[str, Json]:
    """A number of tokens, or a budget in full, as fields beside those of a query."""
    told = {"max_tokens": budget} if isinstance(budget, int) else _given(budget)
    return {"budget_query" if name == "query" else name: encoded(value) for name, value in told.items()}


def _given(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that have no default, or another value than it."""
    return {
        each.name: getattr(value, each.name)
        for each in fields(value)
        if getattr(value, each.name) != _default(each)
    }


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
