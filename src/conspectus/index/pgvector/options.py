"""Where an index lies, and when it is worth what."""

from dataclasses import dataclass, field

from conspectus.index.bm25 import Bm25
from conspectus.index.pgvector.database import Database
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import DEEPEST_GRAPH, Tables

_DEAD_ALLOWED = 10_000
_LOOSE_SHARE = 16


@dataclass(frozen=True, slots=True)
class PgvectorOptions:
    """The database, the index's name there, its vectors' size (0: none).

    From `graph_from` vectors on they are linked to a graph; fewer are sooner looked at one by one. Of a
    filter that admits more than `most_listed` rows, those that are wanted are asked about.
    Who builds may do nothing for `idle_seconds` before others, who wait for it, take its place.
    """

    database: Database
    name: str
    dimensions: int = 0
    graph_from: int = 20_000
    most_listed: int = 10_000
    idle_seconds: int = 600
    bm25: Bm25 = field(default_factory=Bm25)

    def has_graph(self, vectors: int) -> bool:
        """Whether so many vectors are to be linked."""
        return 0 < self.dimensions <= DEEPEST_GRAPH and vectors >= self.graph_from

    def is_sound(self, state: PgvectorState) -> bool:
        """Whether a state is fit to go on with: there is one, and not most of it is dead."""
        return bool(state.generation and state.rows <= 2 * state.total + _DEAD_ALLOWED)

    def is_linked(self, state: PgvectorState, *, quiet: bool) -> bool:
        """Whether so few vectors are loose that looking at each is sooner done than linking all anew.

        While many are written (not `quiet`) there may be as many as are linked: a graph at every doubling.
        """
        linked = max(0, state.vectors - state.loose)
        allowed = max(self.graph_from - 1, linked // _LOOSE_SHARE if quiet else linked)
        return not self.has_graph(state.vectors) or state.loose <= allowed

    def tables(self, state: PgvectorState) -> Tables:
        """The tables of a state."""
        return Tables(self.name, state.generation, self.dimensions, state.graph)
