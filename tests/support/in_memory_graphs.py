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
from conspectus.ports.graphs import Adding, Graphs
from conspectus.text.name_keys import relation_key
from tests.support.kept_graphs import KeptGraphs, Merged, at_most, lowered

Rank = tuple[float, str, str, bool]


class MemoryGraphs(KeptGraphs, Graphs):
    """The port over graphs and documents that tests add; cursors are positions in the order of a page."""

    _with_levels = False

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        self._require(adding)
        nodes = [self._put_node(node, adding) for node in adding.nodes]
        return [*nodes, *(self._put_edge(edge, edge.id in adding.single) for edge in adding.edges)]

    async def nodes_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Node]:
        keys = [(graph, name) for name in ids for graph in graphs]
        return [self._nodes[key].as_read for key in keys if key in self._nodes]

    async def nodes(
        self,
        graphs: Sequence[SourceId],
        *,
        type: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> NodePage:
        visible = [stored.as_read for (graph, _), stored in self._nodes.items() if graph in graphs]
        levels = levels_from(min_trust)
        selected = [node for node in visible if type in {None, node.type} and node.trust in levels]
        selected.sort(key=lambda node: (node.id, node.graph.id))
        start = _position(after)
        page = tuple(selected[start : start + limit])
        return NodePage(page, str(start + limit) if len(selected) > start + limit else None)

    async def edges(
        self,
        graphs: Sequence[SourceId],
        *,
        node: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> EdgePage:
        last = _position(after)
        selected = [
            stored
            for stored in sorted(self._edges.values(), key=lambda edge: edge.number)
            if stored.edge.graph.id in graphs
            and stored.number > last
            and stored.edge.trust in levels_from(min_trust)
            and node in {None, stored.edge.source, stored.edge.target}
        ]
        page = tuple(edge.as_read for edge in selected[:limit])
        return EdgePage(page, str(selected[limit - 1].number) if len(selected) > limit else None)

    async def edges_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Edge]:
        stored = [self._edges[name].as_read for name in ids if name in self._edges]
        return [edge for edge in stored if edge.graph.id in graphs]

    async def nodes_by_name(
        self, graphs: Sequence[SourceId], keys: Sequence[str]
    ) -> Sequence[tuple[str, Node]]:
        ordered = sorted(self._nodes.items(), key=lambda item: (item[0][1], item[0][0]))
        return [
            (key, stored.as_read)
            for key in dict.fromkeys(keys)
            for (graph, _), stored in ordered
            if graph in graphs and key in stored.all_keys
        ]

    async def nodes_by_terms(
        self,
        graphs: Sequence[SourceId],
        words: Sequence[str],
        *,
        min_trust: MinTrust | None = None,
        limit: int,
    ) -> Sequence[tuple[Node, int]]:
        here = [stored for (graph, _), stored in self._nodes.items() if graph in graphs]
        counted = [(stored.as_read, len(stored.all_terms & set(words))) for stored in here]
        levels = levels_from(min_trust)
        matches = [(node, count) for node, count in counted if count and node.trust in levels]
        matches.sort(key=lambda pair: (-pair[1], pair[0].id, pair[0].graph.id))
        return matches[:limit]

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        as_of: datetime | None = None,
        with_levels: bool = False,
    ) -> Sequence[Neighbor]:
        there = await self.nodes_by_id(graphs, starts)
        levels = levels_from(walk.min_trust)
        here = {node.id for node in there if _holds(node, walk.at, as_of) and node.trust in levels}
        self._with_levels = with_levels or walk.min_trust is not None
        best = {name: Neighbor(there[0], 0, 1.0, (name,), ()) for name in here}
        layer, order = list(best), []
        for hop in range(1, walk.hops + 1):
            reached = self._layer(graphs, [best[name] for name in layer], walk, as_of=as_of)
            fresh = [neighbor for name, neighbor in reached.items() if name not in best]
            fresh.sort(key=lambda neighbor: (-neighbor.decay, neighbor.node.id))
            order += [replace(neighbor, hop=hop) for neighbor in fresh]
            layer = [neighbor.node.id for neighbor in fresh]
            best.update({neighbor.node.id: neighbor for neighbor in fresh})
        return order[: self._maximum][walk.offset : walk.offset + walk.limit]

    async def withdraw(
        self, graph: SourceId, edge: str, *, ends: datetime | None
    ) -> Sequence[tuple[str, str | None]]:
        stored = self._edges.get(edge)
        if stored is None or stored.edge.graph.id != graph:
            return []
        stored.single = False
        if ends is not None:
            until = stored.edge.valid_until or max(ends, stored.began)
            stored.edge, stored.closed_by = replace(stored.edge, valid_until=until), None
        return [self._end_anew(ended) for ended in self._edges.values() if ended.closed_by is stored]

    async def delete_nodes(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        gone = [name for name in dict.fromkeys(ids) if self._nodes.pop((graph, name), None) is not None]
        touched = [
            edge
            for edge in self._edges.values()
            if edge.edge.graph.id == graph and not {edge.edge.source, edge.edge.target}.isdisjoint(gone)
        ]
        for edge in touched:
            self._remove(edge)
        self._drop_merged(graph, set(gone))
        return GraphReceipt(len(gone), len(touched))

    async def delete_edges(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        stored = [self._edges[name] for name in dict.fromkeys(ids) if name in self._edges]
        gone = [edge for edge in stored if edge.edge.graph.id == graph]
        for edge in gone:
            self._remove(edge)
        return GraphReceipt(0, len(gone))

    async def summary(self, graph: SourceId) -> GraphSummary:
        if graph not in self._graphs:
            raise NotFound("graph", graph)
        types = Counter(stored.node.type for (home, _), stored in self._nodes.items() if home == graph)
        relations = Counter(edge.edge.type for edge in self._edges.values() if edge.edge.graph.id == graph)
        return GraphSummary(
            self._graphs[graph], types.total(), relations.total(), _ordered(types), _ordered(relations)
        )

    async def read_at(self, graph: SourceId, instant: datetime) -> tuple[Sequence[Node], Sequence[Edge]]:
        here = [stored.as_read for (home, _), stored in sorted(self._nodes.items()) if home == graph]
        nodes = [node for node in here if _holds(node, instant)]
        there = {node.id for node in nodes}
        edges = (await self.edges([graph], limit=len(self._edges) or 1)).edges
        valid_edges = [
            edge for edge in edges if _holds(edge, instant) and {edge.source, edge.target} <= there
        ]
        return nodes, valid_edges

    async def merge(
        self,
        graph: SourceId,
        keep: str,
        others: Sequence[str],
        event: NodeEvent,
        *,
        origin: Origin = "user",
    ) -> Node:
        ids = list(dict.fromkeys((keep, *others)))
        for name in ids:
            if (graph, name) not in self._nodes:
                raise NotFound("node", name)
        merged = Merged(graph, replace(event, number=len(self._events) + 1))
        self._events.append(merged)
        survivor = self._nodes[graph, keep]
        survivor.passing = False
        merged.nodes = [self._nodes.pop((graph, name)) for name in ids[1:]]
        for removed in merged.nodes:
            for name in (removed.node.name, *removed.as_read.aliases):
                if name != survivor.node.name:
                    survivor.merged.append((merged.event.number, name, removed.all_keys, removed.all_terms))
        for edge in sorted(self._edges.values(), key=lambda stored: stored.number):
            if edge.edge.graph.id == graph:
                self._lead(edge, merged, keep, set(ids[1:]), origin)
        survivor.node = at_most(lowered(survivor.node, *(removed.node for removed in merged.nodes)), origin)
        return survivor.as_read

    async def split(self, graph: SourceId, merge: int, event: NodeEvent) -> Sequence[Node]:
        here = [record for record in self._events if record.graph == graph and record.event.kind == "merge"]
        merged = next((record for record in here if record.event.number == merge), None)
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
        all_events = [record.event for record in self._events if record.graph == graph]
        return [event for event in all_events if node is None or node in (*event.before, *event.after)]

    def _put_back(self, merged: Merged) -> None:
        """Have everything as it was before a merge, as far as it is left."""
        survivor = self._nodes[merged.graph, merged.event.before[0]]
        survivor.merged = [came for came in survivor.merged if came[0] != merged.event.number]
        self._nodes |= {(merged.graph, removed.node.id): removed for removed in merged.nodes}
        for edge, source, target in merged.moved:
            if self._edges.get(edge.edge.id) is edge:
                del self._edges[edge.edge.id]
                self._lay(edge, source, target)
        self._edges |= {edge.edge.id: edge for edge in merged.aside}
        for edge, name in merged.proofs:
            edge.proofs = [document for document in edge.proofs if document != name]
        merged.aside, merged.undone = [], True
        self._loosen((merged.graph, removed.node.id) for removed in merged.nodes)

    def _layer(
        self,
        graphs: Sequence[SourceId],
        layer: Sequence[Neighbor],
        walk: Traversal,
        *,
        as_of: datetime | None,
    ) -> dict[str, Neighbor]:
        """What is one step from a layer, each by the best way."""
        best: dict[str, tuple[Rank, Neighbor]] = {}
        for before in layer:
            for step in self._steps(graphs, before.path[-1], walk, as_of=as_of):
                decay = before.decay * step.weight
                rank = (-decay, step.source, step.type, step.backwards)
                if step.target not in best or rank < best[step.target][0]:
                    node = self._seen(graphs, step.target, walk, as_of=as_of)
                    path, steps = (*before.path, step.target), (*before.steps, step)
                    best[step.target] = rank, Neighbor(node, 0, decay, path, steps)
        return {name: neighbor for name, (_, neighbor) in best.items()}

    def _steps(
        self, graphs: Sequence[SourceId], name: str, walk: Traversal, *, as_of: datetime | None
    ) -> list[EdgeStep]:
        """The steps that can be made from a node."""
        steps = []
        for stored in self._edges.values():
            edge = stored.edge
            home = edge.graph.id
            ends = [self._nodes[home, end].node for end in (edge.source, edge.target)]
            parts: tuple[Node | Edge, ...] = (edge, *ends)
            there = all(_holds(part, walk.at, as_of) for part in parts)
            there = there and {part.trust for part in parts} <= {*levels_from(walk.min_trust)}
            trust: Trust = edge.trust if self._with_levels else "trusted"
            is_selected = edge.weight >= walk.min_weight and (
                not walk.types or relation_key(edge.type) in map(relation_key, walk.types)
            )
            if home in graphs and there and is_selected:
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
        there = [self._nodes[graph, name].as_read for graph in graphs if (graph, name) in self._nodes]
        levels = levels_from(walk.min_trust)
        return next(node for node in there if _holds(node, walk.at, as_of) and node.trust in levels)


def _holds(what: Node | Edge, at: datetime | None, as_of: datetime | None = None) -> bool:
    """Whether something was there at an instant, both ends included, and was recorded by another one."""
    if as_of is not None and what.recorded > as_of:
        return False
    begins, ends = what.valid_from, what.valid_until
    return at is None or ((begins is None or begins <= at) and (ends is None or at <= ends))


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _position(cursor: str | None) -> int:
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInput("after", "is not a cursor; pass the `next` of the page before")
    return int(cursor or 0)
