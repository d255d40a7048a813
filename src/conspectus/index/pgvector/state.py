"""The state of each collection of the pgvector index, and the locks on it."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import StorageTooNew
from conspectus.index.pgvector.database import Rows

FORMAT: Final = 3
STATES: Final = "conspectus_indexes"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"

_STOP = """
SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND a.datname = current_database()
AND a.usename = current_user AND a.pid <> pg_backend_pid()
AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(%s, 0)
"""


@dataclass(frozen=True, slots=True)
class PgvectorState:
    """The state of an index, which defines all visible rows.

    `generation` names the tables (0: none yet), `version` grows with each change, `rows` is the number of row
    numbers used so far, `total` the number of live rows and `length` their total length in terms. `replaced`
    is the number of rows removed or changed since the tables were made. Vectors up to the version `graph` are
    in the HNSW graph (0: none); `loose` is the number written since. `odd` is the number of rows on which
    filters are evaluated in Python, see `Facts`.
    """

    identity: str
    generation: int = 0
    version: int = 0
    applied: int = 0
    rows: int = 0
    total: int = 0
    length: int = 0
    vectors: int = 0
    threads: int = 0
    odd: int = 0
    replaced: int = 0
    graph: int = 0
    loose: int = 0


_NAMES = tuple(column.name for column in fields(PgvectorState))
_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {STATES} (name text PRIMARY KEY, format bigint NOT NULL,"
    f" identity text NOT NULL, {', '.join(f'{name} bigint NOT NULL' for name in _NAMES[1:])})"
)
_HAS_STATES = "SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'loose'"
_SHARE_SCHEMA = """
SELECT FROM pg_class one JOIN pg_class other ON other.relnamespace = one.relnamespace
WHERE one.oid = to_regclass(%s) AND other.oid = to_regclass(%s)
"""
_READ = f"SELECT format, {', '.join(_NAMES)} FROM {STATES} WHERE name = %s"
_WRITE = (
    f"INSERT INTO {STATES} (name, format, {', '.join(_NAMES)}) VALUES (%(index)s, {FORMAT},"
    f" {', '.join(f'%({name})s' for name in _NAMES)}) ON CONFLICT (name) DO UPDATE SET format = {FORMAT},"
    f" {', '.join(f'{name} = excluded.{name}' for name in _NAMES)}"
)


def read_state(cursor: Rows, index: str, identity: str) -> PgvectorState:
    """Return the state; an empty one if there is none, or it has another analyzer or an older format."""
    row = None
    if cursor.execute(_HAS_STATES, (STATES,)).fetchone() is not None:
        row = cursor.execute(_READ, (index,)).fetchone()
    return _state_of(row, index, identity)


def ask_free_state(
    cursor: Rows, index: str, identity: str, *, is_there: bool
) -> Callable[[], PgvectorState | None]:
    """Ask for the state, locked for writing, in the open pipeline if `is_there`; None if another holds it."""
    lock_name = f"write {index}"
    if not is_there:
        free_state = read_state(cursor, index, identity) if is_free(cursor, lock_name) else None
        return lambda: free_state
    locking = cursor.connection.cursor(binary=True).execute(_TRY_LOCK, (f"conspectus {lock_name}",))
    cursor.execute(_READ, (index,))

    def state() -> PgvectorState | None:
        return _state_of(cursor.fetchone(), index, identity) if locking.fetchone() == (True,) else None

    return state


def _state_of(row: tuple[Any, ...] | None, index: str, identity: str) -> PgvectorState:
    if row is None:
        return PgvectorState(identity)
    if row[0] > FORMAT:
        raise StorageTooNew(f"the index {index}", str(row[0]))
    state = PgvectorState(*row[1:])
    return state if row[0] == FORMAT and state.identity == identity else PgvectorState(identity)


def write_state(cursor: Rows, index: str, state: PgvectorState) -> None:
    """Replace the state, in the transaction that writes the rows it describes."""
    cursor.execute(_WRITE, {"index": index, **{name: getattr(state, name) for name in _NAMES}})


def names_of_indexes(cursor: Rows, *, beside: str) -> list[str]:
    """Return the names of all indexes in the schema of the table. Other schemas belong to other stores."""
    if cursor.execute(_SHARE_SCHEMA, (STATES, beside)).fetchone() is None:
        return []
    return [name for (name,) in cursor.execute(f"SELECT name FROM {STATES}")]


def make_states(cursor: Rows) -> None:
    """Create the table of states if it is missing. Other processes wait for the end of the transaction."""
    if cursor.execute(_HAS_STATES, (STATES,)).fetchone() is None:
        lock(cursor, STATES)
        cursor.execute(_CREATE)
        cursor.execute(f"ALTER TABLE {STATES} ADD COLUMN IF NOT EXISTS loose bigint NOT NULL DEFAULT 0")


def is_free(cursor: Rows, lock_name: str) -> bool:
    """Take the same lock as `lock` if it is free. Returns whether it was."""
    return cursor.execute(_TRY_LOCK, (f"conspectus {lock_name}",)).fetchone() == (True,)


def lock(cursor: Rows, lock_name: str) -> None:
    """Take an exclusive lock until the transaction ends."""
    cursor.execute(_LOCK, (f"conspectus {lock_name}",))


def lock_shared(cursor: Rows, lock_name: str) -> None:
    """Take a lock that others may share until the transaction ends."""
    cursor.execute(_LOCK_SHARED, (f"conspectus {lock_name}",))


def stop(cursor: Rows, lock_name: str) -> None:
    """Terminate the connections that hold or wait for a lock. Their transactions are rolled back."""
    cursor.execute(_STOP, (f"conspectus {lock_name}",))
