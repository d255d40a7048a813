"""A transfer: rounds that copy differences, a last round that blocks writers, and a full comparison."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any
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
    bindparam,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.schema import AddConstraint, DropConstraint

from conspectus.deferred import dataclass
from conspectus.errors import Conflict, NotFound, StorageError, StorageTooNew
from conspectus.ports import Progress
from conspectus.records.core.database import UNFINISHED, Database, history, make_tables, version_of
from conspectus.records.tables.core import VERSION, changes, collections, metadata
from conspectus.records.transfer.pages import EVERYTHING, FIRST_ROWS, Key, KeyedTable, KeyRange, RowPage, Sum

Constraint = UniqueConstraint | ForeignKeyConstraint

_WHOLE = (
    "SELECT set_config('row_security', 'off', true), set_config('statement_timeout', '0', true),"
    " set_config('idle_in_transaction_session_timeout', '0', true)"
)

NOT_MOVED = frozenset({"leases", "allowances", "purges", "sessions"})
"""Tables with transient data of running processes, and logins of browsers at the server that was."""

state = Table(
    "moving",
    MetaData(),
    Column("origin", String, nullable=False),
    Column("version", String, nullable=False),
    Column("run", String, nullable=False),
)
"""One row that exists until the transfer ends: what is transferred, and by which run."""


def moved_tables() -> list[Table]:
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
        with self.database.translated():
            self.database.prepare()
            with self.database.migrating() as connection:
                return self._begun(connection, origin)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Return a transaction of this run. Raises Conflict if another run has taken over."""
        with self.database.translated(), self.database.migrating() as connection:
            is_open = version_of(connection) == UNFINISHED
            if not is_open or connection.execute(select(state.c.run)).scalar() != self._run:
                raise Conflict("move", self.database.name, "another run has taken over")
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Return a snapshot of the target."""
        with self.database.translated(), self.database.reading.connect() as connection, connection.begin():
            see_all(connection)
            yield connection

    def make_equal(self, table: KeyedTable, page: RowPage) -> int:
        """Make the rows of a range equal to a page. Returns how many were stored or deleted."""
        with self.writing() as connection:
            there: dict[Key, int] = {}
            for found in table.pages(connection, page.keys):
                there.update(found.hashes)
            stale = [key for key, is_there in there.items() if page.hashes.get(key) != is_there]
            missing = [row for key, row in page.rows.items() if there.get(key) != page.hashes[key]]
            table.remove(connection, stale)
            table.store(connection, missing)
            return len(stale) + len(missing)

    def end(self) -> None:
        """Restore constraints and indexes and make the store usable, atomically."""
        with self.writing() as connection:
            see_all(connection)
            if connection.dialect.name == "postgresql":
                for constraint in _constraints():
                    connection.execute(AddConstraint(constraint, isolate_from_table=False))
                _count_on(connection)
            for index in _indexes():
                index.create(connection)
            connection.execute(update(history).values(version_num=VERSION))
            state.drop(connection)

    def _begun(self, connection: Connection, origin: str) -> bool:
        tables = set(inspect(connection).get_table_names())
        if not tables:
            make_tables(connection)
            _loosen(connection)
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
    every = [each for table in metadata.sorted_tables for each in table.constraints]
    unique = [each for each in every if isinstance(each, UniqueConstraint)]
    return [*unique, *(each for each in every if isinstance(each, ForeignKeyConstraint))]


def _loosen(connection: Connection) -> None:
    for index in _indexes():
        index.drop(connection)
    if connection.dialect.name == "postgresql":
        for constraint in reversed(_constraints()):
            connection.execute(DropConstraint(constraint))


def _count_on(connection: Connection) -> None:
    """Continue the sequences of the server after the existing numbers."""
    for table in moved_tables():
        for column in table.primary_key.columns:
            if isinstance(column.type, Integer) and column.autoincrement is not False:
                next_one = select(func.coalesce(func.max(column), 0) + 1).scalar_subquery()
                sequence = func.pg_get_serial_sequence(table.name, column.name)
                connection.execute(select(func.setval(sequence, next_one, False)))


FOLLOWED = frozenset({"chunks", "vectors", "mentions"})
"""Tables whose keys begin with a chunk number, and whose changes are in the change log."""

_SINCE = select(changes.c.first, changes.c.last).where(
    changes.c.collection == bindparam("of"), changes.c.sequence > bindparam("after")
)
_COLLECTIONS = select(
    collections.c.id,
    collections.c.sequence,
    collections.c.created,
    collections.c.model,
    collections.c.dimensions,
    collections.c.version,
    collections.c.names_to,
)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks with numbers in a range, both ends included."""

    first: int
    last: int

    def touch(self, keys: KeyRange) -> bool:
        """Return whether a row of one of these chunks may be in a range of keys."""
        begins_before = keys.upto is None or self.first <= keys.upto[0]
        return begins_before and (keys.after is None or self.last >= keys.after[0])


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The sequence and identity of each collection at the time of a snapshot."""

    sequences: Mapping[str, int]
    collections: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, connection: Connection) -> "StoreSnapshot":
        """Return the snapshot data of a transaction."""
        found = connection.execute(_COLLECTIONS).all()
        return cls({row[0]: row[1] for row in found}, {row[0]: tuple(row[2:]) for row in found})


def changed_since(earlier: StoreSnapshot, connection: Connection) -> Sequence[Chunks] | None:
    """Return the chunks whose rows may have changed since an earlier snapshot; None for all."""
    now = StoreSnapshot.of(connection)
    found = list(_named(earlier, now))
    if None in found:
        return None
    steps = [
        Chunks(row.first, row.last)
        for collection, sequence in now.sequences.items()
        if sequence != (then := earlier.sequences.get(collection, 0))
        for row in connection.execute(_SINCE, {"of": collection, "after": then})
    ]
    return _joined([*steps, *(each for each in found if each is not None)])


def _named(earlier: StoreSnapshot, now: StoreSnapshot) -> Iterable[Chunks | None]:
    """Return chunks whose entities were extracted meanwhile; None if the log does not tell."""
    for collection, (*then, names_then) in earlier.collections.items():
        *same, names_now = now.collections.get(collection, (None,))
        if same != then or (names_then or 0) > (names_now or 0):
            yield None
        elif names_now is not None:
            yield Chunks((names_then or 0) + 1, names_now)


def _joined(found: Iterable[Chunks]) -> list[Chunks]:
    joined: list[Chunks] = []
    for each in sorted(found, key=lambda chunks: chunks.first):
        if joined and each.first <= joined[-1].last + 1:
            joined[-1] = Chunks(joined[-1].first, max(joined[-1].last, each.last))
        else:
            joined.append(each)
    return joined


LAST_ROWS = 1_000
MAX_ROUNDS = 10
SILENT_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class TableMoved:
    """A table's checksums in source and target."""

    table: str
    source: Sum
    target: Sum


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a transfer.

    The target has the state of the source at `moment`, after change `sequence`. For `held_seconds` before
    that, writers of the source waited.
    """

    tables: Sequence[TableMoved]
    moment: datetime
    sequence: int
    held_seconds: float
    rounds: int
    written: int
    resumed: bool


class TableMove:
    """A table with remembered page checksums, so that later rounds read the target only for changed pages."""

    def __init__(self, table: KeyedTable) -> None:
        self.table = table
        self._known: list[tuple[KeyRange, Sum | None]] = [(EVERYTHING, None)]

    @property
    def rows(self) -> int:
        """The number of rows of the source when it was last read."""
        return sum(before.rows for _, before in self._known if before is not None)

    def bring(
        self,
        source: Connection,
        target: Target,
        changed: Sequence[Chunks] | None,
        *,
        read: Callable[[int], None],
    ) -> int:
        """Copy differences; of a table in the change log, only around changed chunks."""
        written, known = 0, self._known
        self._known = []
        for keys, before in known:
            if changed is not None and not any(each.touch(keys) for each in changed):
                self._known.append((keys, before))
                continue
            expected = FIRST_ROWS if before is None else before.rows
            for page in self.table.pages(source, keys, expected=expected):
                if (page.keys, page.sum) != (keys, before):
                    written += target.make_equal(self.table, page)
                self._known.append((page.keys, page.sum))
                read(len(page.rows))
        return written


class Move:
    """A transfer from one database to another, `without` tables that the caller transfers."""

    def __init__(
        self,
        source: Database,
        target: Target,
        *,
        progress: Progress | None = None,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._tables = [TableMove(KeyedTable(table)) for table in moved_tables() if table.name not in without]
        self._view: StoreSnapshot | None = None

    def run(self, *, origin: str, at_last: Callable[[], None]) -> Moved:
        """Run the transfer; `at_last` is called while writers of the source wait.

        Raises NotFound, StorageTooNew or StorageError for a source that cannot be transferred, and Conflict
        for a target that is not empty.
        """
        with self._source.translated():
            with _snapshot(self._source) as view:
                _require_newest(view, self._source.name)
            resumed = self._target.begin(origin)
            rounds, written = self._rounds()
            with ExitStack() as stack:
                with self._source.writing.begin() as lock:
                    began = time.monotonic()
                    view = stack.enter_context(_snapshot(self._source))
                    written += self._round(view, lock)
                    _run_in_thread(lock, at_last)
                    moment, held = datetime.now(UTC), time.monotonic() - began
                sequence = max(StoreSnapshot.of(view).sequences.values(), default=0)
                tables = self._compared(view)
            self._target.end()
        return Moved(tables, moment, sequence, held, rounds + 1, written, resumed)

    def _rounds(self) -> tuple[int, int]:
        """Copy differences until so few changes arrive that writers can wait for the rest."""
        total = rounds = 0
        brought = LAST_ROWS + 1
        while brought > LAST_ROWS and rounds < MAX_ROUNDS:
            with _snapshot(self._source) as view:
                brought = self._round(view)
            total, rounds = total + brought, rounds + 1
        return rounds, total

    def _round(self, view: Connection, lock: Connection | None = None) -> int:
        """Make the target equal to a snapshot of the source. Returns how many rows were changed."""
        is_first = self._view is None
        changed = None if self._view is None else changed_since(self._view, view)
        self._view = StoreSnapshot.of(view)
        # Counting reads whole tables, for which no writer should wait.
        total = sum(move.table.count(view) for move in self._tables) if is_first else self._rows
        counted = self._counted("moving" if is_first else "what came since", total, lock)
        return sum(
            move.bring(view, self._target, changed if move.table.name in FOLLOWED else None, read=counted)
            for move in self._tables
        )

    def _compared(self, view: Connection) -> Sequence[TableMoved]:
        """Compare every table on both sides. Raises StorageError if they differ."""
        counted = self._counted("comparing", self._rows)
        found = []
        with self._target.reading() as there:
            for move in self._tables:
                source = move.table.total(view, read=counted)
                found.append(TableMoved(move.table.name, source, move.table.total(there)))
            if differing := ", ".join(each.table for each in found if each.source != each.target):
                name = self._target.database.name
                raise StorageError(f"{name} differs from the source in {differing}; move once more")
            check_references(there)
        return found

    @property
    def _rows(self) -> int:
        """Return the number of rows of the source when it was last read."""
        return sum(move.rows for move in self._tables)

    def _counted(self, what: str, total: int, lock: Connection | None = None) -> Callable[[int], None]:
        """Return a progress callback for reading pages."""
        done = 0

        def read(rows: int) -> None:
            nonlocal done
            done += rows
            if lock is not None:
                _speak(lock)
            if self._progress is not None:
                self._progress(what, min(done, total), total)

        return read


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    """Return a snapshot of all rows for the block."""
    with database.reading.connect() as connection, connection.begin():
        see_all(connection)
        version_of(connection)
        yield connection


def _run_in_thread(lock: Connection, work: Callable[[], None]) -> None:
    """Run in another thread for any duration while the lock is kept."""
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(work)
        while not wait([running], timeout=SILENT_SECONDS).done:
            _speak(lock)
        running.result()


def _speak(lock: Connection) -> None:
    """Send a statement: a server may terminate a transaction that is idle for too long."""
    lock.exec_driver_sql("SELECT 1")


def _require_newest(connection: Connection, name: str) -> None:
    """Raise NotFound, StorageTooNew or StorageError for a store that cannot be transferred."""
    stored = version_of(connection)
    if stored is None:
        raise NotFound("store at", name)
    if stored == UNFINISHED:
        raise StorageError(f"{name}: a transfer into it is unfinished; finish it first")
    if stored > VERSION:
        raise StorageTooNew(name, stored)
    if stored < VERSION:
        raise StorageError(
            f"{name} has version {stored}, older than this program: open it once, then move it"
        )
