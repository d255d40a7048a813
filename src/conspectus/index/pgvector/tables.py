"""The tables of one generation of an index."""

from dataclasses import dataclass

from conspectus.index.facts import NUMBERS, TEXTS
from conspectus.index.pgvector.database import Rows

DEEPEST_GRAPH = 4_000
"""Dimensions up to which pgvector links vectors of half precision to a graph."""
_NEIGHBOURS, _CONSTRUCTION, _MEMORY = 16, 64, "512MB"
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

    `rows` holds what filters read, `vectors` what is near, `batches` for each batch of rows their chunks and
    lengths, `postings` for each batch and term the rows with their counts, `dead` which rows are not alive,
    and `values` each value that metadata has.
    """

    index: str
    generation: int
    dimensions: int

    @property
    def start(self) -> str:
        """What the names of all tables of the generation begin with."""
        return f"{self.index}_{self.generation:x}"

    @property
    def rows(self) -> str:
        return f"{self.start}_rows"

    @property
    def vectors(self) -> str:
        return f"{self.start}_vectors"

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
            made[self.vectors] = f"row integer NOT NULL, vector halfvec({self.dimensions}) NOT NULL"
        for name, columns in made.items():
            cursor.execute(f"CREATE TABLE {name} ({columns})")
        for column in ("chunks", "lengths"):
            cursor.execute(f"ALTER TABLE {self.batches} ALTER COLUMN {column} SET STORAGE EXTERNAL")
        for column in ("rows", "counts"):
            cursor.execute(f"ALTER TABLE {self.postings} ALTER COLUMN {column} SET STORAGE EXTERNAL")

    def finish(self, cursor: Rows) -> None:
        """Make the indexes of filled tables, and let the server know what is in them."""
        filled = [self.rows, *([self.vectors] if self.dimensions else [])]
        for name in filled:
            cursor.execute(f"ALTER TABLE {name} ADD PRIMARY KEY (row)")
        cursor.execute(f"CREATE UNIQUE INDEX ON {self.rows} (chunk)")
        cursor.execute(f"CREATE INDEX ON {self.rows} (source)")
        cursor.execute(f"CREATE INDEX ON {self.rows} (document)")
        cursor.execute(f"CREATE INDEX ON {self.rows} USING gin (facts)")
        cursor.execute(f"CREATE INDEX ON {self.rows} (row) WHERE odd IS NOT NULL")
        cursor.execute(f"CREATE INDEX ON {self.dead} (version)")
        cursor.execute(f"CREATE INDEX ON {self.values} (path)")
        for name in (*filled, self.values, self.postings):
            cursor.execute(f"ANALYZE {name}")

    def link(self, cursor: Rows) -> None:
        """Link the vectors to a graph of neighbours."""
        cursor.execute(f"SELECT set_config('maintenance_work_mem', '{_MEMORY}', true)")
        cursor.execute(
            f"CREATE INDEX ON {self.vectors} USING hnsw (vector halfvec_ip_ops)"
            f" WITH (m = {_NEIGHBOURS}, ef_construction = {_CONSTRUCTION})"
        )


def drop_others(cursor: Rows, index: str, generation: int) -> None:
    """Drop what is left of other generations of an index; 0: all of them."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)"
        " AND starts_with(relname, %s) AND NOT starts_with(relname, %s)",
        (f"{index}_", f"{index}_{generation:x}_"),
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
