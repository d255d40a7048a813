"""Filters compiled to SQL conditions on documents: never too narrow, and exact if SQL allows it.

`matches` defines the meaning of filters. A condition that is not exact lets more rows pass; the reader has to
apply `matches` to them.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import eq, ge, lt
from typing import Any, TypeGuard, assert_never

from sqlalchemy import Column, ColumnElement, and_, false, not_, or_, true

from conspectus.deferred import dataclass
from conspectus.model.filter import (
    And,
    Between,
    Contains,
    Eq,
    Exists,
    Filter,
    In,
    Leaf,
    Not,
    Or,
    Overlaps,
    Scalar,
    instant,
)
from conspectus.records.core.dialects import is_ascii, is_storable
from conspectus.records.tables.core import QUARANTINED, documents
from conspectus.text.times import to_microseconds

MAX_TERMS = 300
MAX_DEPTH = 30
VALUES_PER_TERM = 50
MAX_STRING_LENGTH = 1_000
"""Databases limit the depth of expressions, the number of values, and the length of patterns."""

_INT64_LIMIT = 2**63

_TEXTS: Mapping[str, Column[Any]] = {
    "source": documents.c.source,
    "document": documents.c.id,
    "kind": documents.c.kind,
    "author": documents.c.author,
    "role": documents.c.role,
    "thread": documents.c.thread,
    "parent": documents.c.parent,
    "trust": documents.c.trust,
    "title": documents.c.title,
    "key": documents.c.key,
}
_PARTS_OF_KEYS = frozenset({"file", "folder"})


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on `documents` that holds for every match and, if exact, for nothing else.

    What `certain` selects matches without a look at the document.
    """

    sql: ColumnElement[bool]
    exact: bool
    inexact_certain: ColumnElement[bool] | None = None

    @property
    def certain(self) -> ColumnElement[bool]:
        """The rows that match for certain."""
        if self.exact:
            return self.sql
        return false() if self.inexact_certain is None else self.inexact_certain


_MATCHES_NOTHING = Condition(false(), exact=True)
_MAY_MATCH = Condition(true(), exact=False)

Compare = Callable[[Any, Any], Any]


def compile_filter(where: Filter) -> Condition:
    """Return the condition of a filter; of a conjunction that is too large, as many parts as fit."""
    remaining_terms = MAX_TERMS
    conditions = []
    for part in where.inner if isinstance(where, And) else (where,):
        terms = _count_terms(part, MAX_DEPTH)
        if terms <= remaining_terms:
            remaining_terms -= terms
            conditions.append(_compile(part))
        else:
            conditions.append(_MAY_MATCH)
    return _join_by_and(conditions)


def _count_terms(where: Filter, depth: int) -> int:
    if depth == 0:
        return MAX_TERMS + 1
    if isinstance(where, Not):
        return 1 + _count_terms(where.inner, depth - 1)
    if isinstance(where, And | Or):
        return 1 + sum(_count_terms(part, depth - 1) for part in where.inner)
    if isinstance(where, In):
        values_per_term = VALUES_PER_TERM if _are_texts(where.values) else 1
        return 1 + len(where.values) // values_per_term
    return 1


def _compile(where: Filter) -> Condition:
    match where:
        case And():
            return _join_by_and([_compile(part) for part in where.inner])
        case Or():
            return _join_by_or([_compile(part) for part in where.inner])
        case Not():
            inner = _compile(where.inner)
            return Condition(not_(inner.sql), exact=True) if inner.exact else _MAY_MATCH
        case _:
            return _compile_leaf(where)


def _compile_leaf(where: Leaf) -> Condition:
    match where:
        case Overlaps():
            return _compile_overlaps(where)
        case Exists():
            return _compile_exists(where)
        case Eq():
            return _compile_equal(where.field, where.value)
        case In():
            return _compile_in(where)
        case Between():
            return _compile_between(where)
        case Contains():
            return _compile_contains(where)
        case _:
            assert_never(where)


def _join_by_and(parts: Sequence[Condition]) -> Condition:
    return Condition(
        and_(true(), *(part.sql for part in parts)),
        all(part.exact for part in parts),
        and_(true(), *(part.certain for part in parts)),
    )


def _join_by_or(parts: Sequence[Condition]) -> Condition:
    return Condition(
        or_(false(), *(part.sql for part in parts)),
        all(part.exact for part in parts),
        or_(false(), *(part.certain for part in parts)),
    )


def _compile_exists(where: Exists) -> Condition:
    if where.field == "position":
        return _MATCHES_NOTHING
    if where.field == "occurred":
        return Condition(documents.c.occurred_start.is_not(None), exact=True)
    if isinstance(where.field, tuple):
        return _require_in_metadata(where.field)
    if where.field in _PARTS_OF_KEYS:
        return _MAY_MATCH
    if where.field in _TEXTS:
        return Condition(_has_text(where.field), exact=True)
    return Condition(documents.c[where.field].is_not(None), exact=True)


def _compile_overlaps(where: Overlaps) -> Condition:
    start, end = documents.c.occurred_start, documents.c.occurred_end
    parts: list[ColumnElement[bool]] = [start.is_not(None)]
    if where.end is not None:
        parts.append(start < to_microseconds(where.end))
    if where.start is not None:
        since = to_microseconds(where.start)
        parts.append(or_(end > since, start >= since))
    return Condition(and_(*parts), exact=True)


def _compile_equal(field: str | tuple[str, ...], value: Scalar) -> Condition:
    if (field, value) == ("kind", "quarantined"):
        return Condition(QUARANTINED, exact=True)
    return _compare(field, value, eq)


def _compile_in(where: In) -> Condition:
    if not _are_texts(where.values):
        return _join_by_or([_compile_equal(where.field, value) for value in where.values])
    if isinstance(where.field, tuple):
        return _require_in_metadata(where.field)
    if where.field in _PARTS_OF_KEYS:
        return _join_by_or([_compile_equal(where.field, value) for value in where.values])
    if where.field not in _TEXTS:
        return _MATCHES_NOTHING
    values = [value for value in where.values if _is_comparable(value)]
    exact = len(values) == len(where.values)
    among = or_(_TEXTS[where.field].in_(values), false() if exact else true())
    return Condition(and_(_has_text(where.field), among), exact)


def _compile_between(where: Between) -> Condition:
    parts = [_compile_exists(Exists(where.field))]
    if where.low is not None:
        parts.append(_compare(where.field, where.low, ge))
    if where.high is not None:
        parts.append(_compare(where.field, where.high, lt))
    return _join_by_and(parts)


def _compile_contains(where: Contains) -> Condition:
    """Narrow by the part of a text; databases ignore the case of ASCII letters only.

    A text with other letters may contain the part in another spelling, so it passes.
    """
    if isinstance(where.field, tuple):
        return _require_in_metadata(where.field)
    has_text = _has_text(where.field if where.field in _TEXTS else "key")
    if not _is_comparable(where.text) or len(where.text) > MAX_STRING_LENGTH:
        return Condition(has_text, exact=False)
    if where.field not in _TEXTS:
        column = documents.c.key
        return Condition(_contains_or_is_unsure(column, where.text), exact=False)
    column = _TEXTS[where.field]
    contains = and_(has_text, is_ascii(column), column.icontains(where.text, autoescape=True))
    return Condition(and_(has_text, _contains_or_is_unsure(column, where.text)), False, contains)


def _contains_or_is_unsure(column: Column[Any], part: str) -> ColumnElement[bool]:
    return or_(column.icontains(part, autoescape=True), not_(is_ascii(column)))


def _compare(field: str | tuple[str, ...], bound: Scalar, compare: Compare) -> Condition:
    if isinstance(field, tuple):
        return _require_in_metadata((*field, bound) if compare is eq and isinstance(bound, str) else field)
    if field in _PARTS_OF_KEYS:
        return _compare_part_of_key(field, bound, compare)
    if field in _TEXTS:
        return _compare_text(field, bound, compare)
    if field == "sequence":
        return _compare_number(documents.c.sequence, bound, compare)
    if field == "recorded":
        moment = instant(bound) if isinstance(bound, datetime) else None
        if moment is None:
            return _MATCHES_NOTHING
        return Condition(compare(documents.c.recorded, to_microseconds(moment)), exact=True)
    return _MATCHES_NOTHING


def _require_in_metadata(strings: Sequence[str]) -> Condition:
    """Require that each string occurs in the JSON text of the metadata, as a key or a value."""
    written = [json.dumps(string, ensure_ascii=False) for string in strings if _is_comparable(string)]
    short = [string for string in written if len(string) <= MAX_STRING_LENGTH]
    conditions = [documents.c.metadata.contains(string, autoescape=True) for string in short]
    return Condition(and_(true(), *conditions), exact=False)


def _compare_text(field: str, bound: Scalar, compare: Compare) -> Condition:
    if not isinstance(bound, str | datetime):
        return _MATCHES_NOTHING
    if isinstance(bound, datetime) or compare is not eq or not _is_comparable(bound):
        return Condition(_has_text(field), exact=False)
    return Condition(and_(_has_text(field), _TEXTS[field] == bound), exact=True)


def _compare_part_of_key(field: str, bound: Scalar, compare: Compare) -> Condition:
    """Narrow by the name of a file or folder, which is somewhere in the key."""
    if compare is not eq or not isinstance(bound, str) or not _is_comparable(bound):
        return _MAY_MATCH
    if len(bound) > MAX_STRING_LENGTH:
        return _MAY_MATCH
    key = documents.c.key
    if field == "folder":
        return Condition(key.startswith(f"{bound}/", autoescape=True), exact=False)
    return Condition(key.endswith(bound, autoescape=True), exact=False)


def _has_text(field: str) -> ColumnElement[bool]:
    """Return the condition that a text is there; a document without a title has an empty one."""
    if field == "title":
        return documents.c.title != ""
    return _TEXTS[field].is_not(None)


def _is_comparable(text: str) -> bool:
    """Return whether the database compares the text as filters do: other texts may be spelled in two ways."""
    return text.isascii() and is_storable(text)


def _compare_number(column: Column[Any], bound: Scalar, compare: Compare) -> Condition:
    """Compare integers with any number: bounds that are fractions are rounded to the next integer."""
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return _MATCHES_NOTHING
    if isinstance(bound, float) and math.isnan(bound):
        return _MATCHES_NOTHING
    if not -_INT64_LIMIT <= bound < _INT64_LIMIT:
        return Condition(column.is_not(None), exact=False)
    integer = math.ceil(bound)
    if compare is eq and integer != bound:
        return _MATCHES_NOTHING
    return Condition(and_(column.is_not(None), compare(column, integer)), exact=True)


def _are_texts(values: Sequence[Scalar]) -> TypeGuard[Sequence[str]]:
    return all(isinstance(value, str) for value in values)
