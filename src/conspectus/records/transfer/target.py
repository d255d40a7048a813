"""The target of a transfer, which cannot be opened until the transfer ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import (
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.schema import AddConstraint, DropConstraint

from conspectus.errors import Conflict, StorageError
from conspectus.records.core.database import Database
from conspectus.records.core.schema import UNFINISHED, history, make_tables, version_of
from conspectus.records.tables.core import VERSION, metadata
from conspectus.records.transfer.pages import Key, KeyedTable, RowPage

Constraint = UniqueConstraint | ForeignKeyConstraint

_WHOLE = (
    "SELECT set_config('row_security', 'off', true), set_config('statement_timeout', '0', true),"
    " set_config('idle_in_transaction_session_timeout', '0', true)"
)

NOT_MOVED = frozenset({"leases", "allowances", "purges", "sessions", "invitations"})
"""Tables with transient data of running processes, and logins of browsers at the server that was."""

state = Table(
    "moving",
    MetaData(),
    Column("origin", String, nullable=False),
    Column("version", String, nullable=False),
    Column("run", String, nullable=False),
)
"""A table with one row until the transfer ends: the data that is transferred, and the run."""


def list_moved_tables() -> list[Table]:
    """Return every transferred table, in the order of references."""
    return [table for table in metadata.sorted_tables if table.name not in NOT_MOVED]


class Target:
    """The target store, which cannot be opened until the transfer ends."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._run = uuid4().hex

    def begin(self, origin: str) -> bool:
        """Create the target, or continue an earlier run of the same transfer. Returns whether it existed.

        Raises Conflict for a database that contains anything else.
        """
        with self.database.convert_errors():
            self.database.prepare()
            with self.database.begin_migration() as connection:
                return self._has_begun(connection, origin)

    @contextmanager
    def begin_write(self) -> Iterator[Connection]:
        """Return a transaction of this run. Raises Conflict if another run has taken over."""
        with self.database.convert_errors(), self.database.begin_migration() as connection:
            is_open = version_of(connection) == UNFINISHED
            if not is_open or connection.execute(select(state.c.run)).scalar() != self._run:
                raise Conflict("move", self.database.name, "another run has taken over")
            yield connection

    @contextmanager
    def open_snapshot(self) -> Iterator[Connection]:
        """Return a snapshot of the target."""
        with self.database.convert_errors(), self.database.reading.begin() as connection:
            see_all(connection)
            yield connection

    def make_equal(self, table: KeyedTable, page: RowPage) -> int:
        """Make the rows of a range equal to a page. Returns how many were stored or deleted."""
        with self.begin_write() as connection:
            target_hashes: dict[Key, int] = {}
            for target_page in table.pages(connection, page.keys):
                target_hashes.update(target_page.hashes)
            stale = [key for key, row_hash in target_hashes.items() if page.hashes.get(key) != row_hash]
            missing = [row for key, row in page.rows.items() if target_hashes.get(key) != page.hashes[key]]
            table.remove(connection, stale)
            table.store(connection, missing)
            return len(stale) + len(missing)

    def end(self) -> None:
        """Restore constraints and indexes and make the store usable, atomically."""
        with self.begin_write() as connection:
            see_all(connection)
            if connection.dialect.name == "postgresql":
                for constraint in _constraints():
                    connection.execute(AddConstraint(constraint, isolate_from_table=False))
                _continue_sequences(connection)
            for index in _indexes():
                index.create(connection)
            connection.execute(update(history).values(version_num=VERSION))
            state.drop(connection)

    def _has_begun(self, connection: Connection, origin: str) -> bool:
        tables = set(inspect(connection).get_table_names())
        if not tables:
            make_tables(connection)
            _drop_constraints(connection)
            state.create(connection)
            connection.execute(update(history).values(version_num=UNFINISHED))
            connection.execute(insert(state), {"origin": origin, "version": VERSION, "run": self._run})
            return False
        if state.name not in tables or version_of(connection) != UNFINISHED:
            what = "has been opened as a store" if history.name in tables else "holds other tables"
            reason = f"{what}; move to a folder or database that nothing was opened in or written to yet"
            raise Conflict("target", self.database.name, reason)
        begun = connection.execute(select(state.c.origin, state.c.version)).one()
        if (begun.origin, begun.version) != (origin, VERSION):
            reason = f"a move of {begun.origin} (version {begun.version}) into it has not ended"
            raise Conflict(
                "target", self.database.name, f"{reason}; finish that transfer, or empty the target"
            )
        connection.execute(update(state).values(run=self._run))
        return True


def see_all(connection: Connection) -> None:
    """Disable row security and timeouts for the rest of a transaction.

    Row security would hide rows from a user who does not own them, and rows hidden on both sides compare
    equal.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(_WHOLE))


def check_references(connection: Connection) -> None:
    """Raise StorageError for a dangling reference; a database that enforces references has none."""
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(1)
    for table, row, parent, _ in broken:
        raise StorageError(
            f"{table} row {row} refers to no row of {parent}; run `conspectus check` on the source"
        )


def _indexes() -> list[Index]:
    return [
        index
        for table in metadata.sorted_tables
        for index in sorted(table.indexes, key=lambda i: str(i.name))
    ]


def _constraints() -> list[Constraint]:
    """Return constraints, unique ones first, as others refer to them."""
    constraints = [constraint for table in metadata.sorted_tables for constraint in table.constraints]
    unique = [constraint for constraint in constraints if isinstance(constraint, UniqueConstraint)]
    references = [constraint for constraint in constraints if isinstance(constraint, ForeignKeyConstraint)]
    return [*unique, *references]


def _drop_constraints(connection: Connection) -> None:
    """Drop indexes and constraints, so that rows can be copied in any order and fast."""
    for index in _indexes():
        index.drop(connection)
    if connection.dialect.name == "postgresql":
        for constraint in reversed(_constraints()):
            connection.execute(DropConstraint(constraint))


def _continue_sequences(connection: Connection) -> None:
    """Continue the sequences of the server after the existing numbers."""
    for table in list_moved_tables():
        for column in table.primary_key.columns:
            if isinstance(column.type, Integer) and column.autoincrement is not False:
                next_one = select(func.coalesce(func.max(column), 0) + 1).scalar_subquery()
                sequence = func.pg_get_serial_sequence(table.name, column.name)
                connection.execute(select(func.setval(sequence, next_one, False)))
