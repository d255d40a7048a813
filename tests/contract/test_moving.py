"""Moving all rows of a store into another, between every two kinds of database."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conspectus.errors import Conflict, NotFound, StorageError, StorageTooNew
from conspectus.records.databases import bring_up_to_date
from conspectus.records.moving.move import Move, Moved
from conspectus.records.moving.target import NOT_MOVED, Target
from conspectus.records.transactions import Database, transact
from conspectus.testing.postgres_server import PostgresProcess
from tests.moving_places import contents, database, fill, shape

PAIRS = [(a, b) for a in ("sqlite", "postgresql") for b in ("sqlite", "postgresql")]
Make = Callable[[str], Database]


@pytest.fixture
def empty(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes databases with nothing in them."""
    with ExitStack() as opened:

        def make(kind: str) -> Database:
            if kind == "sqlite":
                address = str(tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite")
            else:
                server: PostgresProcess = request.getfixturevalue("postgres")
                address = opened.enter_context(server.fresh(empty=True))
            return opened.enter_context(database(address))

        yield make


def filled(made: Database, rows: int = 3) -> Database:
    bring_up_to_date(made)
    with made.migrating() as connection:
        fill(connection, rows=rows)
    return made


def moved(source: Database, target: Database) -> Moved:
    return Move(source, Target(target), None).run(origin=source.name, at_last=lambda: None)


def everything(of: Database, *, without: frozenset[str] = frozenset()) -> dict[str, list[object]]:
    return transact(of, of.reading, lambda connection: contents(connection, without=without))


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_every_row_of_every_table_arrives(empty: Make, kind: str, other: str) -> None:
    source, target = filled(empty(kind)), empty(other)
    outcome = moved(source, target)
    kept = everything(source, without=NOT_MOVED)
    assert [name for name, rows in kept.items() if not rows] == []
    assert everything(target, without=NOT_MOVED) == kept
    assert {each.table for each in outcome.tables} == set(kept) - {"alembic_version"}
    assert all(each.source == each.target and each.source.rows for each in outcome.tables)
    assert not any(everything(target)[name] for name in NOT_MOVED)


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_the_target_is_what_a_new_store_is(empty: Make, kind: str, other: str) -> None:
    source, target, new = empty(kind), empty(other), empty(other)
    bring_up_to_date(source)
    bring_up_to_date(new)
    outcome = moved(source, target)
    assert [each.source.rows for each in outcome.tables if each.table != "counters"] == [0] * (
        len(outcome.tables) - 1
    )
    assert transact(target, target.reading, shape) == transact(new, new.reading, shape)
    bring_up_to_date(target)
