"""graph: what is connected with what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli import graph_naming, graph_shown
from conspectus.cli.failures import FAILED, NOTHING
from conspectus.cli.graph_options import File, From, New, NodeId, OfGraph, Until, parts_in, properties
from conspectus.cli.options import Common, spread
from conspectus.cli.output import cell, note, progress, show
from conspectus.cli.reporting import plain_table
from conspectus.cli.session import Session, opened
from conspectus.cli.video_options import show_found
from conspectus.model.graph import ENTITY, RELATED, GraphSummary, GraphWritten, NewEdge, NewNode
from conspectus.ports import Progress
from conspectus.settings import Settings

BATCH = Settings().max_graph_batch


@dataclass(frozen=True, slots=True)
class NodeTold:
    """What is said of a node."""

    type: Annotated[str, typer.Option(help="What kind of thing it is.")] = ENTITY
    name: Annotated[str | None, typer.Option(help="What texts call it. Default: its id.")] = None
    alias: Annotated[list[str], typer.Option(help="What else texts call it; may be repeated.")] = field(
        default_factory=list
    )
    property: Annotated[list[str], typer.Option(help="KEY=VALUE; may be repeated.")] = field(
        default_factory=list
    )
    start: From = None
    end: Until = None

    def node(self, name: str) -> NewNode:
        """As the engine takes it."""
        told = properties(self.property)
        return NewNode(name, self.type, self.name, tuple(self.alias), told, self.start, self.end)


@dataclass(frozen=True, slots=True)
class EdgeTold:
    """What is said of an edge."""

    type: Annotated[str, typer.Option(help="How they are connected.")] = RELATED
    weight: Annotated[float, typer.Option(help="How strongly: above 0 and up to 1.")] = 1.0
    property: Annotated[list[str], typer.Option(help="KEY=VALUE; may be repeated.")] = field(
        default_factory=list
    )
    start: From = None
    end: Until = None
    single: Annotated[
        bool, typer.Option("--single", help="It ends the open edges of its source and type elsewhere.")
    ] = False
    evidence: Annotated[str | None, typer.Option(help="Id of the document that says so.")] = None

    def edge(self, source: str, target: str) -> NewEdge:
        """As the engine takes it."""
        told = properties(self.property)
        return NewEdge(
            source, target, self.type, self.weight, told, self.start, self.end, self.single, self.evidence
        )


@dataclass(frozen=True, slots=True)
class Condemned:
    """What of a graph is to go; without any, all of it."""

    node: Annotated[list[str], typer.Option(help="Only this node, with its edges; may be repeated.")] = field(
        default_factory=list
    )
    edge: Annotated[list[str], typer.Option(help="Only this edge (its id); may be repeated.")] = field(
        default_factory=list
    )
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False


def list_graphs(common: Common) -> None:
    """List graphs with the numbers of their nodes and edges."""
    with opened(common) as session:
        found = session.engine.graphs(collection=session.collection)
    show_found(found, _graphs_table(found), "there are no graphs", as_json=common.json)


def add_nodes(file: File, common: Common, of: OfGraph) -> None:
    """Add nodes from a file, or change those of a stored id."""
    nodes = parts_in(file, NewNode)
    with opened(common, new=True) as session, progress() as bars:
        add = partial(session.engine.add_nodes, graph=of.graph, collection=session.collection)
        done = _in_batches(add, nodes, "nodes", bars)
    _show_written(done, "nodes", common)


def add_edges(file: File, common: Common, of: OfGraph) -> None:
    """Add edges from a file; where one leads to no node, none is added."""
    edges = parts_in(file, NewEdge)
    with opened(common, new=True) as session, progress() as bars:
        add = partial(session.engine.add_edges, graph=of.graph, collection=session.collection)
        done = _in_batches(add, edges, "edges", bars)
    _show_written(done, "edges", common)


def add_node(node: NodeId, common: Common, of: OfGraph, told: NodeTold) -> None:
    """Add a node, or change it."""
    with opened(common, new=True) as session:
        [done] = session.engine.add_nodes([told.node(node)], graph=of.graph, collection=session.collection)
    show(done, f"{done.outcome} {done.id}", as_json=common.json)


def add_edge(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the node it leads from.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Id of the node it leads to.")],
    common: Common,
    of: OfGraph,
    told: EdgeTold,
) -> None:
    """Add an edge, or change it."""
    with opened(common, new=True) as session:
        edge = told.edge(source, target)
        [done] = session.engine.add_edges([edge], graph=of.graph, collection=session.collection)
    ended = "".join(f"\nended {each}" for each in done.closed)
    show(done, f"{done.outcome} {done.id}{ended}", as_json=common.json)


def delete(common: Common, of: OfGraph, condemned: Condemned) -> None:
    """Delete nodes, edges, or a graph with everything in it."""
    with opened(common) as session:
        if condemned.node or condemned.edge:
            counts = _delete_parts(session, of, condemned)
        else:
            _ask(session, of, condemned)
            gone = session.engine.delete_graph(of.graph, collection=session.collection)
            counts = {"nodes": gone.nodes, "edges": gone.edges}
    show(counts, f"deleted {counts['nodes']:,} nodes, {counts['edges']:,} edges", as_json=common.json)
    if (condemned.node or condemned.edge) and not any(counts.values()):
        raise typer.Exit(NOTHING)


def add_graph(app: typer.Typer) -> None:
    """Put the commands into the program."""
    group = typer.Typer(help="Graphs of entities, and the names in passages.", rich_markup_mode=None)
    commands: Mapping[str, Callable[..., None]] = {
        "list": list_graphs, "add-nodes": add_nodes, "add-edges": add_edges, "add-node": add_node,
        "add-edge": add_edge, "node": graph_shown.show_node, "nodes": graph_shown.nodes,
        "edges": graph_shown.edges, "neighbours": graph_shown.neighbours, "find": graph_shown.find,
        "at": graph_shown.at, "export": graph_shown.export, "names": graph_naming.names,
        "keep-names": graph_naming.keep_names, "find-names": graph_naming.find_names,
        "link": graph_naming.link, "merge": graph_naming.merge, "split": graph_naming.split,
        "history": graph_naming.history, "delete": delete,
    }  # fmt: skip
    for name, command in commands.items():
        group.command(name)(spread(command))
    app.add_typer(group, name="graph")


def _in_batches(
    add: Callable[[Sequence[New]], list[GraphWritten]],
    parts: Sequence[New],
    what: str,
    report: Progress | None,
) -> list[GraphWritten]:
    """Add as many at once as the settings let; the first batch also where there are none."""
    done: list[GraphWritten] = []
    for start in range(0, max(1, len(parts)), BATCH):
        done += add(parts[start : start + BATCH])
        if report is not None:
            report(f"adding {what}", len(done), len(parts))
    return done


def _ask(session: Session, of: OfGraph, condemned: Condemned) -> None:
    """Ask before a whole graph goes."""
    if condemned.yes:
        return
    graphs = session.engine.graphs(collection=session.collection)
    called = {of.graph, f"graph/{of.graph}"}
    named = [each for each in graphs if {each.source.name, each.source.id} & called]
    size = f" with its {named[0].nodes:,} nodes and {named[0].edges:,} edges" if named else ""
    if not typer.confirm(f"Delete {of.graph!r}{size}?", err=True):
        note("nothing was deleted")
        raise typer.Exit(FAILED)


def _delete_parts(session: Session, of: OfGraph, condemned: Condemned) -> dict[str, int]:
    place = {"graph": of.graph, "collection": session.collection}
    edges = session.engine.delete_edges(condemned.edge, **place).edges if condemned.edge else 0
    if not condemned.node:
        return {"nodes": 0, "edges": edges}
    gone = session.engine.delete_nodes(condemned.node, **place)
    return {"nodes": gone.nodes, "edges": edges + gone.edges}


def _show_written(done: Sequence[GraphWritten], what: str, common: Common) -> None:
    outcomes = [each.outcome for each in done]
    counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in ("added", "updated", "unchanged"))
    ended = sum(len(each.closed) for each in done)
    show(done, f"{what}: {counts}" + (f"; {ended:,} ended" if ended else ""), as_json=common.json)


def _graphs_table(found: Sequence[GraphSummary]) -> RenderableType:
    table = plain_table("graph", "nodes", "edges", "types", "relations")
    for each in found:
        kinds = [_most(counts) for counts in (each.types, each.relations)]
        table.add_row(cell(each.source.name), f"{each.nodes:,}", f"{each.edges:,}", *map(cell, kinds))
    return table


def _most(counts: Mapping[str, int]) -> str:
    """The most frequent of names, with how often."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered[:5]) + (", …" if len(ordered) > 5 else "")
