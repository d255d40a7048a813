"""The options of a pgvector index, and when they call for a graph or a rebuild."""

from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Bm25
from conspectus.index.pgvector.database import Database
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import DEEPEST_GRAPH, Tables

_MAX_SPARE_DEAD_ROWS = 10_000
"""Number of dead rows that an index may have beyond as many as live ones."""
_LINKED_PER_LOOSE_VECTOR = 16
"""A graph is built anew when fewer vectors in it come on each one outside."""


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
