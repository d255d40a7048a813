"""graph: nodes, edges, traversal, and the entities that chunks mention."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.tree import Tree

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument, option
from conspectus.cli.errors import confirm
from conspectus.cli.options import Limit, MinTrustOption, Wait, Yes, instant
from conspectus.cli.output import cell, format_value, progress, rows_table, valid, write
from conspectus.cli.session import NewSession, Opening, Session
from conspectus.cli.text_input import STDIO, read_text
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.graph import (
    Edge,
    EdgePage,
    EdgeStep,
    EntityCount,
    EntityLink,
    GraphForm,
    GraphState,
    GraphSummary,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
    NodeEvent,
    NodePage,
)
from conspectus.model.parameters import GraphName
from conspectus.model.records import Collection, Mention
from conspectus.model.trust import least, level_mark
from conspectus.settings import Settings
from conspectus.text.counts import format_count

EXPORT: Final = "engine.graph:GraphService.export"
MAX_TEXT_LENGTH: Final = 80
LIST_FIELDS: Final = frozenset({"aliases"})
EDGE_SYNONYMS: Final = {"source_id": "source", "target_id": "target"}
"""Alternative names of edge fields that other programs write."""
VALIDITY: Final = {"properties": "--property", "valid_from": "--from", "valid_until": "--until"}
"""Options of nodes and edges."""
New = TypeVar("New", NewNode, NewEdge)
STORED_PARTS: Final[Mapping[type, tuple[str, type[Node | Edge]]]] = MappingProxyType(
    {NewNode: ("nodes", Node), NewEdge: ("edges", Edge)}
)
"""Names of the lists in an export of a graph, and what their elements are."""
NodeId = Annotated[str, argument(NewNode, "id", metavar="NODE")]
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="JSON list, JSON Lines or graph export; - is stdin.")
]
BATCH = Settings().max_graph_batch
MAX_CANDIDATES = 3
"""Candidates of a mention that are shown."""


@dataclass(frozen=True, slots=True)
class OfGraph:
    """Options that select a graph."""

    graph: Annotated[str, option(GraphName)] = "default"

    def arguments(self, session: Session) -> dict[str, Any]:
        """Return the graph and the collection as arguments of the engine."""
        return {"graph": self.graph, "collection": session.collection}


@dataclass(frozen=True, slots=True)
class Deleted:
    """The part of a graph to delete; by default all of it."""

    node: Annotated[list[str], option("engine.graph:GraphService.delete_nodes", "nodes")] = field(
        default_factory=list
    )
    edge: Annotated[list[str], option("engine.graph:GraphService.delete_edges", "edges")] = field(
        default_factory=list
    )
    yes: Yes = False


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The part of a text that is linked."""

    mention: Annotated[str | None, typer.Option(help="Part of the text to link (default: all entities).")] = (
        None
    )


def parts_in(file: Path, kind: type[New]) -> list[New]:
    """Return the nodes or edges in a file, which may be an export of a graph.

    Raises InvalidInput with the number of an invalid one.
    """
    field_names = {member.name for member in fields(kind)}
    plural, stored = STORED_PARTS[kind]
    set_by_store = {member.name for member in fields(stored)} - field_names
    parts = []
    for number, values in enumerate(_objects(file, plural), 1):
        arguments = {
            EDGE_SYNONYMS.get(name, name): value for name, value in values.items() if name not in set_by_store
        }
        if unknown := arguments.keys() - field_names:
            raise InvalidInput(
                f"item {number}",
                f"has an unknown field {min(unknown)!r}; expected: {', '.join(sorted(field_names))}",
            )
        arguments |= {name: tuple(arguments[name]) for name in LIST_FIELDS & arguments.keys()}
        try:
            parts.append(kind(**arguments))
        except TypeError as error:
            raise InvalidInput(f"item {number}", str(error).rpartition("() ")[2]) from None
    return parts


def nodes_table(nodes: Sequence[Node], scores: Sequence[float] = ()) -> RenderableType:
    """Return nodes, one per line, with their scores if there are any."""
    rows = (
        (
            node.id, node.type, node.name if node.name != node.id else "",
            cell(format_value(node.aliases), limit=MAX_TEXT_LENGTH), valid(node.valid_from, node.valid_until),
            cell(
                json.dumps(dict(node.properties), ensure_ascii=False) if node.properties else "",
                limit=MAX_TEXT_LENGTH,
            ),
            node.trust,
        )
        for node in nodes
    )  # fmt: skip
    columns = ("id", "type", "name", "aliases", "valid", "properties", "trust")
    if not scores:
        return rows_table(columns, rows)
    scored = ((f"{score:.3f}", *row) for score, row in zip(scores, rows, strict=True))
    return rows_table(("score", *columns), scored)


def edges_table(edges: Sequence[Edge]) -> RenderableType:
    """Return edges, one per line."""
    rows = (
        (
            edge.source, edge.type, edge.target, f"{edge.weight:g}", valid(edge.valid_from, edge.valid_until),
            edge.closed_by, edge.trust, edge.id,
        )
        for edge in edges
    )  # fmt: skip
    return rows_table(("source", "type", "target", "weight", "valid", "ended by", "trust", "id"), rows)


def neighbors_tree(node: str, neighbors: Sequence[Neighbor]) -> RenderableType:
    """Return a node with its neighbors, each below the one that leads to it."""
    tree = Tree(cell(node, style="bold"))
    branches: dict[tuple[str, ...], Tree] = {(node,): tree}
    for neighbor in sorted(neighbors, key=lambda neighbor: neighbor.hop):
        above = branches.get(neighbor.path[:-1], tree)
        label = cell(
            f"{_arrow(neighbor.steps[-1])} {neighbor.node.name}" if neighbor.steps else neighbor.node.name
        )
        step = neighbor.steps[-1].trust if neighbor.steps else neighbor.node.trust
        label.append(f"  {neighbor.decay:.3f}{level_mark(least(neighbor.node.trust, step))}", style="dim")
        branches[neighbor.path] = above.add(label)
    return tree


def _graphs_table(graphs: Sequence[GraphSummary]) -> RenderableType:
    rows = (
        (
            graph.source.name,
            graph.nodes,
            graph.edges,
            _most_frequent(graph.types),
            _most_frequent(graph.relations),
        )
        for graph in graphs
    )
    return rows_table(("graph", "nodes", "edges", "types", "relations"), rows)


def add_nodes(file: File, session: NewSession, of: OfGraph) -> None:
    """Add or update nodes from a file."""
    _add_parts(parts_in(file, NewNode), session.engine.graph.add_nodes, "nodes", session, of)


def add_edges(file: File, session: NewSession, of: OfGraph) -> None:
    """Add or update edges from a file."""
    _add_parts(parts_in(file, NewEdge), session.engine.graph.add_edges, "edges", session, of)


def _write_text(part: GraphWritten) -> str:
    return "\n".join([f"{part.outcome} {part.id}", *(f"ended {edge_id}" for edge_id in part.closed)])


def delete(session: Session, of: OfGraph, deleted: Deleted) -> None:
    """Delete nodes, edges or a whole graph."""
    if deleted.node or deleted.edge:
        counts = _delete_parts(session, of, deleted)
    else:
        if not deleted.yes:
            graphs = session.engine.graph.list(collection=session.collection)
            graph_names = {of.graph, f"graph/{of.graph}"}
            named = [graph for graph in graphs if {graph.source.name, graph.source.id} & graph_names]
            size = f" with {_size_text(named[0].nodes, named[0].edges)}" if named else ""
            confirm(f"Delete the graph {of.graph!r}{size}?", yes=False)
        gone = session.engine.graph.delete(of.graph, collection=session.collection)
        counts = {"nodes": gone.nodes, "edges": gone.edges}
    session.show(counts, f"deleted {_size_text(counts['nodes'], counts['edges'])}")
    if (deleted.node or deleted.edge) and not any(counts.values()):
        session.end_with_nothing()


def get_node(node: NodeId, session: Session, of: OfGraph, *, limit: Limit = 100) -> None:
    """Show a node with its edges."""
    graph_arguments = of.arguments(session)
    stored = session.engine.graph.get_node(node, **graph_arguments)
    page = session.engine.graph.list_edges(node=node, limit=limit, **graph_arguments)
    values = {"node": stored, "edges": page.edges, "next": page.next}
    session.show(values, Group(nodes_table([stored]), "", edges_table(page.edges)))


def _show_nodes(session: Session, page: NodePage, _: Arguments) -> None:
    session.show_page(page, nodes_table(page.nodes), None if page.nodes else "no nodes")


def _show_edges(session: Session, page: EdgePage, _: Arguments) -> None:
    session.show_page(page, edges_table(page.edges), None if page.edges else "no edges")


def _show_neighbors(session: Session, neighbors: Sequence[Neighbor], arguments: Arguments) -> None:
    session.show_or_exit(neighbors, neighbors_tree(arguments["node"], neighbors), "no neighbors")


def _show_snapshot(session: Session, state: GraphState, _: Arguments) -> None:
    session.show(state, Group(nodes_table(state.nodes), "", edges_table(state.edges)))
    if not state.nodes:
        session.end_with_nothing("no nodes")


def export(
    session: Session,
    of: OfGraph,
    *,
    form: Annotated[GraphForm, option(EXPORT, "format", "--format")] = "json",
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STDIO,
    when: Annotated[str | None, option(EXPORT, "at", "--at")] = None,
    min_trust: MinTrustOption = None,
) -> None:
    """Export a graph as JSON, GraphML or SVG."""
    text = session.engine.graph.export(form, **of.arguments(session), at=instant(when), min_trust=min_trust)
    if output == STDIO:
        sys.stdout.flush()
        write(text)
        return
    output.write_text(text, encoding="utf-8", newline="\n")
    size = output.stat().st_size
    session.show({"file": output, "form": form, "bytes": size}, f"wrote {format_count(size, 'byte')}")


def _entities_table(entities: Sequence[EntityCount]) -> RenderableType:
    return rows_table(
        ("name", "type", "chunks"), ((entity.name, entity.type, entity.passages) for entity in entities)
    )


def enable_extraction(session: Session, *, wait: Wait = True) -> None:
    """Enable entity extraction for a collection."""
    with progress() as bars:
        collection = session.engine.graph.set_entity_extraction(True, collection=session.collection)
        read = (
            session.engine.graph.wait_until_extracted(collection=session.collection, progress=bars)
            if wait
            else 0
        )
    session.show(
        {"collection": collection, "read": read}, f"enabled; {format_count(read, 'chunk')} processed"
    )


def _show_disabled(session: Session, collection: Collection, _: Arguments) -> None:
    session.show({"collection": collection, "read": 0}, "disabled")


def _mentions_table(mentions: Sequence[Mention]) -> RenderableType:
    rows = (
        (
            mention.text,
            mention.type,
            str(mention.start),
            str(mention.end),
            mention.key,
            f"{mention.score:.2f}",
        )
        for mention in mentions
    )
    return rows_table(("name", "type", "from", "to", "key", "score"), rows)


def _find_mention(_: Session, arguments: Arguments) -> None:
    mention, text = arguments["extra"].mention, arguments["text"]
    if mention is None:
        return
    start = text.find(mention)
    if not mention or start < 0:
        raise InvalidInput("mention", f"{mention!r} is not in the text")
    arguments["mention"] = start, start + len(mention)


def _links_table(links: Sequence[EntityLink]) -> RenderableType:
    rows = (
        (
            link.mention.text, link.node.id if link.node else "-",
            [f"{candidate.node.id} {candidate.score:.2f}" for candidate in link.candidates[:MAX_CANDIDATES]],
        )
        for link in links
    )  # fmt: skip
    return rows_table(("mention", "node", "candidates"), rows)


def _show_restored(session: Session, nodes: Sequence[Node], _: Arguments) -> None:
    session.show(nodes, f"restored {', '.join(restored.id for restored in nodes)}")


def _merges_table(events: Sequence[NodeEvent]) -> RenderableType:
    rows = (
        (str(event.number), event.kind, event.at, event.by, event.before, event.after, event.reason)
        for event in events
    )
    return rows_table(("number", "kind", "time", "by", "before", "after", "reason"), rows)


def _arrow(step: EdgeStep) -> str:
    line = f"{step.type} {step.weight:g}"
    return f"<-[{line}]-" if step.backwards else f"-[{line}]->"


def _objects(file: Path, plural: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, of JSON Lines, or of one list of an exported graph."""
    text = read_text(file)
    is_whole = text.lstrip().startswith(("[", '{"graph":'))
    try:
        read: Any = (
            json.loads(text) if is_whole else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput("file", f"is neither a JSON list nor JSON Lines: {error}") from None
    if isinstance(read, dict):
        read = read.get(plural)
    if isinstance(read, list) and all(isinstance(part, dict) for part in read):
        return read
    raise InvalidInput("file", "must hold objects")


def _add_parts(
    parts: Sequence[New],
    add: Callable[..., Sequence[GraphWritten]],
    what: str,
    session: Session,
    of: OfGraph,
) -> None:
    """Add nodes or edges in batches of the size in the settings; an empty list is one batch."""
    done: list[GraphWritten] = []
    with progress() as bars:
        for start in range(0, max(1, len(parts)), BATCH):
            done += add(parts[start : start + BATCH], **of.arguments(session))
            if bars is not None:
                bars(f"adding {what}", len(done), len(parts))
    outcomes: list[str] = [part.outcome for part in done]
    counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in ("added", "updated", "unchanged"))
    ended = sum(len(part.closed) for part in done)
    session.show(done, f"{what}: {counts}" + (f"; {ended:,} ended" if ended else ""))


def _size_text(nodes: int, edges: int) -> str:
    return f"{format_count(nodes, 'node')}, {format_count(edges, 'edge')}"


def _delete_parts(session: Session, of: OfGraph, deleted: Deleted) -> dict[str, int]:
    graph_arguments = of.arguments(session)
    edges = session.engine.graph.delete_edges(deleted.edge, **graph_arguments).edges if deleted.edge else 0
    if not deleted.node:
        return {"nodes": 0, "edges": edges}
    gone = session.engine.graph.delete_nodes(deleted.node, **graph_arguments)
    return {"nodes": gone.nodes, "edges": edges + gone.edges}


def _most_frequent(counts: Mapping[str, int]) -> str:
    """Return the most frequent names with their counts."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered[:5]) + (", …" if len(ordered) > 5 else "")


GRAPH_COMMANDS: Final = {
    "list": Command(
        "graph:GraphService.list", "List graphs with numbers of nodes and edges.", _graphs_table, limit=100,
        nothing="no graphs",
    ),
    "add-nodes": add_nodes, "add-edges": add_edges,
    "add-node": Command(
        "graph:GraphService.add_nodes", "Add or update a node.", _write_text, element="nodes",
        arguments={"id": "NODE"}, only="graph type name aliases properties valid_from valid_until trust",
        options={"aliases": "--alias", **VALIDITY}, opening=Opening(new=True),
    ),
    "add-edge": Command(
        "graph:GraphService.add_edges", "Add or update an edge.", _write_text, element="edges",
        only="graph type weight properties valid_from valid_until single evidence trust",
        options={"single": "--single-valued", **VALIDITY}, opening=Opening(new=True),
    ),
    "get-node": get_node,
    "nodes": Command("graph:GraphService.list_nodes", "List the nodes of a graph by id.", show=_show_nodes),
    "edges": Command(
        "graph:GraphService.list_edges", "List the edges of a graph in the order they were added.",
        show=_show_edges,
    ),
    "neighbors": Command(
        "graph:GraphService.neighbors", "Show the neighbors of a node.", options={"types": "--type"},
        show=_show_neighbors,
    ),
    "search": Command(
        "graph:GraphService.search_nodes", "Search nodes by the whole words of a query.",
        lambda hits: nodes_table([hit.node for hit in hits], [hit.score for hit in hits]), nothing="no match",
    ),
    "snapshot": Command(
        "graph:GraphService.snapshot", "Show a graph at a point in time.", arguments={"at": "TIME"},
        only="graph", show=_show_snapshot,
    ),
    "export": export,
    "entities": Command(
        "graph:GraphService.list_entities", "List the entities that chunks mention, by frequency.",
        _entities_table, nothing="no entities",
    ),
    "extract": Command(
        "graph:GraphService.extract_entities", "Show the entities in a text.", _mentions_table,
        nothing="no entities in the text",
    ),
    "link": Command(
        "graph:GraphService.link_entities", "Link entities in a text to graph nodes.", _links_table,
        only="graph min_score", extra=Mentioned, prepare=_find_mention,
        nothing="no entities in the text",
    ),
    "merge": Command(
        "graph:GraphService.merge_nodes", "Merge nodes and their edges into one.", "merged into {result.id}",
        arguments={"into": "NODE", "nodes": "OTHER"},
    ),
    "undo-merge": Command("graph:GraphService.undo_merge", "Undo a merge.", show=_show_restored),
    "merges": Command(
        "graph:GraphService.list_merges", "List merges and undone merges.", _merges_table,
        arguments={"node": "NODE"}, limit=100, nothing="no merges",
    ),
    "delete": delete,
}  # fmt: skip

GRAPH_EXTRACTION_COMMANDS: Final = {
    "enable": enable_extraction,
    "disable": Command(
        "graph:GraphService.set_entity_extraction", "Disable entity extraction and delete its results.",
        fixed={"enabled": False}, show=_show_disabled,
    ),
}  # fmt: skip
