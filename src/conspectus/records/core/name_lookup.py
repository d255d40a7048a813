"""Two ways to look up names within sources: by name, or by source."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, literal_column, select

from conspectus.records.core.dialects import json_list, json_list_param, listed

MAX_SOURCES_READ_ONE_BY_ONE: Final = 50
"""Up to this number of sources, each is read individually."""


def in_list(source: ColumnElement[str], name: str, *, by_name: bool) -> ColumnElement[bool]:
    """Return whether a source is in a parameter; with `by_name`, without using an index on it."""
    return (source.concat("") if by_name else source).in_(json_list_param(name))


def rare(column: ColumnElement[str], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Return those of the names `ids` that have at most `many` rows."""
    names = listed("ids")
    beyond: Select[Any] = select(literal_column("1")).where(column == names.c.value, *conditions)
    return select(names.c.value).where(
        beyond.limit(literal_column("1")).offset(bindparam("many")).scalar_subquery().is_(None)
    )


def split_by_cost(
    connection: Connection,
    few_rows: Select[Any],
    names: Iterable[str],
    sources: Sequence[str],
    written: Callable[[Sequence[str]], str] = json_list,
    **more: str,
) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Split the names in up to two parts, `ids` and `sources`, by the cheaper way to read them.

    `written` makes the parameter `ids` of names.

    Either the rows of a name are read, or the sources. One lookup per name and source is slow for thousands
    of conversations, and so is reading all rows of a frequent name.
    """
    distinct_names = list(dict.fromkeys(names))
    of = {"sources": json_list(dict.fromkeys(sources)), **more}
    short: set[str] = set()
    if distinct_names and len(sources) > MAX_SOURCES_READ_ONE_BY_ONE:
        rows = connection.execute(few_rows, {"ids": json_list(distinct_names), "many": len(sources), **more})
        short = set(rows.scalars())
    for by_name in (True, False):
        part = [name for name in distinct_names if (name in short) is by_name]
        if part:
            yield by_name, {"ids": written(part), **of}
