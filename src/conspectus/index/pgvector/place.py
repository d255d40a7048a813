"""Where an index lies, and when it is worth what."""

from dataclasses import dataclass, field

from conspectus.index.bm25 import Bm25
from conspectus.index.pgvector.database import Database
from conspectus.index.pgvector.state import State
from conspectus.index.pgvector.tables import DEEPEST_GRAPH, Tables

_DEAD_ALLOWED = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """The database, the index's name there, its vectors' size (0: none).

    From `graph_from` vectors on they are linked to a graph; fewer are sooner looked at one by one.
    """

    database: Database
    name: str
    dimensions: int = 0
    graph_from: int = 20_000
    bm25: Bm25 = field(default_factory=Bm25)

    def has_graph(self, vectors: int) -> bool:
        """Whether so many vectors are to be linked."""
        return 0 < self.dimensions <= DEEPEST_GRAPH and vectors >= self.graph_from

    def is_sound(self, state: State) -> bool:
        """Whether a state is fit to go on with: there is one, not most of it is dead, and it has its graph.

        What it takes to build another is in proportion to what was written since.
        """
        linked = state.graph or not self.has_graph(state.vectors)
        return bool(state.generation and linked and state.rows <= 2 * state.total + _DEAD_ALLOWED)

    def tables(self, generation: int) -> Tables:
        """The tables of a generation."""
        return Tables(self.name, generation, self.dimensions)
