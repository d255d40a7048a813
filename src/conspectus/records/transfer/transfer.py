"""A move: rounds that bring over what differs, a last one that writers wait for, and a comparison of all."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from conspectus.errors import NotFound, StorageError, StorageTooNew
from conspectus.ports import Progress
from conspectus.records.core.connect import UNFINISHED, version_of
from conspectus.records.core.database import Database
from conspectus.records.tables.core import VERSION, changes, collections, counters
from conspectus.records.transfer.checksums import Sum
from conspectus.records.transfer.pages import EVERYTHING, FIRST_ROWS, KeyedTable, KeyRange
from conspectus.records.transfer.target import Target, check_references, moved_tables, see_all

FOLLOWED = frozenset({"chunks", "vectors", "mentions"})
"""Tables whose keys begin with the number of a chunk, and that change only with the history."""

_SEQUENCE = select(counters.c.value).where(counters.c.name == "change")
_COLLECTIONS = select(
    collections.c.id,
    collections.c.created,
    collections.c.model,
    collections.c.dimensions,
    collections.c.version,
    collections.c.names_to,
)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks whose numbers are from one to another, both included."""

    first: int
    last: int

    def touch(self, keys: KeyRange) -> bool:
        """Whether a row of one of these chunks may be in a range of keys."""
        begins_before = keys.upto is None or self.first <= keys.upto[0]
        return begins_before and (keys.after is None or self.last >= keys.after[0])


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """How far the history went when a store was looked at."""

    sequence: int
    collections: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, connection: Connection) -> "StoreSnapshot":
        """The view that a transaction has."""
        found = {row[0]: tuple(row[1:]) for row in connection.execute(_COLLECTIONS)}
        return cls(connection.execute(_SEQUENCE).scalar_one(), found)


def changed_since(earlier: StoreSnapshot, connection: Connection) -> Sequence[Chunks] | None:
    """Chunks of which rows may have come, changed or gone since the earlier view; None for any of them."""
    now = StoreSnapshot.of(connection)
    found = list(_named(earlier, now))
    if None in found:
        return None
    since = select(changes.c.first, changes.c.last).where(changes.c.sequence > earlier.sequence)
    steps = [Chunks(row.first, row.last) for row in connection.execute(since)]
    return _joined([*steps, *(each for each in found if each is not None)])


def _named(earlier: StoreSnapshot, now: StoreSnapshot) -> Iterable[Chunks | None]:
    """Chunks that names were found in meanwhile; None where the history does not tell what happened."""
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
MOST_ROUNDS = 10
SILENT_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class TableMoved:
    """A table as it was read from the source and from the target when all was there."""

    table: str
    source: Sum
    target: Sum


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did. The target is the source as it was at `moment`, after change `sequence`.

    For `held_seconds` before that, writers of the source waited.
    """

    tables: Sequence[TableMoved]
    moment: datetime
    sequence: int
    held_seconds: float
    rounds: int
    written: int
    resumed: bool


class TableMove:
    """A table whose pages are remembered, so that a later round reads the target only where they changed."""

    def __init__(self, table: KeyedTable) -> None:
        self.table = table
        self._known: list[tuple[KeyRange, Sum | None]] = [(EVERYTHING, None)]

    @property
    def rows(self) -> int:
        """How many rows the source had when it was last read."""
        return sum(before.rows for _, before in self._known if before is not None)

    def bring(
        self,
        source: Connection,
        target: Target,
        changed: Sequence[Chunks] | None,
        *,
        read: Callable[[int], None],
    ) -> int:
        """Bring over what differs, of a table that is followed only where chunks changed."""
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
    """From one database into another, `without` what the caller moves by other means."""

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
        """Move everything; `at_last` is called while writers of the source wait.

        Raises NotFound, StorageTooNew or StorageError for a source that cannot be moved, and Conflict for a
        target that is not empty.
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
                    _run_beside(lock, at_last)
                    moment, held = datetime.now(UTC), time.monotonic() - began
                sequence = StoreSnapshot.of(view).sequence
                tables = self._compared(view)
            self._target.end()
        return Moved(tables, moment, sequence, held, rounds + 1, written, resumed)

    def _rounds(self) -> tuple[int, int]:
        """Bring over what differs until so little changes meanwhile that writers can wait for the rest."""
        total = rounds = 0
        brought = LAST_ROWS + 1
        while brought > LAST_ROWS and rounds < MOST_ROUNDS:
            with _snapshot(self._source) as view:
                brought = self._round(view)
            total, rounds = total + brought, rounds + 1
        return rounds, total

    def _round(self, view: Connection, lock: Connection | None = None) -> int:
        """Make the target what the source is in one view of it; how many rows were stored or deleted."""
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
        """Every table, read again from both sides. Raises StorageError where they differ."""
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
        """How many rows the source had when it was last looked at."""
        return sum(move.rows for move in self._tables)

    def _counted(self, what: str, total: int, lock: Connection | None = None) -> Callable[[int], None]:
        """What tells the progress of reading rows, for each page."""
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
    """One unchanging view of all rows, for as long as the block lasts."""
    with database.reading.connect() as connection, connection.begin():
        see_all(connection)
        version_of(connection)
        yield connection


def _run_beside(lock: Connection, work: Callable[[], None]) -> None:
    """Run it in another thread, for as long as it takes, with the lock kept."""
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(work)
        while not wait([running], timeout=SILENT_SECONDS).done:
            _speak(lock)
        running.result()


def _speak(lock: Connection) -> None:
    """Say something: a server takes the lock from a transaction that is silent for too long."""
    lock.exec_driver_sql("SELECT 1")


def _require_newest(connection: Connection, name: str) -> None:
    """Raise NotFound, StorageTooNew or StorageError for what is no store that this program can move."""
    stored = version_of(connection)
    if stored is None:
        raise NotFound("store at", name)
    if stored == UNFINISHED:
        raise StorageError(f"{name}: a move into it has not ended; end that one first")
    if stored > VERSION:
        raise StorageTooNew(name, stored)
    if stored < VERSION:
        raise StorageError(
            f"{name} has version {stored}, older than this program: open it once, then move it"
        )
