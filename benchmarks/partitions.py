"""What partitions by collection cost on PostgreSQL: python benchmarks/partitions.py --parts 0 16 64.

Documents, chunks, vectors and changes with the collection in their keys, in plain tables (0) or in so many
hash partitions each. Measured are, in turn and as medians of rounds: making the tables, bytes of the empty
tables, single documents written (a transaction each, as a write does it), the chunk of an id with and without
its collection, and the plan of that look-up.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
from results import Result, option_parser
from tests.support.postgres_server import postgres_server

KEYS = {
    "documents": (
        "number bigint, id text, source text, key text, title text, metadata text, recorded bigint",
        "number",
    ),
    "chunks": ("id bigint, document bigint, position bigint, text text, hash text", "id"),
    "vectors": ("chunk bigint, space text, vector bytea", "chunk, space"),
    "changes": ("sequence bigint, operation text, first bigint, last bigint", "sequence"),
}
INDEXES = (
    "CREATE UNIQUE INDEX ON documents (collection, id)",
    "CREATE UNIQUE INDEX ON documents (collection, source, key)",
    "CREATE UNIQUE INDEX ON chunks (collection, document, position)",
)
WRITE = (
    "INSERT INTO documents VALUES (%(of)s, %(n)s, %(name)s, 'notes', %(name)s, 'a title', '{}', 0)",
    "INSERT INTO chunks VALUES (%(of)s, %(n)s, %(n)s, 0, repeat('tides turn in the harbour ', 10), 'hash')",
    "INSERT INTO vectors VALUES (%(of)s, %(n)s, 'model', decode(repeat('00', 768), 'hex'))",
    "INSERT INTO changes VALUES (%(of)s, %(n)s, 'put', %(n)s, %(n)s)",
)
READ = "SELECT d.title, c.text FROM chunks c JOIN documents d ON d.number = c.document WHERE c.id = %(n)s"
WITHIN = READ + " AND c.collection = %(of)s AND d.collection = %(of)s"
SIZE = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)


def tables(parts: int) -> Iterator[str]:
    """The statements that make the tables."""
    for name, (columns, key) in KEYS.items():
        split = "PARTITION BY HASH (collection)" if parts else ""
        yield f"CREATE TABLE {name} (collection text, {columns}, PRIMARY KEY (collection, {key})) {split}"
        for part in range(parts):
            bounds = f"WITH (MODULUS {parts}, REMAINDER {part})"
            yield f"CREATE TABLE {name}_{part} PARTITION OF {name} FOR VALUES {bounds}"
    yield from INDEXES
    yield "CREATE INDEX ON chunks (id)"
    yield "CREATE INDEX ON documents (number)"


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Store:
    """The tables with so many partitions, in a database of their own."""

    def __init__(self, url: str, parts: int) -> None:
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=2)
        self.connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        self.creation_seconds = seconds(
            lambda: [self.connection.execute(statement) for statement in tables(parts)]
        )
        self.size = self.one(SIZE, {})
        self._last = 0

    def one(self, statement: str, parameters: dict[str, object]) -> float:
        """The first value of a statement."""
        row = self.connection.execute(statement, parameters).fetchone()
        assert row is not None
        return float(row[0]) if not isinstance(row[0], str) else 0.0

    def write(self, count: int) -> None:
        """Write so many documents, to sixteen collections in turn."""
        for number in range(self._last, self._last + count):
            parameters = {"of": f"collection {number % 16}", "n": number, "name": f"document {number}"}
            with self.connection.transaction(), self.connection.pipeline():
                for statement in WRITE:
                    self.connection.execute(statement, parameters)
        self._last += count

    def read(self, statement: str, count: int) -> None:
        """Look so many chunks up."""
        for number in range(0, self._last, max(self._last // count, 1)):
            self.one(statement, {"of": f"collection {number % 16}", "n": number})


def measured(store: Store, count: int) -> list[float]:
    """Milliseconds of one write, one read within a collection, and one by id alone."""
    works = (lambda: store.write(count), lambda: store.read(WITHIN, count), lambda: store.read(READ, count))
    return [1_000 * seconds(work) / count for work in works]


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--parts", type=int, nargs="+", default=[0, 16, 64])
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name, postgres_server(Path(name)) as server, ExitStack() as opened:
        urls = [opened.enter_context(server.fresh()) for _ in arguments.parts]
        stores = [Store(url, parts) for url, parts in zip(urls, arguments.parts, strict=True)]
        rounds = [[measured(store, arguments.count) for store in stores] for _ in range(arguments.rounds)]
        for position, (store, parts) in enumerate(zip(stores, arguments.parts, strict=True)):
            figures = [
                statistics.median(round_figures[position][of] for round_figures in rounds) for of in range(3)
            ]
            cells = [f"{milliseconds:.2f} ms" for milliseconds in figures]
            rows.append(
                [str(parts), f"{1_000 * store.creation_seconds:,.0f} ms", f"{store.size:,.0f}", *cells]
            )
            store.connection.close()
    columns = ["partitions", "made", "bytes empty", "write", "read in a collection", "read by id"]
    Result.of("Medians of one document.", columns, rows).shown("partitions", save=arguments.save)


if __name__ == "__main__":
    main()
