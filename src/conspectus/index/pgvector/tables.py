"""The tables of one generation of an index."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import errors

from conspectus.index.filter_terms import NUMBERS, TEXTS
from conspectus.index.pgvector.database import Rows

DEEPEST_GRAPH = 4_000
"""Dimensions up to which pgvector links vectors of half precision to a graph."""
_NEIGHBOURS, _CONSTRUCTION = 16, 64
_GRAPH_MEMORY = "512MB"
"""What linking may take; the server's own maintenance_work_mem if that is more."""
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
_OPTIONAL = {"vector", "odd", "author", "role", "thread", "parent", "sequence", "position", "starts", "ends"}


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of tables. Rows have numbers of their own, which are given once and never again.

    `rows` holds what filters read, `vectors` what is near and in which version it came (another table for
    each `graph`), `batches` for each batch of rows their chunks and lengths, `postings` for each batch and
    term the rows with their counts, `dead` which rows are not alive, and `values` each value that metadata
    has.
    """

    index: str
    generation: int
    dimensions: int
    graph: int = 0

    @property
    def start(self) -> str:
        """What the names of all tables of the generation begin with."""
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
        """All of them."""
        every = (self.rows, self.batches, self.postings, self.dead, self.values)
        return (*every, self.vectors) if self.dimensions else every

    def create(self, cursor: Rows) -> None:
        """Make them, without what is sooner made when they are full."""
        listed = [f"{name} {KINDS[name]}{'' if name in _OPTIONAL else ' NOT NULL'}" for name in COLUMNS]
        made = {
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
            made[self.vectors] = (
                f"row integer NOT NULL, version bigint NOT NULL, vector halfvec({self.dimensions}) NOT NULL"
            )
        for name, columns in made.items():
            cursor.execute(f"CREATE TABLE {name} ({columns})")
        for column in ("chunks", "lengths"):
            cursor.execute(f"ALTER TABLE {self.batches} ALTER COLUMN {column} SET STORAGE EXTERNAL")
        for column in ("rows", "counts"):
            cursor.execute(f"ALTER TABLE {self.postings} ALTER COLUMN {column} SET STORAGE EXTERNAL")

    def finish(self, cursor: Rows) -> None:
        """Make the indexes of filled tables, and let the server know what is in them."""
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
        """The same for the vectors alone; those up to the version `graph` are linked."""
        cursor.execute(f"ALTER TABLE {self.vectors} ADD PRIMARY KEY (row)")
        cursor.execute(f"CREATE INDEX ON {self.vectors} (version)")
        if self.graph:
            cursor.execute(_MEMORY, (_GRAPH_MEMORY, _GRAPH_MEMORY))
            self._link(cursor)
        cursor.execute(f"ANALYZE {self.vectors}")

    def copy_vectors(self, cursor: Rows, before: "Tables") -> None:
        """Make a table of the vectors up to the version `graph` of another state, and link them."""
        cursor.execute(
            f"CREATE TABLE {self.vectors} AS SELECT * FROM {before.vectors} WHERE version <= {self.graph}"
        )
        for column in ("row", "version", "vector"):
            cursor.execute(f"ALTER TABLE {self.vectors} ALTER COLUMN {column} SET NOT NULL")
        self.finish_vectors(cursor)

    def follow_vectors(self, cursor: Rows, before: "Tables") -> int:
        """Let the copy become as what it was made of is by now; how many vectors came."""
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
            # Workers share memory with each other, of which containers often have little.
            cursor.execute("ROLLBACK TO SAVEPOINT linking")
            cursor.execute("SELECT set_config('max_parallel_maintenance_workers', '0', true)")
            cursor.execute(statement)
        cursor.execute("RELEASE SAVEPOINT linking")


def drop_all_but(cursor: Rows, index: str, kept: Sequence[str]) -> None:
    """Drop what is left of other states of an index."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)"
        " AND starts_with(relname, %s) AND relname <> ALL(%s::text[])",
        (f"{index}_", list(kept)),
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
