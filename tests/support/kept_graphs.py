"""Graphs in memory: what is kept of nodes and edges, and how it comes and goes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from conspectus.errors import Conflict, DanglingEdges, NotFound
from conspectus.model.graph import Edge, GraphWritten, Node, NodeEvent
from conspectus.model.ids import SourceId
from conspectus.model.records import Source
from conspectus.model.trust import HIGHEST, Origin, least, least_trusted
from conspectus.ports.graphs import Adding
from conspectus.text.hashing import edge_id, edge_id_as_spelled
from conspectus.text.name_keys import relation_key

Key = tuple[SourceId, str]


Part = TypeVar("Part", Node, Edge)


def lowered(part: Part, *others: Node | Edge) -> Part:
    """A node or edge at most at the level of others."""
    origin = least_trusted(part.origin, *(other.origin for other in others))
    return replace(part, origin=origin, trust=least(part.trust, *(other.trust for other in others)))


def at_most(part: Part, origin: Origin) -> Part:
    """A node or edge at most at the level of a writer."""
    return replace(part, origin=least_trusted(part.origin, origin), trust=least(part.trust, HIGHEST[origin]))


@dataclass(slots=True)
class KeptNode:
    """A node with what it is found by; `merged` are names that came with merges."""

    node: Node
    passing: bool
    keys: set[str]
    terms: set[str]
    merged: list[tuple[int, str, set[str], set[str]]] = field(default_factory=list)

    @property
    def as_read(self) -> Node:
        """The node with all its names."""
        came = (alias for _, alias, _, _ in self.merged)
        return replace(self.node, aliases=tuple(dict.fromkeys((*self.node.aliases, *came))))

    @property
    def all_keys(self) -> set[str]:
        """Its names as they are compared."""
        return self.keys.union(*(keys for _, _, keys, _ in self.merged))

    @property
    def all_terms(self) -> set[str]:
        """Its words."""
        return self.terms.union(*(terms for _, _, _, terms in self.merged))


@dataclass(slots=True, eq=False)
class KeptEdge:
    """An edge with what it rests on."""

    edge: Edge
    number: int
    began: datetime
    single: bool
    stands: bool
    proofs: list[str] = field(default_factory=list)
    closed_by: "KeptEdge | None" = None

    @property
    def as_read(self) -> Edge:
        """The edge as it is read."""
        by = None if self.closed_by is None else self.closed_by.edge.id
        return replace(self.edge, evidence=next(iter(self.proofs), None), closed_by=by)

    def rivals(self, other: "KeptEdge") -> bool:
        """Whether the other says something else of the same."""
        mine, its = self.edge, other.edge
        same = (mine.graph.id, mine.source) == (its.graph.id, its.source)
        return same and relation_key(mine.type) == relation_key(its.type) and mine.target != its.target


@dataclass(slots=True)
class Merged:
    """An event, and what a merge took out of its graph."""

    graph: SourceId
    event: NodeEvent
    undone: bool = False
    nodes: list[KeptNode] = field(default_factory=list)
    moved: list[tuple[KeptEdge, str, str]] = field(default_factory=list)
    aside: list[KeptEdge] = field(default_factory=list)
    proofs: list[tuple[KeptEdge, str]] = field(default_factory=list)


class KeptGraphs:
    """Graphs, the documents that edges rest on, and what was merged."""

    def __init__(self, *graphs: Source, maximum: int = 10_000) -> None:
        self._graphs = {graph.id: graph for graph in graphs}
        self._documents: set[str] = set()
        self._nodes: dict[Key, KeptNode] = {}
        self._edges: dict[str, KeptEdge] = {}
        self._events: list[Merged] = []
        self._number = 0
        self._maximum = maximum

    def write(self, *documents: str) -> None:
        """Have documents that edges can rest on."""
        self._documents |= set(documents)

    def forget(self, *documents: str) -> None:
        """Delete documents, and what is known from them alone."""
        self._documents -= set(documents)
        for edge in self._every_edge():
            had = len(edge.proofs)
            edge.proofs = [name for name in edge.proofs if name not in documents]
            if had and not edge.proofs and not edge.stands:
                self._remove(edge)
                self._loosen((edge.edge.graph.id, end) for end in (edge.edge.source, edge.edge.target))

    def drop(self, graph: SourceId) -> None:
        """Delete a graph."""
        del self._graphs[graph]
        self._nodes = {key: node for key, node in self._nodes.items() if key[0] != graph}
        self._edges = {name: edge for name, edge in self._edges.items() if edge.edge.graph.id != graph}
        self._events = [event for event in self._events if event.graph != graph]

    def _require(self, adding: Adding) -> None:
        homes = [node.graph for node in adding.nodes] + [edge.graph for edge in adding.edges]
        for home in homes:
            if home.id not in self._graphs:
                raise NotFound("graph", home.name)
        there = self._nodes.keys() | {(node.graph.id, node.id) for node in adding.nodes}
        ends = [(edge.graph.id, end) for edge in adding.edges for end in (edge.source, edge.target)]
        if missing := [name for graph, name in dict.fromkeys(ends) if (graph, name) not in there]:
            raise DanglingEdges(list(dict.fromkeys(missing)))
        for edge in adding.edges:
            if edge.evidence is not None and edge.evidence not in self._documents:
                raise NotFound("document", edge.evidence)

    def _put_node(self, node: Node, adding: Adding) -> GraphWritten:
        key, passing = (node.graph.id, node.id), node.id in adding.passing
        words = set(adding.keys.get(node.id, ())), set(adding.terms.get(node.id, ()))
        stored = self._nodes.get(key)
        if stored is None:
            self._nodes[key] = KeptNode(node, passing, *words)
            return GraphWritten(node.id, "added")
        before = stored.node
        times: Any = {"recorded": node.recorded, "updated": node.updated}
        level: Any = {"origin": node.origin, "trust": node.trust}
        same = node == replace(before, graph=node.graph, **times, **level)
        if passing or (same and not stored.passing):
            return GraphWritten(node.id, "unchanged")
        stored.node, stored.passing = lowered(replace(node, recorded=before.recorded), before), False
        stored.keys, stored.terms = words
        return GraphWritten(node.id, "updated")

    def _put_edge(self, edge: Edge, single: bool) -> GraphWritten:
        spelled = edge_id_as_spelled(edge.graph.id, edge.source, edge.target, edge.type, edge.valid_from)
        stored = self._edges.get(edge.id) or self._edges.get(spelled)
        if stored is not None:
            edge = replace(edge, id=stored.edge.id)
            return self._change(stored, edge, single)
        self._number += 1
        fresh = KeptEdge(edge, self._number, _began(edge), single, stands=edge.evidence is None)
        self._edges[edge.id] = fresh
        self._prove(fresh, edge.evidence)
        return GraphWritten(edge.id, "added", self._end(fresh) if single else ())

    def _change(self, stored: KeptEdge, new: Edge, single: bool) -> GraphWritten:
        before = stored.edge
        now = replace(before, weight=new.weight, properties=new.properties)
        ends = new.valid_until != before.valid_until
        if ends and not (new.valid_until is None and stored.closed_by is not None):
            now = replace(now, valid_until=new.valid_until)
            stored.closed_by = None
        proved = self._prove(stored, new.evidence)
        ending = (stored.single or single) and (now.valid_until != before.valid_until or not stored.single)
        if changed := now != before:
            stored.edge = replace(now, updated=new.updated)
        if changed or proved:
            stored.edge = lowered(stored.edge, new)
        stored.began = _began(stored.edge)
        stored.single |= single
        stored.stands |= new.evidence is None
        closed = self._end(stored) if ending else ()
        return GraphWritten(new.id, "updated" if changed or proved else "unchanged", closed)

    @staticmethod
    def _prove(edge: KeptEdge, document: str | None) -> bool:
        if document is None or document in edge.proofs:
            return False
        edge.proofs.append(document)
        return True

    def _end(self, edge: KeptEdge) -> tuple[str, ...]:
        rivals = [other for other in self._edges.values() if edge.rivals(other)]
        later = [rival for rival in rivals if rival.single and rival.began > edge.began]
        if later and edge.edge.valid_until is None:
            by = min(later, key=lambda rival: (rival.began, rival.number))
            edge.edge, edge.closed_by = lowered(replace(edge.edge, valid_until=by.began), by.edge), by
        ended = [
            rival
            for rival in rivals
            if rival.began <= edge.began
            and (
                rival.edge.valid_until is None
                or (rival.closed_by is not None and rival.edge.valid_until > edge.began)
            )
        ]
        ended.sort(key=lambda edge: edge.number)
        for rival in ended:
            rival.edge = replace(rival.edge, valid_until=edge.began, updated=edge.edge.updated)
            rival.edge = lowered(rival.edge, edge.edge)
            rival.closed_by = edge
        return tuple(rival.edge.id for rival in ended)

    def _end_anew(self, edge: KeptEdge) -> tuple[str, str | None]:
        """Give an edge the end that the next single rival sets, or none."""
        rivals = [rival for rival in self._edges.values() if edge.rivals(rival)]
        later = [rival for rival in rivals if rival.single and rival.began > edge.began]
        edge.closed_by = min(later, key=lambda rival: (rival.began, rival.number), default=None)
        began = None if edge.closed_by is None else edge.closed_by.began
        edge.edge = replace(edge.edge, valid_until=began)
        return edge.edge.id, None if edge.closed_by is None else edge.closed_by.edge.id

    def _remove(self, gone: KeptEdge) -> None:
        """Take an edge away; what it ended stays ended."""
        if self._edges.get(gone.edge.id) is gone:
            del self._edges[gone.edge.id]
        for merged in self._events:
            merged.aside = [edge for edge in merged.aside if edge is not gone]
        for edge in self._every_edge():
            if edge.closed_by is gone:
                edge.closed_by = None

    def _every_edge(self) -> list[KeptEdge]:
        """The edges, also those that merges took out."""
        return [*self._edges.values(), *(edge for event in self._events for edge in event.aside)]

    def _loosen(self, keys: Iterable[Key]) -> None:
        """Take passing nodes away that no edge leads to any more."""
        connected = {
            (edge.edge.graph.id, end)
            for edge in self._every_edge()
            for end in (edge.edge.source, edge.edge.target)
        }
        for key in keys:
            if key not in connected and key in self._nodes and self._nodes[key].passing:
                del self._nodes[key]

    def _lead(self, edge: KeptEdge, merged: Merged, keep: str, gone: set[str], origin: Origin) -> None:
        """Have an edge of a node that is merged away lead to the kept one, or take it out."""
        ends = edge.edge.source, edge.edge.target
        if gone.isdisjoint(ends):
            return
        source, target = (keep if end in gone else end for end in ends)
        name = _renamed(edge.edge, source, target)
        same = self._edges.get(name)
        del self._edges[edge.edge.id]
        if (source == target and ends[0] != ends[1]) or same is not None:
            merged.aside.append(edge)
            for document in edge.proofs if same is not None else ():
                if same is not None and self._prove(same, document):
                    merged.proofs.append((same, document))
            if same is not None:
                same.edge = at_most(lowered(same.edge, edge.edge), origin)
            return
        merged.moved.append((edge, *ends))
        edge.edge = at_most(edge.edge, origin)
        self._lay(edge, source, target)

    def _lay(self, edge: KeptEdge, source: str, target: str) -> None:
        """Have an edge lead elsewhere."""
        name = _renamed(edge.edge, source, target)
        edge.edge = replace(edge.edge, id=name, source=source, target=target)
        self._edges[name] = edge

    def _require_last(self, merged: Merged) -> None:
        """Raise Conflict if the merge was undone, or what it touched was merged again."""
        number = str(merged.event.number)
        if merged.undone:
            raise Conflict("merge", number, "was undone already")
        edges = [*merged.aside, *(edge for edge, _, _ in merged.moved if edge in self._every_edge())]
        ours = {end for edge in edges for end in (edge.edge.source, edge.edge.target)}
        ours |= set(merged.event.before)
        for later in self._events[self._events.index(merged) + 1 :]:
            here = later.graph == merged.graph and later.event.kind == "merge" and not later.undone
            if here and not ours.isdisjoint(later.event.before):
                raise Conflict(
                    "merge", number, f"merge {later.event.number} depends on it; undo that one first"
                )

    def _drop_merged(self, graph: SourceId, gone: set[str]) -> None:
        """Forget what was merged into nodes that are gone."""
        for merged in reversed([event for event in self._events if event.graph == graph]):
            if merged.event.kind == "merge" and not merged.undone and merged.event.before[0] in gone:
                gone |= set(merged.event.before)
                merged.nodes, merged.aside, merged.moved, merged.undone = [], [], [], True


def _began(edge: Edge) -> datetime:
    if edge.valid_from is not None:
        return edge.valid_from
    return edge.recorded if edge.valid_until is None else min(edge.recorded, edge.valid_until)


def _renamed(edge: Edge, source: str, target: str) -> str:
    """The id of an edge between other nodes, made as its id was."""
    spelled = edge_id_as_spelled(edge.graph.id, edge.source, edge.target, edge.type, edge.valid_from)
    make_id = edge_id_as_spelled if edge.id == spelled else edge_id
    return make_id(edge.graph.id, source, target, edge.type, edge.valid_from)
