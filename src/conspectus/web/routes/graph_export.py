"""Graphs: the operations of the table, and by hand routes without JSON or with a variable path."""

from typing import Annotated, Final

from fastapi import Path, Query, Response

from conspectus.model import parameters
from conspectus.model.graph import GraphForm
from conspectus.model.trust import MinTrust
from conspectus.operations.declared import facts_of
from conspectus.operations.graph import GRAPH_OPERATIONS
from conspectus.web.dependencies import EngineOf, Unhurried
from conspectus.web.openapi import Responses, Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.schemas.base import Instant
from conspectus.web.stream_dependencies import InCollection

MEDIA_TYPES: Final[dict[GraphForm, str]] = {
    "json": "application/json",
    "graphml": "application/graphml+xml",
    "svg": "image/svg+xml",
}
SANDBOX: Final = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}
"""Headers by which a browser that opens the answer runs no script in it and loads nothing."""
RESPONSES: Responses = {200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}}, **problems()}
GraphName = Annotated[str, Path(**facts_of(parameters.GraphName))]
At = Annotated[Instant | None, Query(description="As it was at that instant.")]

router = Section("graphs")
add_routes(router, GRAPH_OPERATIONS)


@router.get(
    "/graphs/{graph:path}/export", response_class=Response, responses=RESPONSES, dependencies=[Unhurried]
)
async def export_graph(
    graph: GraphName,
    engine: EngineOf,
    *,
    collection: InCollection = "default",
    format: GraphForm = "json",
    at: At = None,
    min_trust: MinTrust | None = None,
) -> Response:
    """Export a graph as JSON, as GraphML, or as a picture (SVG)."""
    text = await engine.graph.export(format, graph=graph, collection=collection, at=at, min_trust=min_trust)
    headers = {**SANDBOX, "Content-Disposition": f'inline; filename="graph.{format}"'}
    return Response(text.encode("utf-8", "replace"), headers=headers, media_type=MEDIA_TYPES[format])
