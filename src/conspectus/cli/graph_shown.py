"""graph: nodes, edges and ways between them, as they are and as they were."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from conspectus.cli.failures import NOTHING
from conspectus.cli.graph_options import (
    STANDARD,
    At,
    NodeId,
    OfGraph,
    edges_table,
    neighbours_tree,
    nodes_table,
)
from conspectus.cli.memory_options import instant
from conspectus.cli.options import Common
from conspectus.cli.output import note, show, write
from conspectus.cli.session import opened
from conspectus.cli.video_options import show_found
from conspectus.model.graph import Direction, GraphForm, Walk
from conspectus.text.times import parse_instant

After = Annotated[str | None, typer.Option(help="Go on after a page: its `next`.")]
Most = Annotated[int, typer.Option(min=1, max=1_000, help="Most of them to show.")]


@dataclass(frozen=True, slots=True)
class Walking:
    """How far to walk, and over which edges."""

    hops: Annotated[int, typer.Option(help="How far.")] = 1
    type: Annotated[list[str], typer.Option(help="Only over edges of this type; may be repeated.")] = field(
        default_factory=list
    )
    min_weight: Annotated[float, typer.Option(help="Only over edges of this weight on.")] = 0.0
    direction: Annotated[Direction, typer.Option(help="Along edges, against them, or both.")] = "both"
    at: At = None
    limit: Annotated[int, typer.Option(min=1, help="Most nodes.")] = 100
    skip: Annotated[int, typer.Option(min=0, help="Leave out so many of the nearest.")] = 0

    def walk(self) -> Walk:
        """As the engine takes it."""
        return Walk(
            self.hops,
            tuple(self.type),
            self.min_weight,
            self.direction,
            instant(self.at),
            self.skip,
            self.limit,
        )


def show_node(node: NodeId, common: Common, of: OfGraph) -> None:
    """Show a node with its edges."""
    with opened(common) as session:
        place = {"graph": of.graph, "collection": session.collection}
        found = session.engine.node(node, **place)
        page = session.engine.edges(node=node, limit=100, **place)
    told = {"node": found, "edges": page.edges, "next": page.next}
    show(told, Group(nodes_table([found]), "", edges_table(page.edges)), as_json=common.json)


def nodes(
    common: Common,
    of: OfGraph,
    *,
    type: Annotated[str | None, typer.Option(help="Only nodes of this type.")] = None,
    after: After = None,
    limit: Most = 100,
) -> None:
    """List the nodes of a graph, by id."""
    with opened(common) as session:
        page = session.engine.nodes(
            graph=of.graph, collection=session.collection, type=type, after=after, limit=limit
        )
    show(page, nodes_table(page.nodes), as_json=common.json)
    _end(page.next, len(page.nodes), "there are no nodes", common)


def edges(
    common: Common,
    of: OfGraph,
    *,
    node: Annotated[str | None, typer.Option(help="Only edges of this node.")] = None,
    after: After = None,
    limit: Most = 100,
) -> None:
    """List the edges of a graph, in order of recording."""
    with opened(common) as session:
        page = session.engine.edges(
            graph=of.graph, collection=session.collection, node=node, after=after, limit=limit
        )
    show(page, edges_table(page.edges), as_json=common.json)
    _end(page.next, len(page.edges), "there are no edges", common)


def neighbours(node: NodeId, common: Common, of: OfGraph, walking: Walking) -> None:
    """Draw what a node is connected with, and over which edges."""
    with opened(common) as session:
        found = session.engine.neighbours(node, walking.walk(), graph=of.graph, collection=session.collection)
    show_found(found, neighbours_tree(node, found), "it is connected with nothing", as_json=common.json)


def find(
    query: Annotated[str, typer.Argument(metavar="QUESTION", help="What nodes are to be about.")],
    common: Common,
    of: OfGraph,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Most nodes.")] = 10,
) -> None:
    """Find the nodes that a question is about, by its whole words."""
    with opened(common) as session:
        found = session.engine.find_nodes(query, graph=of.graph, collection=session.collection, limit=limit)
    table = nodes_table([each.node for each in found], [each.score for each in found])
    show_found(found, table, "no node is about that", as_json=common.json)


def at(
    time: Annotated[str, typer.Argument(metavar="TIME", help="An ISO 8601 time.")],
    common: Common,
    of: OfGraph,
) -> None:
    """Show what a graph was at a time."""
    with opened(common) as session:
        found = session.engine.graph_at(parse_instant(time), graph=of.graph, collection=session.collection)
    show(found, Group(nodes_table(found.nodes), "", edges_table(found.edges)), as_json=common.json)
    _end(None, len(found.nodes), "there were no nodes", common)


def export(
    common: Common,
    of: OfGraph,
    *,
    form: Annotated[GraphForm, typer.Option(help="json, graphml, or svg: a picture.")] = "json",
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STANDARD,
    when: Annotated[
        str | None, typer.Option("--at", help="As it was at this ISO 8601 time. Default: all of it.")
    ] = None,
) -> None:
    """Write a graph to a file."""
    with opened(common) as session:
        text = session.engine.export_graph(
            form, graph=of.graph, collection=session.collection, at=instant(when)
        )
    if output == STANDARD:
        sys.stdout.flush()
        write(text)
        return
    output.write_text(text, encoding="utf-8", newline="\n")
    size = output.stat().st_size
    show({"file": output, "form": form, "bytes": size}, f"wrote {size:,} bytes", as_json=common.json)


def _end(next_page: str | None, count: int, nothing: str, common: Common) -> None:
    """Say that there is more, or end with the code for nothing."""
    if next_page and not common.json:
        note(f"there are more: --after {next_page}")
    if not count:
        if not common.json:
            note(nothing)
        raise typer.Exit(NOTHING)
