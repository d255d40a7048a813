"""Graphs: nodes, edges, ways between them, names in texts and what those mean."""

from typing import Annotated

from pydantic import Field

from conspectus.model.graph import GraphExpansion
from conspectus.web.schemas.base import Name, RequestModel, Share

MOST_HOPS = 1_000
MOST_GRAPHS = 1_000
LONGEST_TIME = 100
Moment = Annotated[str, Field(max_length=LONGEST_TIME, examples=["2026-03-02T08:00:00Z"])]


class GraphAskBody(RequestModel):
    """How far the graph has a say: `alpha` 0 is vectors and words alone, 1 the graph alone."""

    alpha: Share = GraphExpansion().alpha
    hops: int = Field(GraphExpansion().hops, ge=0, le=MOST_HOPS, description="How far it is walked.")
    graphs: list[Name] | None = Field(
        None, max_length=MOST_GRAPHS, description="Graphs that may be walked; null: all that can be seen."
    )

    def asked(self) -> GraphExpansion:
        """As the engine takes it."""
        return GraphExpansion(self.alpha, self.hops, None if self.graphs is None else tuple(self.graphs))
