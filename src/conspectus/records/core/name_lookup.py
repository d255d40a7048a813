"""Two ways to look up names within sources: by name, or by source."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, literal_column, select

from conspectus.records.core.dialects import json_list, json_list_param, list_table

MAX_SOURCES_READ_ONE_BY_ONE: Final = 50
"""Up to this number of sources, each is read individually."""


def in_list(source: ColumnElement[str], name: str, *, by_name: bool) -> ColumnElement[bool]:
    """Return the condition that a source is in the list of a parameter.

    With `by_name`, the database uses an index on names instead of the one on sources.
    """
    # The index on sources does not have this expression.
    column = source.concat("") if by_name else source
    return column.in_(json_list_param(name))


def select_rare(column: ColumnElement[str], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Return a query of those names of the parameter `ids` that have at most `many` rows."""
    names = list_table("ids")
    rows: Select[Any] = select(literal_column("1")).where(column == names.c.value, *conditions)
    row_beyond = rows.limit(literal_column("1")).offset(bindparam("many")).scalar_subquery()
    return select(names.c.value).where(row_beyond.is_(None))


def split_by_cost(
    connection: Connection,
    few_rows: Select[Any],
    names: Iterable[str],
    sources: Sequence[str],
    to_parameter: Callable[[Sequence[str]], str] = json_list,
    **parameters: str,
) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Split names by the cheaper way to read their rows: by name, or by source.

    One lookup per name and source is slow for thousands of conversations, and so is reading all rows of a
    frequent name. Yields whether to read by name, and the parameters of the query; `to_parameter` makes the
    parameter `ids` of names.
    """
    distinct_names = list(dict.fromkeys(names))
    source_list = json_list(dict.fromkeys(sources))
    rare_names: set[str] = set()
    if distinct_names and len(sources) > MAX_SOURCES_READ_ONE_BY_ONE:
        name_list = json_list(distinct_names)
        rows = connection.execute(few_rows, {"ids": name_list, "many": len(sources), **parameters})
        rare_names = set(rows.scalars())
    for by_name in (True, False):
        part = [name for name in distinct_names if (name in rare_names) is by_name]
        if part:
            yield by_name, {"ids": to_parameter(part), "sources": source_list, **parameters}
