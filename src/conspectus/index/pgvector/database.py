"""The database of the pgvector index: transactions, tables, options and the state of each collection."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, fields
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from psycopg import Cursor, errors
from sqlalchemy import Connection

from conspectus.deferred import dataclass
from conspectus.errors import StorageError, StorageTooNew
from conspectus.index.bm25 import Bm25
from conspectus.index.filter_terms import NUMBERS, TEXTS

Result = TypeVar("Result")
Rows: TypeAlias = Cursor[tuple[Any, ...]]
Run: TypeAlias = Callable[[Callable[[Connection], Any]], Awaitable[Any]]
"""Runs a function of a connection in a transaction, possibly one that is already open."""

OLDEST = (0, 8)
_VERSION = """
SELECT e.extversion, n.nspname = ANY (current_schemas(true)), quote_ident(n.nspname)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
_LINE = "ask an administrator to run: CREATE EXTENSION vector"
_REFUSED = (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFile)


class Database(Protocol):
    """Transactions in threads, on the connection pool of the records."""

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run the function in a snapshot of the data (repeatable read), which several reads may share."""
        ...

    def renew(self) -> None:
        """Have the next read see newer data than the previous one."""

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run the function in a write transaction. It does not wait for other writers."""
        ...

    def lasting(self) -> AbstractAsyncContextManager[Run]:
        """A write transaction over several steps, committed at the end of the block.

        Cancelling a step cancels its statement.
        """
        ...


def rows_of(connection: Connection) -> Rows:
    """Return a cursor in binary format."""
    driver: Any = connection.connection.driver_connection
    cursor: Rows = driver.cursor(binary=True)
    return cursor


def require_vectors(cursor: Rows) -> None:
    """Create the extension if it is missing. Raises StorageError with the statement for the operator."""
    cursor.execute(_VERSION)
    if not (extension := cursor.fetchone()):
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except _REFUSED as fault:
            reason = str(fault).partition("\n")[0]
            raise StorageError(f"the database has no pgvector ({reason}); {_LINE}") from fault
        cursor.execute(_VERSION)
        extension = cursor.fetchone() or ("0.0", True, "")
    version, is_found, schema = extension
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StorageError(f"pgvector {version} is too old, 0.8 is needed: ALTER EXTENSION vector UPDATE")
    if not is_found:
        raise StorageError(
            f"pgvector is in the schema {schema}, which is not in the search path; add it there after the"
            " store's own (ALTER ROLE … SET search_path) and let this user use it (GRANT USAGE ON SCHEMA)"
        )


FORMAT: Final = 2
STATES: Final = "conspectus_indexes"
_TRY = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
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
    in the HNSW graph (0: none); `loose` is the number written since.
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
    """Return the state; an empty one if there is none, or it has another analyzer or an older format."""
    row = None
    if cursor.execute(_IS_THERE, (STATES,)).fetchone() is not None:
        row = cursor.execute(_READ, (index,)).fetchone()
    return _state_of(row, index, identity)


def ask_free_state(
    cursor: Rows, index: str, identity: str, *, is_there: bool
) -> Callable[[], PgvectorState | None]:
    """Ask for the state, locked for writing, in the open pipeline if `is_there`; None if another holds it."""
    what = f"write {index}"
    if not is_there:
        free_state = read_state(cursor, index, identity) if is_free(cursor, what) else None
        return lambda: free_state
    locking = cursor.connection.cursor(binary=True).execute(_TRY, (f"conspectus {what}",))
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
    if cursor.execute(_ARE_BESIDE, (STATES, beside)).fetchone() is None:
        return []
    return [name for (name,) in cursor.execute(f"SELECT name FROM {STATES}")]


def make_states(cursor: Rows) -> None:
    """Create the table of states if it is missing. Other processes wait for the end of the transaction."""
    if cursor.execute(_IS_THERE, (STATES,)).fetchone() is None:
        lock(cursor, STATES)
        cursor.execute(_CREATE)
        cursor.execute(f"ALTER TABLE {STATES} ADD COLUMN IF NOT EXISTS loose bigint NOT NULL DEFAULT 0")


def is_free(cursor: Rows, what: str) -> bool:
    """Take the same lock as `lock` if it is free. Returns whether it was."""
    return cursor.execute(_TRY, (f"conspectus {what}",)).fetchone() == (True,)


def lock(cursor: Rows, what: str) -> None:
    """Take an exclusive lock until the transaction ends."""
    cursor.execute(_LOCK, (f"conspectus {what}",))


def lock_shared(cursor: Rows, what: str) -> None:
    """Take a lock that others may share until the transaction ends."""
    cursor.execute(_LOCK_SHARED, (f"conspectus {what}",))


def stop(cursor: Rows, what: str) -> None:
    """Terminate the connections that hold or wait for a lock. Their transactions are rolled back."""
    cursor.execute(_STOP, (f"conspectus {what}",))


DEEPEST_GRAPH = 4_000
"""Maximum dimensions of a half-precision vector in a graph of pgvector."""
_NEIGHBOURS, _CONSTRUCTION = 16, 64
_GRAPH_MEMORY = "512MB"
"""Memory to build a graph; maintenance_work_mem of the server if that is larger."""
_MEMORY = (
    "SELECT set_config('maintenance_work_mem', %s, true) WHERE"
    " pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes(%s)"
)
NAMED = (*TEXTS, *NUMBERS)
COLUMNS = ("row", "chunk", "length", "checksum", "words", "vector", "odd", *NAMED, "starts", "ends", "facts")
_INTEGERS = ("row", "length")
_TEXTS: tuple[str, ...] = (*TEXTS, "odd")
KINDS = {
    name: "integer" if name in _INTEGERS else "bytea" if name in _TEXTS else "bigint" for name in COLUMNS
} | {"facts": "bigint[]"}
_OPTIONAL = {"vector", "odd", "author", "role", "thread", "parent", "trust"}
_OPTIONAL |= {"sequence", "position", "starts", "ends"}


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of the tables of a generation. Row numbers are used once and never again.

    `rows` holds what filters read, `vectors` the vectors with the version that wrote them (a new table for
    each `graph`), `batches` the chunk ids and lengths of each batch of rows, `postings` the rows and counts
    for each batch and term, `dead` the rows that are not alive, and `values` each distinct metadata value.
    """

    index: str
    generation: int
    dimensions: int
    graph: int = 0

    @property
    def start(self) -> str:
        """The prefix of the names of all tables of the generation."""
        return f"{self.index}_{self.generation:x}"

    @property
    def rows(self) -> str:
        return f"{self.start}_rows"

    @property
    def vectors(self) -> str:
        return f"{self.start}_vectors_{self.graph:x}"

    @property
    def batches(self) -> str:
        return f"{self.start}_batches"

    @property
    def postings(self) -> str:
        return f"{self.start}_postings"

    @property
    def dead(self) -> str:
        return f"{self.start}_dead"

    @property
    def values(self) -> str:
        return f"{self.start}_values"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tables."""
        every = (self.rows, self.batches, self.postings, self.dead, self.values)
        return (*every, self.vectors) if self.dimensions else every

    def create(self, cursor: Rows) -> None:
        """Create the tables, without the indexes that are faster to build afterwards."""
        listed = [f"{name} {KINDS[name]}{'' if name in _OPTIONAL else ' NOT NULL'}" for name in COLUMNS]
        definitions = {
            self.rows: ", ".join(listed),
            self.batches: "first integer PRIMARY KEY, last integer NOT NULL, level integer NOT NULL,"
            " chunks bytea NOT NULL, lengths bytea NOT NULL",
            self.postings: "first integer, term bytea, rows bytea NOT NULL, counts bytea NOT NULL,"
            " PRIMARY KEY (first, term)",
            self.dead: "version bigint NOT NULL, row integer NOT NULL",
            self.values: "fact bigint PRIMARY KEY, path bigint NOT NULL, number numeric, text bytea,"
            " moment bigint, truth smallint",
        }
        if self.dimensions:
            definitions[self.vectors] = (
                f"row integer NOT NULL, version bigint NOT NULL, vector halfvec({self.dimensions}) NOT NULL"
            )
        for name, columns in definitions.items():
            cursor.execute(f"CREATE TABLE {name} ({columns})")
        for column in ("chunks", "lengths"):
            cursor.execute(f"ALTER TABLE {self.batches} ALTER COLUMN {column} SET STORAGE EXTERNAL")
        for column in ("rows", "counts"):
            cursor.execute(f"ALTER TABLE {self.postings} ALTER COLUMN {column} SET STORAGE EXTERNAL")

    def finish(self, cursor: Rows) -> None:
        """Create the indexes of filled tables, and update the planner's statistics."""
        cursor.execute(f"ALTER TABLE {self.rows} ADD PRIMARY KEY (row)")
        cursor.execute(f"CREATE UNIQUE INDEX ON {self.rows} (chunk)")
        cursor.execute(f"CREATE INDEX ON {self.rows} (source)")
        cursor.execute(f"CREATE INDEX ON {self.rows} (document)")
        cursor.execute(f"CREATE INDEX ON {self.rows} USING gin (facts)")
        cursor.execute(f"CREATE INDEX ON {self.rows} (row) WHERE odd IS NOT NULL")
        cursor.execute(f"CREATE INDEX ON {self.dead} (version)")
        cursor.execute(f"CREATE INDEX ON {self.values} (path)")
        for name in (self.rows, self.values, self.postings):
            cursor.execute(f"ANALYZE {name}")
        if self.dimensions:
            self.finish_vectors(cursor)

    def finish_vectors(self, cursor: Rows) -> None:
        """Create the indexes of the vector table; vectors up to the version `graph` get an HNSW graph."""
        cursor.execute(f"ALTER TABLE {self.vectors} ADD PRIMARY KEY (row)")
        cursor.execute(f"CREATE INDEX ON {self.vectors} (version)")
        if self.graph:
            cursor.execute(_MEMORY, (_GRAPH_MEMORY, _GRAPH_MEMORY))
            self._link(cursor)
        cursor.execute(f"ANALYZE {self.vectors}")

    def copy_vectors(self, cursor: Rows, before: "Tables") -> None:
        """Copy the vectors up to the version `graph` of another state to a new table, and build its graph."""
        cursor.execute(
            f"CREATE TABLE {self.vectors} AS SELECT * FROM {before.vectors} WHERE version <= {self.graph}"
        )
        for column in ("row", "version", "vector"):
            cursor.execute(f"ALTER TABLE {self.vectors} ALTER COLUMN {column} SET NOT NULL")
        self.finish_vectors(cursor)

    def follow_vectors(self, cursor: Rows, before: "Tables") -> int:
        """Update the copy to the current state of its source. Returns the number of new vectors."""
        cursor.execute(
            f"DELETE FROM {self.vectors} v WHERE NOT EXISTS"
            f" (SELECT FROM {before.vectors} o WHERE o.row = v.row AND o.version = v.version)"
        )
        cursor.execute(
            f"INSERT INTO {self.vectors} SELECT * FROM {before.vectors} WHERE version > {self.graph}"
        )
        return cursor.rowcount

    def _link(self, cursor: Rows) -> None:
        statement = (
            f"CREATE INDEX ON {self.vectors} USING hnsw (vector halfvec_ip_ops)"
            f" WITH (m = {_NEIGHBOURS}, ef_construction = {_CONSTRUCTION}) WHERE version <= {self.graph}"
        )
        cursor.execute("SAVEPOINT linking")
        try:
            cursor.execute(statement)
        except (errors.DiskFull, errors.OutOfMemory):
            # Parallel workers need shared memory, of which containers often have little.
            cursor.execute("ROLLBACK TO SAVEPOINT linking")
            cursor.execute("SELECT set_config('max_parallel_maintenance_workers', '0', true)")
            cursor.execute(statement)
        cursor.execute("RELEASE SAVEPOINT linking")


def drop_all_but(cursor: Rows, index: str, names: Sequence[str]) -> None:
    """Drop all other tables of an index."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)"
        " AND starts_with(relname, %s) AND relname <> ALL(%s::text[])",
        (f"{index}_", list(names)),
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP TABLE IF EXISTS {name}")


_MAX_SPARE_DEAD_ROWS = 10_000
_LINKED_PER_LOOSE_VECTOR = 16


@dataclass(frozen=True, slots=True)
class PgvectorOptions:
    """The database, the name of the index in it, and the vector size (0: none).

    From `graph_from` vectors on, an HNSW graph is built; fewer are scanned. If a filter matches more than
    `max_listed` rows, it is evaluated for the candidates only. A build that is idle for `idle_seconds` while
    others wait for it is aborted.
    """

    database: Database
    name: str
    dimensions: int = 0
    graph_from: int = 20_000
    max_listed: int = 10_000
    idle_seconds: int = 600
    bm25: Bm25 = field(default_factory=Bm25)

    def has_graph(self, vectors: int) -> bool:
        """Return whether there are enough vectors for a graph."""
        return 0 < self.dimensions <= DEEPEST_GRAPH and vectors >= self.graph_from

    def is_sound(self, state: PgvectorState) -> bool:
        """Return whether a state can be continued: it exists, and most of it is alive."""
        return bool(state.generation and state.rows <= 2 * state.total + _MAX_SPARE_DEAD_ROWS)

    def is_linked(self, state: PgvectorState, *, quiet: bool) -> bool:
        """Return whether so few vectors are outside the graph that scanning them is faster than a rebuild.

        While there are many writes (not `quiet`), as many may be outside as inside: each new graph is twice
        as large.
        """
        linked = max(0, state.vectors - state.loose)
        allowed = max(self.graph_from - 1, linked // _LINKED_PER_LOOSE_VECTOR if quiet else linked)
        return not self.has_graph(state.vectors) or state.loose <= allowed

    def tables(self, state: PgvectorState) -> Tables:
        """Return the tables of a state."""
        return Tables(self.name, state.generation, self.dimensions, state.graph)
