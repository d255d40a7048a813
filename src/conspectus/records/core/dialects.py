"""SQL that differs between SQLite and PostgreSQL, and parameters that are lists."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    String,
    Subquery,
    TableValuedAlias,
    bindparam,
    cast,
    column,
    func,
    literal,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

NUL = "\x00"


def is_storable(text: str) -> bool:
    """Return whether a database can store a text: not one with a NUL or a lone surrogate."""
    return NUL not in text and (
        text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
    )


def json_list(values: Iterable[str]) -> str:
    """Return texts as a parameter for `list_table`. Texts that cannot be stored equal nothing stored."""
    return json.dumps([text for text in values if is_storable(text)])


def json_pairs(values: Mapping[str, int]) -> str:
    """Return texts with a number each as a parameter for `numbered_list_table`."""
    return json.dumps([pair for pair in values.items() if is_storable(pair[0])])


def integer_sum(column: ColumnElement[int]) -> ColumnElement[int]:
    """Return a sum as an integer; PostgreSQL's type for sums is numeric."""
    return cast(func.sum(column), BigInteger)


def list_table(name: str) -> TableValuedAlias:
    """Return the texts of a parameter of `json_list` as rows with a `value`, in any number."""
    return _Listed(bindparam(name)).table_valued(column("value", String))


def numbered_list_table(name: str) -> Subquery:
    """Return the items of a parameter of `json_pairs` as rows with a `value` and its `number`."""
    pair = _Pairs(bindparam(name)).table_valued(column("value", String)).c.value
    return select(_First(pair).label("value"), _Second(pair).label("number")).subquery("pairs")


def json_kind(text: ColumnElement[str], key: str) -> ColumnElement[str]:
    """Return the JSON type under a key of an object: true, text, object and so on; NULL without the key."""
    return _Kind(text, literal(key, literal_execute=True))


def json_elements(text: ColumnElement[str], key: str) -> TableValuedAlias:
    """Return the elements of the list under a key of a JSON object, as rows for `element_text`."""
    return _Members(text, literal(key, literal_execute=True)).table_valued(
        column("value", String), column("type", String)
    )


def element_text(member: TableValuedAlias) -> ColumnElement[str]:
    """Return the text of a row of `json_elements`; NULL if it is no text."""
    return _TextOf(member.c.value, member.c.type)


def is_ascii(text: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a text has ASCII characters only."""
    return _IsAscii(text)


class _DialectConstruct(FunctionElement[Any]):
    """A template of SQL for each database; `{0}` stands for the first argument."""

    sqlite: ClassVar[str]
    postgresql: ClassVar[str]


@compiles(_DialectConstruct)
def _compile_construct(element: _DialectConstruct, compiler: SQLCompiler, **options: Any) -> str:
    template = element.sqlite if compiler.dialect.name == "sqlite" else element.postgresql
    return template.format(*(compiler.process(clause, **options) for clause in element.clauses))


# PostgreSQL rejects JSON with an escaped NUL, which metadata may contain: it is stored as text.
_JSON_VALUE_AT_KEY = r"(CAST(replace({0}, '\u0000', '\ufffd') AS json) -> {1})"


class _Listed(_DialectConstruct):
    inherit_cache = True
    sqlite = "json_each({0})"
    postgresql = "json_array_elements_text(CAST({0} AS json))"


class _Pairs(_DialectConstruct):
    inherit_cache = True
    sqlite = "json_each({0})"
    postgresql = "json_array_elements(CAST({0} AS json))"


class _IsAscii(_DialectConstruct):
    type = Boolean()
    inherit_cache = True
    sqlite = "(length(CAST({0} AS BLOB)) = length({0}))"
    postgresql = "(octet_length({0}) = length({0}))"


class _First(_DialectConstruct):
    type = String()
    inherit_cache = True
    sqlite = "json_extract({0}, '$[0]')"
    postgresql = "({0} ->> 0)"


class _Second(_DialectConstruct):
    type = BigInteger()
    inherit_cache = True
    sqlite = "json_extract({0}, '$[1]')"
    postgresql = "CAST({0} ->> 1 AS bigint)"


class _Kind(_DialectConstruct):
    type = String()
    inherit_cache = True
    sqlite = "json_type({0}, '$.' || {1})"
    postgresql = (
        f"CASE json_typeof({_JSON_VALUE_AT_KEY}) WHEN 'boolean' THEN CAST({_JSON_VALUE_AT_KEY} AS text)"
        f" WHEN 'string' THEN 'text' ELSE json_typeof({_JSON_VALUE_AT_KEY}) END"
    )


class _Members(_DialectConstruct):
    inherit_cache = True
    sqlite = "json_each({0}, '$.' || {1})"
    postgresql = (
        f"json_array_elements(CASE json_typeof({_JSON_VALUE_AT_KEY}) WHEN 'array' THEN {_JSON_VALUE_AT_KEY}"
        f" WHEN 'object' THEN (SELECT json_agg(each.value) FROM json_each({_JSON_VALUE_AT_KEY}) AS each)"
        f" ELSE json_build_array({_JSON_VALUE_AT_KEY}) END)"
    )


class _TextOf(_DialectConstruct):
    type = String()
    inherit_cache = True
    sqlite = "CASE {1} WHEN 'text' THEN {0} END"
    postgresql = "CASE json_typeof({0}) WHEN 'string' THEN {0} #>> '{{}}' END"


def json_list_param(name: str) -> Select[Any]:
    """Return the texts of a parameter that is a JSON list: one parameter for any number of texts."""
    return select(list_table(name).c.value)
