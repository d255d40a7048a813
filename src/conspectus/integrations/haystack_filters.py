"""Filters of Haystack as filters of Conspectus, where both mean the same.

Haystack compares times as times whatever their spelling, and can look at the content. Such filters have no
form here: Haystack's own function decides for each document.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.comparisons import COMPARISONS
from conspectus.model.filter import EVERYTHING, And, Exists, Field, Filter, In, Not, Or
from conspectus.model.filter_operands import MetadataPath

try:
    from haystack.errors import FilterError
except ImportError as missing:
    raise MissingExtra("haystack", "haystack-ai") from missing

ORDERED = (">", ">=", "<", "<=")
CONTENT = "content"
_UNSTORED_FIELDS = frozenset({"blob", "embedding", "sparse_embedding", "score"})
LOGIC: Mapping[str, Callable[[tuple[Filter, ...]], Filter]] = {
    "AND": And,
    "OR": Or,
    "NOT": lambda parts: Not(And(parts)),
}


def check_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters with the whole names of fields in metadata. Raises FilterError."""
    if "field" in filters:
        return _check_comparison(filters)
    if filters.get("operator") not in LOGIC or "conditions" not in filters:
        raise FilterError(f"a filter needs field, or operator ({', '.join(LOGIC)}) and conditions: {filters}")
    return {**filters, "conditions": [check_filters(part) for part in filters["conditions"]]}


def comparisons(filters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each comparison of a filter."""
    if "field" in filters:
        yield filters
    for part in filters.get("conditions", ()):
        yield from comparisons(part)


def means_the_same(filters: Mapping[str, Any]) -> bool:
    """Return whether `to_filter` selects what Haystack would."""
    return all(_has_equivalent(comparison) for comparison in comparisons(filters))


def to_filter(filters: Mapping[str, Any]) -> Filter:
    """Return checked filters as a filter of Conspectus. Raises FilterError."""
    if "field" not in filters:
        return LOGIC[filters["operator"]](tuple(map(to_filter, filters["conditions"])))
    operator, operand = filters["operator"], filters["value"]
    field = _find_stored_field(filters["field"])
    if operand is None:
        of_none: dict[str, Filter] = {"==": Not(Exists(field)), "!=": Exists(field)}
        return of_none.get(operator, In(field, ()))
    try:
        return COMPARISONS[operator](field, operand)
    except InvalidInput as fault:
        raise FilterError(f"{fault.reason}: {filters}") from fault


def select_exact_parts(filters: Mapping[str, Any]) -> Filter:
    """Return a filter that selects at least what the filters do, of the parts that must all match."""
    if means_the_same(filters):
        return to_filter(filters)
    if filters.get("operator") != "AND":
        return EVERYTHING
    return And(tuple(select_exact_parts(part) for part in filters["conditions"]))


def _check_comparison(filters: Mapping[str, Any]) -> dict[str, Any]:
    operator, operand = str(filters.get("operator")), filters.get("value")
    if operator not in COMPARISONS or "value" not in filters:
        raise FilterError(f"a comparison needs operator ({', '.join(COMPARISONS)}) and value: {filters}")
    if operator in {"in", "not in"} and not isinstance(operand, list):
        raise FilterError(f"{operator} needs a list: {filters}")
    if operator in ORDERED and not _has_order(operand):
        raise FilterError(f"{operator} needs a number or a time in ISO 8601: {filters}")
    field = str(filters["field"])
    if field in _UNSTORED_FIELDS:
        raise FilterError(f"{field} is not stored and cannot be filtered; use id, content or meta: {filters}")
    if field in {"id", CONTENT, "meta"} or field.startswith("meta."):
        return {**filters, "field": field}
    return {**filters, "field": f"meta.{field}"}


def _has_order(operand: object) -> bool:
    return (
        _is_time(operand) if isinstance(operand, str) else isinstance(operand, int | float | datetime | None)
    )


def _is_time(text: str) -> bool:
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _is_plain(operand: object) -> bool:
    """Return whether Haystack compares a value as what it is: no time, in whatever spelling, and no list."""
    if isinstance(operand, str):
        return not _is_time(operand) and not (operand[:4].isdigit() and operand[4:5] == "-")
    return isinstance(operand, int | float)


def _has_equivalent(comparison: Mapping[str, Any]) -> bool:
    field, operator, operand = comparison["field"], comparison["operator"], comparison["value"]
    if field in {CONTENT, "meta"} or (field == "id" and operator in ORDERED):
        return False
    if operator in {"in", "not in"}:
        return all(map(_is_plain, operand))
    return operand is None or _is_plain(operand)


def _find_stored_field(field: str) -> Field:
    return "key" if field == "id" else MetadataPath(field.split(".")[1:])
