"""Two ways to look up names within sources: by name, or by source."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, literal_column, select

from conspectus.records.core.dialects import as_list, given, listed

FEW: Final = 50
"""Up to this number of sources, each is read individually."""


def one_of(source: ColumnElement[str], name: str, *, by_name: bool) -> ColumnElement[bool]:
    """Return whether a source is in a parameter; with `by_name`, without using an index on it."""
    return (source.concat("") if by_name else source).in_(given(name))


def rare(column: ColumnElement[str], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Return those of the names `ids` that have at most `many` rows."""
    wanted = listed("ids")
    beyond: Select[Any] = select(literal_column("1")).where(column == wanted.c.value, *conditions)
    return select(wanted.c.value).where(
        beyond.limit(literal_column("1")).offset(bindparam("many")).scalar_subquery().is_(None)
    )


def parted(
    connection: Connection,
    few_rows: Select[Any],
    names: Iterable[str],
    sources: Sequence[str],
    written: Callable[[Sequence[str]], str] = as_list,
    **more: str,
) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Split the names in up to two parts, `ids` and `sources`, by the cheaper way to read them.

    `written` makes the parameter `ids` of names.

    Either the rows of a name are read, or the sources. One lookup per name and source is slow for thousands
    of conversations, and so is reading all rows of a frequent name.
    """
    asked = list(dict.fromkeys(names))
    of = {"sources": as_list(dict.fromkeys(sources)), **more}
    short: set[str] = set()
    if asked and len(sources) > FEW:
        rows = connection.execute(few_rows, {"ids": as_list(asked), "many": len(sources), **more})
        short = set(rows.scalars())
    for by_name in (True, False):
        part = [each for each in asked if (each in short) is by_name]
        if part:
            yield by_name, {"ids": written(part), **of}
