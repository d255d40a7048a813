"""The tables of a generation of the pgvector index."""

from collections.abc import Sequence

from psycopg import errors

from conspectus.deferred import dataclass
from conspectus.index.filter_terms import NUMBERS, TEXTS
from conspectus.index.pgvector.database import Rows

DEEPEST_GRAPH = 4_000
"""Maximum dimensions of a half-precision vector in a graph of pgvector."""
_GRAPH_NEIGHBORS, _GRAPH_CONSTRUCTION = 16, 64
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
        names = (self.rows, self.batches, self.postings, self.dead, self.values)
        return (*names, self.vectors) if self.dimensions else names

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
            f" WITH (m = {_GRAPH_NEIGHBORS}, ef_construction = {_GRAPH_CONSTRUCTION})"
            f" WHERE version <= {self.graph}"
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
