"""Stable names for edges."""

from datetime import datetime

from conspectus.text.hashing import stable_id
from conspectus.text.times import canonical


def edge_id(graph: str, source: str, target: str, type: str, valid_from: datetime | None) -> str:
    """The id of the one edge of that type between two nodes of a graph that is true from then on."""
    begins = "" if valid_from is None else canonical(valid_from)
    return stable_id("edge", graph, source, target, type, begins)
