"""What has to be said differently to SQLite and to PostgreSQL: one construct each, used as any function.

Both keep lists and metadata as JSON in texts and have functions for it, of other names and with other rules.
"""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    String,
    TableValuedAlias,
    bindparam,
    cast,
    column,
    func,
    literal,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

NUL = "\x00"


def is_storable(text: str) -> bool:
    """Whether a database can hold a text: not one with a NUL, nor with half of a surrogate pair."""
    return NUL not in text and (text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text))


def as_list(values: Iterable[str]) -> str:
    """Texts as the one parameter that `listed` reads; what cannot be stored is equal to nothing stored."""
    return json.dumps([each for each in values if is_storable(each)])


def total(column: ColumnElement[int]) -> ColumnElement[int]:
    """A sum as a whole number; PostgreSQL has one without limits for it."""
    return cast(func.sum(column), BigInteger)


def listed(name: str) -> TableValuedAlias:
    """The texts of a parameter that `as_list` made, as rows with a `value`, however many there are."""
    return _Listed(bindparam(name)).table_valued(column("value", String))


def kind_of(text: ColumnElement[str], key: str) -> ColumnElement[str]:
    """What stands under a key of an object as JSON: true, text, object and so on; NULL without the key."""
    return _Kind(text, literal(key, literal_execute=True))


def members(text: ColumnElement[str], key: str) -> TableValuedAlias:
    """What lies in the list under a key of an object as JSON, as rows that `text_of` reads."""
    return _Members(text, literal(key, literal_execute=True)).table_valued(
        column("value", String), column("type", String)
    )


def text_of(member: TableValuedAlias) -> ColumnElement[str]:
    """A row of `members` that is a text, else NULL."""
    return _TextOf(member.c.value, member.c.type)


class _Listed(FunctionElement[str]):
    inherit_cache = True


class _Kind(FunctionElement[str]):
    type = String()
    inherit_cache = True


class _Members(FunctionElement[str]):
    inherit_cache = True


class _TextOf(FunctionElement[str]):
    type = String()
    inherit_cache = True


def _parts(element: FunctionElement[Any], compiler: SQLCompiler, **more: Any) -> list[str]:
    return [compiler.process(each, **more) for each in element.clauses]


@compiles(_Listed, "sqlite")
def _sqlite_listed(element: _Listed, compiler: SQLCompiler, **more: Any) -> str:
    (values,) = _parts(element, compiler, **more)
    return f"json_each({values})"


@compiles(_Listed, "postgresql")
def _postgres_listed(element: _Listed, compiler: SQLCompiler, **more: Any) -> str:
    (values,) = _parts(element, compiler, **more)
    return f"json_array_elements_text(CAST({values} AS json))"


@compiles(_Kind, "sqlite")
def _sqlite_kind(element: _Kind, compiler: SQLCompiler, **more: Any) -> str:
    text, key = _parts(element, compiler, **more)
    return f"json_type({text}, '$.' || {key})"


@compiles(_Kind, "postgresql")
def _postgres_kind(element: _Kind, compiler: SQLCompiler, **more: Any) -> str:
    value = _under(*_parts(element, compiler, **more))
    return (
        f"CASE json_typeof({value}) WHEN 'boolean' THEN CAST({value} AS text)"
        f" WHEN 'string' THEN 'text' ELSE json_typeof({value}) END"
    )


@compiles(_Members, "sqlite")
def _sqlite_members(element: _Members, compiler: SQLCompiler, **more: Any) -> str:
    text, key = _parts(element, compiler, **more)
    return f"json_each({text}, '$.' || {key})"


@compiles(_Members, "postgresql")
def _postgres_members(element: _Members, compiler: SQLCompiler, **more: Any) -> str:
    value = _under(*_parts(element, compiler, **more))
    return (
        f"json_array_elements(CASE json_typeof({value}) WHEN 'array' THEN {value}"
        f" WHEN 'object' THEN (SELECT json_agg(each.value) FROM json_each({value}) AS each)"
        f" ELSE json_build_array({value}) END)"
    )


@compiles(_TextOf, "sqlite")
def _sqlite_text_of(element: _TextOf, compiler: SQLCompiler, **more: Any) -> str:
    value, kind = _parts(element, compiler, **more)
    return f"CASE {kind} WHEN 'text' THEN {value} END"


@compiles(_TextOf, "postgresql")
def _postgres_text_of(element: _TextOf, compiler: SQLCompiler, **more: Any) -> str:
    value, _ = _parts(element, compiler, **more)
    return f"CASE json_typeof({value}) WHEN 'string' THEN {value} #>> '{{}}' END"


def _under(text: str, key: str) -> str:
    # PostgreSQL reads no JSON that speaks of a NUL, which metadata may do: they are kept as texts.
    return rf"(CAST(replace({text}, '\u0000', '\ufffd') AS json) -> {key})"
