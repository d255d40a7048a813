"""What routes of graphs have in common: how a graph is named, and how it is shown without any danger."""

from dataclasses import dataclass
from typing import Annotated, Final, TypedDict

from fastapi import Depends, Path, Query, Response
from pydantic import AwareDatetime

from conspectus.model.graph import GraphForm
from conspectus.web.schemas.base import LONGEST_QUESTION, NAME

GRAPHS: Final = "/graphs"
GRAPH: Final = f"{GRAPHS}/{{graph:path}}"
GraphName = Annotated[str, Path(min_length=1, max_length=NAME, description="The id or the name of a graph.")]
InCollection = Annotated[str, Query(min_length=1, max_length=NAME)]
NodeInQuery = Annotated[str, Query(max_length=LONGEST_QUESTION, description="The id of a node.")]
At = Annotated[AwareDatetime | None, Query(description="As it was at that instant.")]
MEDIA_TYPES: Final[dict[GraphForm, str]] = {
    "json": "application/json",
    "graphml": "application/graphml+xml",
    "svg": "image/svg+xml",
}
HARMLESS: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}
"""A browser that opens the answer runs no script in it and loads nothing."""


class Of(TypedDict):
    """A graph as the engine is asked for it."""

    graph: str
    collection: str


@dataclass(frozen=True, slots=True)
class NamedGraph:
    """The graph of the path, in the collection of the parameter."""

    graph: GraphName
    collection: InCollection = "default"

    @property
    def told(self) -> Of:
        """As the engine is asked."""
        return {"graph": self.graph, "collection": self.collection}


OfGraph = Annotated[NamedGraph, Depends()]
"""The graph of the path, by id or name, in the collection of the parameter collection."""


def exported(text: str, form: GraphForm) -> Response:
    """A graph in a form of its own, as a file."""
    headers = {**HARMLESS, "Content-Disposition": f'inline; filename="graph.{form}"'}
    return Response(text.encode("utf-8", "replace"), headers=headers, media_type=MEDIA_TYPES[form])
