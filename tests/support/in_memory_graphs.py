"""The port of graphs in memory: what every adapter of it must agree with. Nothing here is quick."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.graph import (
    Edge,
    EdgePage,
    EdgeStep,
    GraphReceipt,
    GraphSummary,
    GraphWritten,
    Neighbor,
    Node,
    NodeEvent,
    NodePage,
    Traversal,
)
from conspectus.model.ids import SourceId
from conspectus.model.trust import MinTrust, Origin, Trust, levels_from
from conspectus.ports.graphs import Adding
from tests.support.kept_graphs import KeptGraphs, Merged, at_most, lowered

Rank = tuple[float, str, str, bool]


class MemoryGraphs(KeptGraphs):
    """The `Graphs` port over graphs and documents that are told to it."""

    _with_levels = False

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        """Store nodes, then edges. Raises NotFound and DanglingEdges."""
        self._require(adding)
        nodes = [self._put_node(each, adding) for each in adding.nodes]
        return [*nodes, *(self._put_edge(each, each.id in adding.single) for each in adding.edges)]

    async def nodes_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Node]:
        """Those nodes that exist, in the order asked; of one id in several graphs each."""
        keys = [(graph, name) for name in ids for graph in graphs]
        return [self._nodes[key].told for key in keys if key in self._nodes]

    async def nodes(
        self,
        graphs: Sequence[SourceId],
        *,
        type: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> NodePage:
        """A page of nodes, by id and graph; a cursor is a place."""
        found = [each.told for (graph, _), each in self._nodes.items() if graph in graphs]
        levels = levels_from(min_trust)
        chosen = [each for each in found if type in {None, each.type} and each.trust in levels]
        chosen.sort(key=lambda each: (each.id, each.graph.id))
        start = _place(after)
        page = tuple(chosen[start : start + limit])
        return NodePage(page, str(start + limit) if len(chosen) > start + limit else None)

    async def edges(
        self,
        graphs: Sequence[SourceId],
        *,
        node: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> EdgePage:
        """A page of edges in order of recording; a cursor is a number."""
        last = _place(after)
        found = [
            each
            for each in sorted(self._edges.values(), key=lambda each: each.number)
            if each.edge.graph.id in graphs
            and each.number > last
            and each.edge.trust in levels_from(min_trust)
            and node in {None, each.edge.source, each.edge.target}
        ]
        page = tuple(each.told for each in found[:limit])
        return EdgePage(page, str(found[limit - 1].number) if len(found) > limit else None)

    async def edges_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Edge]:
        """Those edges that exist, in the order asked."""
        found = [self._edges[name].told for name in ids if name in self._edges]
        return [each for each in found if each.graph.id in graphs]

    async def nodes_by_name(
        self, graphs: Sequence[SourceId], keys: Sequence[str]
    ) -> Sequence[tuple[str, Node]]:
        """The nodes that have one of these names or aliases, each with the key that it was found by."""
        ordered = sorted(self._nodes.items(), key=lambda item: (item[0][1], item[0][0]))
        return [
            (key, each.told)
            for key in dict.fromkeys(keys)
            for (graph, _), each in ordered
            if graph in graphs and key in each.all_keys
        ]

    async def nodes_by_terms(
        self,
        graphs: Sequence[SourceId],
        words: Sequence[str],
        *,
        min_trust: MinTrust | None = None,
        limit: int,
    ) -> Sequence[tuple[Node, int]]:
        """Nodes that are found by any of these terms, with how many of them; those with most come first."""
        here = [each for (graph, _), each in self._nodes.items() if graph in graphs]
        counted = [(each.told, len(each.all_terms & set(words))) for each in here]
        levels = levels_from(min_trust)
        found = [(node, count) for node, count in counted if count and node.trust in levels]
        found.sort(key=lambda pair: (-pair[1], pair[0].id, pair[0].graph.id))
        return found[:limit]

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        as_of: datetime | None = None,
        with_levels: bool = False,
    ) -> Sequence[Neighbor]:
        """What is reached from any of the starts, every layer as a whole."""
        there = await self.nodes_by_id(graphs, starts)
        levels = levels_from(walk.min_trust)
        here = {each.id for each in there if _holds(each, walk.at, as_of) and each.trust in levels}
        self._with_levels = with_levels or walk.min_trust is not None
        best = {name: Neighbor(there[0], 0, 1.0, (name,), ()) for name in here}
        layer, order = list(best), []
        for hop in range(1, walk.hops + 1):
            reached = self._layer(graphs, [best[name] for name in layer], walk, as_of=as_of)
            fresh = [each for name, each in reached.items() if name not in best]
            fresh.sort(key=lambda each: (-each.decay, each.node.id))
            order += [replace(each, hop=hop) for each in fresh]
            layer = [each.node.id for each in fresh]
            best.update({each.node.id: each for each in fresh})
        return order[: self._maximum][walk.offset : walk.offset + walk.limit]

    async def delete_nodes(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete nodes with their edges; unknown ids count 0."""
        gone = [name for name in dict.fromkeys(ids) if self._nodes.pop((graph, name), None) is not None]
        touched = [
            each
            for each in self._edges.values()
            if each.edge.graph.id == graph and not {each.edge.source, each.edge.target}.isdisjoint(gone)
        ]
        for each in touched:
            self._remove(each)
        self._drop_merged(graph, set(gone))
        return GraphReceipt(len(gone), len(touched))

    async def delete_edges(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete edges by id; unknown ids count 0."""
        found = [self._edges[name] for name in dict.fromkeys(ids) if name in self._edges]
        gone = [each for each in found if each.edge.graph.id == graph]
        for each in gone:
            self._remove(each)
        return GraphReceipt(0, len(gone))

    async def summary(self, graph: SourceId) -> GraphSummary:
        """A graph in numbers. Raises NotFound."""
        if graph not in self._graphs:
            raise NotFound("graph", graph)
        types = Counter(each.node.type for (home, _), each in self._nodes.items() if home == graph)
        relations = Counter(each.edge.type for each in self._edges.values() if each.edge.graph.id == graph)
        return GraphSummary(
            self._graphs[graph], types.total(), relations.total(), _ordered(types), _ordered(relations)
        )

    async def at(self, graph: SourceId, instant: datetime) -> tuple[Sequence[Node], Sequence[Edge]]:
        """The nodes there were at an instant, and the edges of which both ends were there."""
        here = [each.told for (home, _), each in sorted(self._nodes.items()) if home == graph]
        nodes = [each for each in here if _holds(each, instant)]
        there = {each.id for each in nodes}
        edges = (await self.edges([graph], limit=len(self._edges) or 1)).edges
        held = [each for each in edges if _holds(each, instant) and {each.source, each.target} <= there]
        return nodes, held

    async def merge(
        self,
        graph: SourceId,
        keep: str,
        others: Sequence[str],
        event: NodeEvent,
        *,
        origin: Origin = "user",
    ) -> Node:
        """Make several nodes one. Raises NotFound."""
        asked = list(dict.fromkeys((keep, *others)))
        for name in asked:
            if (graph, name) not in self._nodes:
                raise NotFound("node", name)
        merged = Merged(graph, replace(event, number=len(self._events) + 1))
        self._events.append(merged)
        kept = self._nodes[graph, keep]
        kept.passing = False
        merged.nodes = [self._nodes.pop((graph, name)) for name in asked[1:]]
        for each in merged.nodes:
            for name in (each.node.name, *each.told.aliases):
                if name != kept.node.name:
                    kept.merged.append((merged.event.number, name, each.all_keys, each.all_terms))
        for edge in sorted(self._edges.values(), key=lambda each: each.number):
            if edge.edge.graph.id == graph:
                self._lead(edge, merged, keep, set(asked[1:]), origin)
        kept.node = at_most(lowered(kept.node, *(each.node for each in merged.nodes)), origin)
        return kept.told

    async def split(self, graph: SourceId, merge: int, event: NodeEvent) -> Sequence[Node]:
        """Undo a merge by its number. Raises NotFound or Conflict."""
        here = [each for each in self._events if each.graph == graph and each.event.kind == "merge"]
        merged = next((each for each in here if each.event.number == merge), None)
        if merged is None:
            raise NotFound("merge", str(merge))
        self._require_last(merged)
        keep, *others = merged.event.before
        if again := [name for name in others if (graph, name) in self._nodes]:
            raise Conflict("node", again[0], "exists again")
        if (graph, keep) not in self._nodes:
            raise NotFound("node", keep)
        self._put_back(merged)
        self._events.append(Merged(graph, replace(event, number=len(self._events) + 1)))
        return await self.nodes_by_id([graph], [keep, *others])

    async def events(self, graph: SourceId, *, node: str | None = None) -> Sequence[NodeEvent]:
        """Merges and splits in order, all or those of one node."""
        found = [each.event for each in self._events if each.graph == graph]
        return [each for each in found if node is None or node in (*each.before, *each.after)]

    def _put_back(self, merged: Merged) -> None:
        """Have everything as it was before a merge, as far as it is left."""
        kept = self._nodes[merged.graph, merged.event.before[0]]
        kept.merged = [each for each in kept.merged if each[0] != merged.event.number]
        self._nodes |= {(merged.graph, each.node.id): each for each in merged.nodes}
        for edge, source, target in merged.moved:
            if self._edges.get(edge.edge.id) is edge:
                del self._edges[edge.edge.id]
                self._lay(edge, source, target)
        self._edges |= {each.edge.id: each for each in merged.aside}
        for edge, name in merged.proofs:
            edge.proofs = [each for each in edge.proofs if each != name]
        merged.aside, merged.undone = [], True
        self._loosen((merged.graph, each.node.id) for each in merged.nodes)

    def _layer(
        self,
        graphs: Sequence[SourceId],
        layer: Sequence[Neighbor],
        walk: Traversal,
        *,
        as_of: datetime | None,
    ) -> dict[str, Neighbor]:
        """What is one step from a layer, each by the best way."""
        found: dict[str, tuple[Rank, Neighbor]] = {}
        for before in layer:
            for step in self._steps(graphs, before.path[-1], walk, as_of=as_of):
                decay = before.decay * step.weight
                rank = (-decay, step.source, step.type, step.backwards)
                if step.target not in found or rank < found[step.target][0]:
                    node = self._seen(graphs, step.target, walk, as_of=as_of)
                    path, steps = (*before.path, step.target), (*before.steps, step)
                    found[step.target] = rank, Neighbor(node, 0, decay, path, steps)
        return {name: each for name, (_, each) in found.items()}

    def _steps(
        self, graphs: Sequence[SourceId], name: str, walk: Traversal, *, as_of: datetime | None
    ) -> list[EdgeStep]:
        """The steps that can be made from a node."""
        steps = []
        for kept in self._edges.values():
            edge = kept.edge
            home = edge.graph.id
            ends = [self._nodes[home, end].node for end in (edge.source, edge.target)]
            parts: tuple[Node | Edge, ...] = (edge, *ends)
            there = all(_holds(each, walk.at, as_of) for each in parts)
            there = there and {each.trust for each in parts} <= {*levels_from(walk.min_trust)}
            trust: Trust = edge.trust if self._with_levels else "trusted"
            wanted = edge.weight >= walk.min_weight and (not walk.types or edge.type in walk.types)
            if home in graphs and there and wanted:
                if edge.source == name and walk.direction != "in":
                    steps.append(EdgeStep(name, edge.type, edge.target, edge.weight, trust=trust))
                if edge.target == name and walk.direction != "out":
                    back = EdgeStep(name, edge.type, edge.source, edge.weight, backwards=True, trust=trust)
                    steps.append(back)
        return steps

    def _seen(
        self, graphs: Sequence[SourceId], name: str, walk: Traversal, *, as_of: datetime | None
    ) -> Node:
        """The node of the first of these graphs that has it then."""
        there = [self._nodes[graph, name].told for graph in graphs if (graph, name) in self._nodes]
        levels = levels_from(walk.min_trust)
        return next(each for each in there if _holds(each, walk.at, as_of) and each.trust in levels)


def _holds(what: Node | Edge, at: datetime | None, as_of: datetime | None = None) -> bool:
    """Whether something was there at an instant, both ends included, and was recorded by another one."""
    if as_of is not None and what.recorded > as_of:
        return False
    begins, ends = what.valid_from, what.valid_until
    return at is None or ((begins is None or begins <= at) and (ends is None or at <= ends))


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _place(cursor: str | None) -> int:
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInput("after", "is not a cursor of a page")
    return int(cursor or 0)
