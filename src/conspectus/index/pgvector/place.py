"""Where an index lies, and when it is worth what."""

from dataclasses import dataclass, field

from conspectus.index.bm25 import Bm25
from conspectus.index.pgvector.database import Database
from conspectus.index.pgvector.tables import Tables


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

    def tables(self, generation: int) -> Tables:
        """The tables of a generation."""
        return Tables(self.name, generation, self.dimensions)
