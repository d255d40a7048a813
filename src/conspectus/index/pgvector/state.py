"""What an index is at one moment: a row in a table of all indexes of the database."""

from dataclasses import dataclass, fields
from typing import Final

from conspectus.errors import StorageTooNew
from conspectus.index.pgvector.database import Rows

FORMAT: Final = 2
STATES: Final = "conspectus_indexes"
_TRY = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"

_STOP = """
SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND a.datname = current_database()
AND a.usename = current_user AND a.pid <> pg_backend_pid()
AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(%s, 0)
"""


@dataclass(frozen=True, slots=True)
class PgvectorState:
    """Numbers that describe all that can be seen.

    `generation` names the tables (0: none yet), `version` grows with each change, `rows` is how many row
    numbers were given away, `total` how many are alive with `length` terms, `replaced` how many rows were
    taken out or changed since the tables were made. Vectors up to the version `graph` are linked to a graph
    of neighbours (0: none are), and `loose` is how many were written since.
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


_NAMES = tuple(each.name for each in fields(PgvectorState))
_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {STATES} (name text PRIMARY KEY, format bigint NOT NULL,"
    f" identity text NOT NULL, {', '.join(f'{name} bigint NOT NULL' for name in _NAMES[1:])})"
)
_IS_THERE = "SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'loose'"
_ARE_BESIDE = """
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
    """The state as it is; an empty one where there is none, or one of another analysis or an older format."""
    row = None
    if cursor.execute(_IS_THERE, (STATES,)).fetchone() is not None:
        row = cursor.execute(_READ, (index,)).fetchone()
    if row is None:
        return PgvectorState(identity)
    if row[0] > FORMAT:
        raise StorageTooNew(f"the index {index}", str(row[0]))
    state = PgvectorState(*row[1:])
    return state if row[0] == FORMAT and state.identity == identity else PgvectorState(identity)


def write_state(cursor: Rows, index: str, state: PgvectorState) -> None:
    """Replace the state in the transaction that makes what it describes."""
    cursor.execute(_WRITE, {"index": index, **{name: getattr(state, name) for name in _NAMES}})


def names_of_indexes(cursor: Rows, *, beside: str) -> list[str]:
    """All that have a state, in the schema of that table: those in another one are of another store."""
    if cursor.execute(_ARE_BESIDE, (STATES, beside)).fetchone() is None:
        return []
    return [name for (name,) in cursor.execute(f"SELECT name FROM {STATES}")]


def make_states(cursor: Rows) -> None:
    """Make the table of states if there is none; others wait for the end of the transaction."""
    if cursor.execute(_IS_THERE, (STATES,)).fetchone() is None:
        lock(cursor, STATES)
        cursor.execute(_CREATE)
        cursor.execute(f"ALTER TABLE {STATES} ADD COLUMN IF NOT EXISTS loose bigint NOT NULL DEFAULT 0")


def is_free(cursor: Rows, what: str) -> bool:
    """Lock it as `lock` does, unless someone else has."""
    return cursor.execute(_TRY, (f"conspectus {what}",)).fetchone() == (True,)


def lock(cursor: Rows, what: str) -> None:
    """Let no one else do the same until the transaction ends."""
    cursor.execute(_LOCK, (f"conspectus {what}",))


def stop(cursor: Rows, what: str) -> None:
    """Break the connections of those who do it or wait to do it: nothing that they began stays."""
    cursor.execute(_STOP, (f"conspectus {what}",))
