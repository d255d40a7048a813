"""graph: nodes, edges and traversal."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.tree import Tree

from conspectus.cli.errors import NOTHING, confirm, note_next, show_found
from conspectus.cli.options import After, Common, Limit, PageLimit, Query, Yes, instant
from conspectus.cli.output import cell, note, plain_table, progress, show, write
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.graph import (
    ENTITY,
    RELATED,
    Direction,
    Edge,
    EdgeStep,
    GraphForm,
    GraphSummary,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
    Traversal,
)
from conspectus.settings import Settings
from conspectus.text.times import parse_instant

if TYPE_CHECKING:
    from conspectus.ports import Progress

STDIO: Final = Path("-")
TEXT: Final = 80
LISTS: Final = frozenset({"aliases"})
WITH_ID: Final = {"source_id": "source", "target_id": "target"}
"""Other names of fields of edges that programs write."""
New = TypeVar("New", NewNode, NewEdge)
NodeId = Annotated[str, typer.Argument(metavar="NODE", help="Id of a node.")]
From = Annotated[str | None, typer.Option("--from", help="ISO 8601 time from which it is true.")]
Until = Annotated[str | None, typer.Option("--until", help="ISO 8601 time until which it is true.")]
At = Annotated[str | None, typer.Option(help="State at this ISO 8601 time (default: all times).")]
Reason = Annotated[str, typer.Option(help="Reason, for the list of merges.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="JSON list or JSON Lines; - is stdin.")]
BATCH = Settings().max_graph_batch


@dataclass(frozen=True, slots=True)
class OfGraph:
    """A graph."""

    graph: Annotated[str, typer.Option(help="Graph (name or id).")] = "default"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Fields of a node."""

    type: Annotated[str, typer.Option(help="Type of the node.")] = ENTITY
    name: Annotated[str | None, typer.Option(help="Name in texts (default: its id).")] = None
    alias: Annotated[list[str], typer.Option(help="Other name in texts; repeatable.")] = field(
        default_factory=list
    )
    property: Annotated[list[str], typer.Option(help="KEY=VALUE; repeatable.")] = field(default_factory=list)
    start: From = None
    end: Until = None

    def node(self, name: str) -> NewNode:
        """As the engine takes it."""
        told = properties(self.property)
        return NewNode(name, self.type, self.name, tuple(self.alias), told, self.start, self.end)


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """Fields of an edge."""

    type: Annotated[str, typer.Option(help="Type of the edge.")] = RELATED
    weight: Annotated[float, typer.Option(help="Weight, above 0 and up to 1.")] = 1.0
    property: Annotated[list[str], typer.Option(help="KEY=VALUE; repeatable.")] = field(default_factory=list)
    start: From = None
    end: Until = None
    single_valued: Annotated[
        bool, typer.Option("--single-valued", help="End the open edges of this source and type.")
    ] = False
    evidence: Annotated[str | None, typer.Option(help="Document that states it (id).")] = None

    def edge(self, source: str, target: str) -> NewEdge:
        """As the engine takes it."""
        told = properties(self.property)
        return NewEdge(
            source,
            target,
            self.type,
            self.weight,
            told,
            self.start,
            self.end,
            self.single_valued,
            self.evidence,
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """What of a graph to delete; by default all of it."""

    node: Annotated[list[str], typer.Option(help="Node to delete with its edges; repeatable.")] = field(
        default_factory=list
    )
    edge: Annotated[list[str], typer.Option(help="Edge to delete (id); repeatable.")] = field(
        default_factory=list
    )
    yes: Yes = False


@dataclass(frozen=True, slots=True)
class Walking:
    """How far to traverse, and over which edges."""

    hops: Annotated[int, typer.Option(help="Number of hops.")] = 1
    type: Annotated[list[str], typer.Option(help="Type of edges; repeatable (default: all).")] = field(
        default_factory=list
    )
    min_weight: Annotated[float, typer.Option(help="Minimum weight of edges.")] = 0.0
    direction: Annotated[Direction, typer.Option(help="Direction of edges.")] = "both"
    at: At = None
    limit: Limit = 100
    offset: Annotated[int, typer.Option(min=0, help="Number of results to skip.")] = 0

    def walk(self) -> Traversal:
        """As the engine takes it."""
        return Traversal(
            self.hops,
            tuple(self.type),
            self.min_weight,
            self.direction,
            instant(self.at),
            self.offset,
            self.limit,
        )


def parts_in(file: Path, kind: type[New]) -> list[New]:
    """The nodes or edges of a file. Raises InvalidInput with the number of an invalid one."""
    known = {each.name for each in fields(kind)}
    parts = []
    for number, told in enumerate(_objects(file), 1):
        given = {WITH_ID.get(name, name): value for name, value in told.items()}
        if unknown := given.keys() - known:
            raise InvalidInput(
                f"item {number}",
                f"has an unknown field {min(unknown)!r}; expected: {', '.join(sorted(known))}",
            )
        given |= {name: tuple(given[name]) for name in LISTS & given.keys()}
        try:
            parts.append(kind(**given))
        except TypeError as error:
            raise InvalidInput(f"item {number}", str(error).rpartition("() ")[2]) from None
    return parts


def properties(pairs: Sequence[str]) -> dict[str, Any]:
    """Values by name from KEY=VALUE, parsed as JSON if possible. Raises InvalidInput."""
    told: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise InvalidInput("property", f"{pair!r} is not KEY=VALUE")
        try:
            told[name] = json.loads(value)
        except ValueError:
            told[name] = value
    return told


def nodes_table(nodes: Sequence[Node], scores: Sequence[float] = ()) -> RenderableType:
    """Nodes, one per line."""
    table = plain_table(
        *(["score"] if scores else []), "id", "type", "name", "aliases", "valid", "properties"
    )
    for number, each in enumerate(nodes):
        score = [f"{scores[number]:.3f}"] if scores else []
        table.add_row(
            *score,
            cell(each.id),
            cell(each.type),
            cell(each.name if each.name != each.id else ""),
            cell(", ".join(each.aliases), limit=TEXT),
            valid(each.valid_from, each.valid_until),
            cell(_properties_cell(each.properties), limit=TEXT),
        )
    return table


def edges_table(edges: Sequence[Edge]) -> RenderableType:
    """Edges, one per line."""
    table = plain_table("source", "type", "target", "weight", "valid", "ended by", "id")
    for each in edges:
        ends = [cell(each.source), cell(each.type), cell(each.target)]
        when = valid(each.valid_from, each.valid_until)
        table.add_row(*ends, f"{each.weight:g}", when, cell(each.closed_by or ""), cell(each.id))
    return table


def neighbors_tree(node: str, found: Sequence[Neighbor]) -> RenderableType:
    """A node with its neighbors, each below the one that leads to it."""
    tree = Tree(cell(node, style="bold"))
    branches: dict[tuple[str, ...], Tree] = {(node,): tree}
    for each in sorted(found, key=lambda one: one.hop):
        above = branches.get(each.path[:-1], tree)
        label = cell(f"{_arrow(each.steps[-1])} {each.node.name}" if each.steps else each.node.name)
        label.append(f"  {each.decay:.3f}", style="dim")
        branches[each.path] = above.add(label)
    return tree


def valid(start: datetime | None, end: datetime | None) -> str:
    """The time range in which something is true."""
    if start is None and end is None:
        return ""
    return " to ".join("-" if each is None else f"{each:%Y-%m-%d %H:%M:%S}" for each in (start, end))


def list_graphs(common: Common, *, limit: Limit = 100) -> None:
    """List graphs with numbers of nodes and edges."""
    with opened(common) as session:
        found = session.engine.graph.list(collection=session.collection)[:limit]
    show_found(found, _graphs_table(found), "no graphs", as_json=common.json)


def add_nodes(file: File, common: Common, of: OfGraph) -> None:
    """Add or update nodes from a file."""
    nodes = parts_in(file, NewNode)
    with opened(common, new=True) as session, progress() as bars:
        add = partial(session.engine.graph.add_nodes, graph=of.graph, collection=session.collection)
        done = _in_batches(add, nodes, "nodes", bars)
    _show_written(done, "nodes", common)


def add_edges(file: File, common: Common, of: OfGraph) -> None:
    """Add or update edges from a file."""
    edges = parts_in(file, NewEdge)
    with opened(common, new=True) as session, progress() as bars:
        add = partial(session.engine.graph.add_edges, graph=of.graph, collection=session.collection)
        done = _in_batches(add, edges, "edges", bars)
    _show_written(done, "edges", common)


def add_node(node: NodeId, common: Common, of: OfGraph, told: NodeOptions) -> None:
    """Add or update a node."""
    with opened(common, new=True) as session:
        [done] = session.engine.graph.add_nodes(
            [told.node(node)], graph=of.graph, collection=session.collection
        )
    show(done, f"{done.outcome} {done.id}", as_json=common.json)


def add_edge(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source node (id).")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Target node (id).")],
    common: Common,
    of: OfGraph,
    told: EdgeOptions,
) -> None:
    """Add or update an edge."""
    with opened(common, new=True) as session:
        edge = told.edge(source, target)
        [done] = session.engine.graph.add_edges([edge], graph=of.graph, collection=session.collection)
    ended = "".join(f"\nended {each}" for each in done.closed)
    show(done, f"{done.outcome} {done.id}{ended}", as_json=common.json)


def delete(common: Common, of: OfGraph, chosen: Deleted) -> None:
    """Delete nodes, edges or a whole graph."""
    with opened(common) as session:
        if chosen.node or chosen.edge:
            counts = _delete_parts(session, of, chosen)
        else:
            if not chosen.yes:
                _ask(session, of)
            gone = session.engine.graph.delete(of.graph, collection=session.collection)
            counts = {"nodes": gone.nodes, "edges": gone.edges}
    show(counts, f"deleted {counts['nodes']:,} nodes, {counts['edges']:,} edges", as_json=common.json)
    if (chosen.node or chosen.edge) and not any(counts.values()):
        raise typer.Exit(NOTHING)


def get_node(node: NodeId, common: Common, of: OfGraph, *, limit: PageLimit = 100) -> None:
    """Show a node with its edges."""
    with opened(common) as session:
        place = {"graph": of.graph, "collection": session.collection}
        found = session.engine.graph.node(node, **place)
        page = session.engine.graph.edges(node=node, limit=limit, **place)
    told = {"node": found, "edges": page.edges, "next": page.next}
    show(told, Group(nodes_table([found]), "", edges_table(page.edges)), as_json=common.json)


def nodes(
    common: Common,
    of: OfGraph,
    *,
    type: Annotated[str | None, typer.Option(help="Type of nodes.")] = None,
    after: After = None,
    limit: PageLimit = 100,
) -> None:
    """List the nodes of a graph by id."""
    with opened(common) as session:
        page = session.engine.graph.nodes(
            graph=of.graph, collection=session.collection, type=type, after=after, limit=limit
        )
    show(page, nodes_table(page.nodes), as_json=common.json)
    _end(page.next, len(page.nodes), "no nodes", common)


def edges(
    common: Common,
    of: OfGraph,
    *,
    node: Annotated[str | None, typer.Option(help="Node of the edges (id).")] = None,
    after: After = None,
    limit: PageLimit = 100,
) -> None:
    """List the edges of a graph in the order they were added."""
    with opened(common) as session:
        page = session.engine.graph.edges(
            graph=of.graph, collection=session.collection, node=node, after=after, limit=limit
        )
    show(page, edges_table(page.edges), as_json=common.json)
    _end(page.next, len(page.edges), "no edges", common)


def neighbors(node: NodeId, common: Common, of: OfGraph, walking: Walking) -> None:
    """Show the neighbors of a node."""
    with opened(common) as session:
        found = session.engine.graph.neighbors(
            node, walking.walk(), graph=of.graph, collection=session.collection
        )
    show_found(found, neighbors_tree(node, found), "no neighbors", as_json=common.json)


def search(query: Query, common: Common, of: OfGraph, *, limit: Limit = 10) -> None:
    """Search nodes by the whole words of a query."""
    with opened(common) as session:
        found = session.engine.graph.find_nodes(
            query, graph=of.graph, collection=session.collection, limit=limit
        )
    table = nodes_table([each.node for each in found], [each.score for each in found])
    show_found(found, table, "no match", as_json=common.json)


def snapshot(
    time: Annotated[str, typer.Argument(metavar="TIME", help="ISO 8601 time.")], common: Common, of: OfGraph
) -> None:
    """Show a graph at a point in time."""
    with opened(common) as session:
        found = session.engine.graph.state_at(
            parse_instant(time), graph=of.graph, collection=session.collection
        )
    show(found, Group(nodes_table(found.nodes), "", edges_table(found.edges)), as_json=common.json)
    _end(None, len(found.nodes), "no nodes", common)


def export(
    common: Common,
    of: OfGraph,
    *,
    form: Annotated[GraphForm, typer.Option("--format", help="Output format.")] = "json",
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STDIO,
    when: Annotated[
        str | None, typer.Option("--at", help="State at this ISO 8601 time (default: all times).")
    ] = None,
) -> None:
    """Export a graph as JSON, GraphML or SVG."""
    with opened(common) as session:
        text = session.engine.graph.export(
            form, graph=of.graph, collection=session.collection, at=instant(when)
        )
    if output == STDIO:
        sys.stdout.flush()
        write(text)
        return
    output.write_text(text, encoding="utf-8", newline="\n")
    size = output.stat().st_size
    show({"file": output, "form": form, "bytes": size}, f"wrote {size:,} bytes", as_json=common.json)


def _arrow(step: EdgeStep) -> str:
    line = f"{step.type} {step.weight:g}"
    return f"<-[{line}]-" if step.backwards else f"-[{line}]->"


def _properties_cell(values: Mapping[str, Any]) -> str:
    return json.dumps(dict(values), ensure_ascii=False) if values else ""


def _objects(file: Path) -> list[dict[str, Any]]:
    text = _read(file)
    try:
        read = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(each) for each in _filled_lines(text)]
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput("file", f"is neither a JSON list nor JSON Lines: {error}") from None
    if isinstance(read, list) and all(isinstance(each, dict) for each in read):
        return read
    raise InvalidInput("file", "must hold objects")


def _filled_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STDIO else file.read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("file", f"is not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InvalidInput("file", f"{str(file)!r} cannot be read: {error.strerror}") from None


def _in_batches(
    add: Callable[[Sequence[New]], Sequence[GraphWritten]],
    parts: Sequence[New],
    what: str,
    report: "Progress | None",
) -> list[GraphWritten]:
    """Add in batches of the size that the settings allow; an empty list is one batch."""
    done: list[GraphWritten] = []
    for start in range(0, max(1, len(parts)), BATCH):
        done += add(parts[start : start + BATCH])
        if report is not None:
            report(f"adding {what}", len(done), len(parts))
    return done


def _ask(session: Session, of: OfGraph) -> None:
    """Ask before a whole graph is deleted."""
    graphs = session.engine.graph.list(collection=session.collection)
    called = {of.graph, f"graph/{of.graph}"}
    named = [each for each in graphs if {each.source.name, each.source.id} & called]
    size = f" with {named[0].nodes:,} nodes and {named[0].edges:,} edges" if named else ""
    confirm(f"Delete the graph {of.graph!r}{size}?", yes=False)


def _delete_parts(session: Session, of: OfGraph, chosen: Deleted) -> dict[str, int]:
    place = {"graph": of.graph, "collection": session.collection}
    edges = session.engine.graph.delete_edges(chosen.edge, **place).edges if chosen.edge else 0
    if not chosen.node:
        return {"nodes": 0, "edges": edges}
    gone = session.engine.graph.delete_nodes(chosen.node, **place)
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
    """The most frequent names with their counts."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered[:5]) + (", …" if len(ordered) > 5 else "")


def _end(next_page: str | None, count: int, nothing: str, common: Common) -> None:
    """Name the next page, or end with the exit code for no results."""
    note_next(next_page, as_json=common.json)
    if not count:
        if not common.json:
            note(nothing)
        raise typer.Exit(NOTHING)
