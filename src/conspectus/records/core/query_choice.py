"""Reading the rows of some names in many sources by whichever is less: a name's rows, or the sources.

One seek for each name and source takes long where a user has thousands of conversations, and to go through
all rows of a name where it is common among other people.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, literal_column, select

from conspectus.records.core.dialects import as_list, listed

FEW: Final = 50
"""Of so many sources each is asked for."""


def given(name: str) -> Select[Any]:
    """The texts of a parameter that is a list as JSON: one parameter, however many there are."""
    return select(listed(name).c.value)


def one_of(source: ColumnElement[str], name: str, *, by_name: bool) -> ColumnElement[bool]:
    """Whether a source is one of a parameter; with `by_name` no index is asked for it."""
    return (source.concat("") if by_name else source).in_(given(name))


def rare(column: ColumnElement[str], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Those of the names `ids` that have at most `many` rows."""
    wanted = listed("ids")
    beyond: Select[Any] = select(literal_column("1")).where(column == wanted.c.value, *conditions)
    return select(wanted.c.value).where(
        beyond.limit(literal_column("1")).offset(bindparam("many")).scalar_subquery().is_(None)
    )


def parted(
    connection: Connection,
    few_rows: Select[Any],
    names: Sequence[str],
    sources: Sequence[str],
    **more: str,
) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """The names in at most two parts, each with whether to read it by name, as `ids` and `sources`."""
    asked = list(dict.fromkeys(names))
    of = {"sources": as_list(dict.fromkeys(sources)), **more}
    short: set[str] = set()
    if asked and len(sources) > FEW:
        rows = connection.execute(few_rows, {"ids": as_list(asked), "many": len(sources), **more})
        short = set(rows.scalars())
    for by_name in (True, False):
        part = [each for each in asked if (each in short) is by_name]
        if part:
            yield by_name, {"ids": as_list(part), **of}
