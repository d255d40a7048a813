"""Moving all rows of a store into another, between every two kinds of database."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from tests.filled_databases import contents, database, fill, shape
from tests.support.postgres_server import PostgresProcess

from conspectus.errors import Conflict, NotFound, StorageBusy, StorageError, StorageTooNew
from conspectus.records.core.database import (
    Database,
    DatabaseAccess,
    database_at,
    migrate_if_needed,
    transact,
)
from conspectus.records.core.row_security import install_row_security
from conspectus.records.transfer.target import NOT_MOVED, Target
from conspectus.records.transfer.transfer import Move, Moved

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


def fill_database(target_database: Database, rows: int = 3) -> Database:
    migrate_if_needed(target_database)
    with target_database.begin_migration() as connection:
        fill(connection, rows=rows)
    return target_database


def move_database(source: Database, target: Database, at_last: Callable[[], None] = lambda: None) -> Moved:
    return Move(source, Target(target)).run(origin=source.name, at_last=at_last)


def read_all_rows(of: Database, *, without: frozenset[str] = frozenset()) -> dict[str, list[object]]:
    return transact(of, of.reading, lambda connection: contents(connection, without=without))


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_every_row_of_every_table_arrives(empty: Make, kind: str, other: str) -> None:
    source, target = fill_database(empty(kind)), empty(other)
    outcome = move_database(source, target)
    expected = read_all_rows(source, without=NOT_MOVED)
    assert [name for name, rows in expected.items() if not rows] == []
    assert read_all_rows(target, without=NOT_MOVED) == expected
    assert {table.table for table in outcome.tables} == set(expected) - {"alembic_version"}
    assert all(table.source == table.target and table.source.rows for table in outcome.tables)
    assert not any(read_all_rows(target)[name] for name in NOT_MOVED)


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_the_target_is_what_a_new_store_is(empty: Make, kind: str, other: str) -> None:
    source, target, new = empty(kind), empty(other), empty(other)
    migrate_if_needed(source)
    migrate_if_needed(new)
    outcome = move_database(source, target)
    assert [table.source.rows for table in outcome.tables if table.table != "counters"] == [0] * (
        len(outcome.tables) - 1
    )
    assert transact(target, target.reading, shape) == transact(new, new.reading, shape)
    migrate_if_needed(target)


class Interrupted(Exception):
    """What ends a move in the middle."""


def interrupt() -> None:
    raise Interrupted


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_unfinished_target_cannot_be_opened_or_moved_on(empty: Make, kind: str) -> None:
    source, target = fill_database(empty("sqlite")), empty(kind)
    with pytest.raises(Interrupted):
        move_database(source, target, interrupt)
    with pytest.raises(StorageError, match="a transfer into it is unfinished"):
        migrate_if_needed(target)
    with pytest.raises(StorageError, match="a transfer into it is unfinished"):
        move_database(target, empty("sqlite"))
    outcome = move_database(source, target)
    assert outcome.resumed
    assert outcome.written == 0
    migrate_if_needed(target)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_changed_while_it_was_interrupted_is_brought_over(empty: Make, kind: str) -> None:
    source, target = fill_database(empty(kind), rows=40), empty(kind)
    with pytest.raises(Interrupted):
        move_database(source, target, interrupt)
    with source.writing.begin() as connection:
        mangle(connection)
    move_database(source, target)
    assert read_all_rows(target, without=NOT_MOVED) == read_all_rows(source, without=NOT_MOVED)


def mangle(connection: Connection) -> None:
    """Delete, change and add rows; two documents exchange their keys, and two collections their names."""
    fill(connection, rows=5, start=1000)
    connection.execute(text("DELETE FROM collections WHERE id LIKE '%-000007 %'"))
    connection.execute(text("DELETE FROM chunks WHERE id BETWEEN 11 AND 14"))
    for table, column, row in (("collections", "name", "id"), ("documents", "key", "number")):
        first, second = connection.execute(
            text(f'SELECT "{row}", "{column}" FROM {table} ORDER BY "{row}" LIMIT 2')
        ).all()
        change = text(f'UPDATE {table} SET "{column}" = :value WHERE "{row}" = :key')
        for key, value in ((first[0], "aside"), (second[0], first[1]), (first[0], second[1])):
            connection.execute(change, {"key": key, "value": value})


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_target_that_holds_anything_else_is_refused(empty: Make, kind: str) -> None:
    source, stored, strange, newer = (
        fill_database(empty(kind)),
        fill_database(empty(kind)),
        empty(kind),
        empty(kind),
    )
    with strange.writing.begin() as connection:
        connection.execute(text("CREATE TABLE customers (name TEXT)"))
    migrate_if_needed(newer)
    with newer.writing.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    before = read_all_rows(stored)
    for target, reason in ((stored, "a store"), (strange, "other tables"), (newer, "a store")):
        with pytest.raises(Conflict, match=reason):
            move_database(source, target)
    assert read_all_rows(stored) == before
    assert read_all_rows(strange) == {"customers": []}


def test_the_target_of_another_move_is_refused(empty: Make) -> None:
    source, other, target = fill_database(empty("sqlite")), fill_database(empty("sqlite")), empty("sqlite")
    with pytest.raises(Interrupted):
        move_database(source, target, interrupt)
    with pytest.raises(Conflict, match="a move of"):
        move_database(other, target)


def test_only_a_store_of_this_version_is_moved(empty: Make) -> None:
    source, target = empty("sqlite"), empty("sqlite")
    with pytest.raises(NotFound):
        move_database(source, target)
    migrate_if_needed(source)
    for version, kind, reason in (("0000", StorageError, "open it once"), ("9999", StorageTooNew, "newer")):
        with source.writing.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :v"), {"v": version})
        with pytest.raises(kind, match=reason):
            move_database(source, target)
    assert read_all_rows(target) == {}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_of_two_runs_the_later_one_goes_on(empty: Make, kind: str) -> None:
    source, target = fill_database(empty(kind)), empty(kind)

    def take_over() -> None:
        Target(target).begin(source.name)

    with pytest.raises(Conflict, match="another run has taken over"):
        move_database(source, target, take_over)
    move_database(source, target)


@contextmanager
def impatient(of: Database) -> Iterator[Database]:
    """The same database, where locks, and servers with a silent transaction, are waited for a second."""
    address = of.reading.url.render_as_string(hide_password=False).replace("+psycopg", "")
    path = address.removeprefix("sqlite:///")
    opened = database_at(path, DatabaseAccess(busy_seconds=1, connections=4))
    yield opened
    opened.reading.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_writers_wait_for_the_last_round_and_for_no_other(empty: Make, kind: str) -> None:
    source, target = fill_database(empty(kind)), empty(kind)

    def write() -> None:
        with impatient(source) as writer, pytest.raises(StorageBusy):
            transact(writer, writer.writing, lambda connection: None)

    move_database(source, target, write)


def test_no_side_gives_up_while_the_other_is_read_or_written(empty: Make) -> None:
    pauses = {"what came since": [0.6, 0.6], "comparing": [1.3], "files": [1.3]}

    def progress(what: str, done: int, total: int) -> None:
        if pauses.get(what):
            time.sleep(pauses[what].pop())

    def carry() -> None:
        progress("files", 1, 1)

    with impatient(fill_database(empty("postgresql"))) as source, impatient(empty("postgresql")) as target:
        Move(source, Target(target), progress=progress).run(origin="here", at_last=carry)
        assert read_all_rows(target, without=NOT_MOVED) == read_all_rows(source, without=NOT_MOVED)
    assert not any(pauses.values())


@pytest.fixture
def stranger(postgres: PostgresProcess) -> Iterator[str]:
    """A user of the server who owns nothing."""
    postgres.run("CREATE ROLE stranger LOGIN")
    yield "stranger"
    postgres.run("DROP ROLE stranger")


def test_rows_that_are_hidden_from_the_user_are_not_left_behind(
    postgres: PostgresProcess, tmp_path: Path, stranger: str
) -> None:
    with postgres.fresh() as url, database(url) as owned, database(str(tmp_path / "there")) as target:
        with owned.writing.begin() as connection:
            install_row_security(connection)
            connection.execute(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {stranger}"))
        with (
            database(url.replace("postgres@", f"{stranger}@")) as source,
            pytest.raises(StorageError, match="row-level security"),
        ):
            move_database(source, target)
