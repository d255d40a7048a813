"""A transfer: rounds that copy differences, a last round that blocks writers, and a full comparison."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from sqlalchemy import (
    Connection,
)

from conspectus.deferred import dataclass
from conspectus.errors import NotFound, StorageError, StorageTooNew
from conspectus.ports import Progress
from conspectus.records.core.database import Database
from conspectus.records.core.schema import UNFINISHED, version_of
from conspectus.records.tables.core import VERSION
from conspectus.records.transfer.changed_chunks import FOLLOWED, Chunks, StoreSnapshot, list_changed_chunks
from conspectus.records.transfer.checksums import Sum
from conspectus.records.transfer.pages import EVERYTHING, FIRST_PAGE_ROWS, KeyedTable, KeyRange
from conspectus.records.transfer.target import Target, check_references, list_moved_tables, see_all

MAX_LAST_ROUND_ROWS = 1_000
MAX_ROUNDS = 10
MAX_SILENT_SECONDS = 0.25


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

    def copy_differences(
        self,
        source: Connection,
        target: Target,
        changed: Sequence[Chunks] | None,
        *,
        read: Callable[[int], None],
    ) -> int:
        """Copy differences; of a table in the change log, only around changed chunks."""
        written, pages = 0, self._known
        self._known = []
        for keys, before in pages:
            if changed is not None and not any(chunks.touch(keys) for chunks in changed):
                self._known.append((keys, before))
                continue
            expected = FIRST_PAGE_ROWS if before is None else before.rows
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
        self._tables = [
            TableMove(KeyedTable(table)) for table in list_moved_tables() if table.name not in without
        ]
        self._view: StoreSnapshot | None = None

    def run(self, *, origin: str, at_last: Callable[[], None]) -> Moved:
        """Run the transfer; `at_last` is called while writers of the source wait.

        Raises NotFound, StorageTooNew or StorageError for a source that cannot be transferred, and Conflict
        for a target that is not empty.
        """
        with self._source.convert_errors():
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
                    moment, held_seconds = datetime.now(UTC), time.monotonic() - began
                sequence = max(StoreSnapshot.of(view).sequences.values(), default=0)
                tables = self._compare_tables(view)
            self._target.end()
        return Moved(tables, moment, sequence, held_seconds, rounds + 1, written, resumed)

    def _rounds(self) -> tuple[int, int]:
        """Copy differences until so few changes arrive that writers can wait for the rest."""
        total = rounds = 0
        copied = MAX_LAST_ROUND_ROWS + 1
        while copied > MAX_LAST_ROUND_ROWS and rounds < MAX_ROUNDS:
            with _snapshot(self._source) as view:
                copied = self._round(view)
            total, rounds = total + copied, rounds + 1
        return rounds, total

    def _round(self, view: Connection, lock: Connection | None = None) -> int:
        """Make the target equal to a snapshot of the source. Returns how many rows were changed."""
        is_first = self._view is None
        changed = None if self._view is None else list_changed_chunks(self._view, view)
        self._view = StoreSnapshot.of(view)
        # Counting reads whole tables, for which no writer should wait.
        total = sum(move.table.count(view) for move in self._tables) if is_first else self._rows
        counted = self._count_progress("moving" if is_first else "what came since", total, lock)
        return sum(
            move.copy_differences(
                view, self._target, changed if move.table.name in FOLLOWED else None, read=counted
            )
            for move in self._tables
        )

    def _compare_tables(self, view: Connection) -> Sequence[TableMoved]:
        """Compare every table on both sides. Raises StorageError if they differ."""
        counted = self._count_progress("comparing", self._rows)
        tables = []
        with self._target.open_snapshot() as there:
            for move in self._tables:
                source = move.table.total(view, read=counted)
                tables.append(TableMoved(move.table.name, source, move.table.total(there)))
            if differing := ", ".join(table.table for table in tables if table.source != table.target):
                name = self._target.database.name
                raise StorageError(f"{name} differs from the source in {differing}; move once more")
            check_references(there)
        return tables

    @property
    def _rows(self) -> int:
        """Return the number of rows of the source when it was last read."""
        return sum(move.rows for move in self._tables)

    def _count_progress(self, step: str, total: int, lock: Connection | None = None) -> Callable[[int], None]:
        """Return a progress callback for reading pages."""
        done = 0

        def read(rows: int) -> None:
            nonlocal done
            done += rows
            if lock is not None:
                _keep_alive(lock)
            if self._progress is not None:
                self._progress(step, min(done, total), total)

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
        while not wait([running], timeout=MAX_SILENT_SECONDS).done:
            _keep_alive(lock)
        running.result()


def _keep_alive(lock: Connection) -> None:
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
