"""Traversal of graphs over several hops.

A traversal proceeds layer by layer, nearest first: a layer is read only after the whole layer before, and
only if more nodes are needed; of the last layer only the best are read. An index has every node's edges by
weight, so that of a node with very many edges only the first few are read.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, Connection, Select, bindparam, select

from conspectus.deferred import dataclass
from conspectus.model.graph import EdgeStep, Neighbor, Node, Traversal
from conspectus.model.ids import SourceId
from conspectus.model.trust import Trust, levels_from
from conspectus.records.core.name_lookup import split_by_cost
from conspectus.records.core.rows import to_number
from conspectus.records.graph.reads import NODES_BY_ID, RARE_IDS, is_valid_at, nodes_by_id
from conspectus.records.graph.rows import IN_GRAPH
from conspectus.records.tables.graph import edges, nodes
from conspectus.text.name_keys import relation_key

MIN_EDGES_READ: Final = 16
"""Number of edges of a node read at first; four times as many each time more are needed."""
READ_GROWTH: Final = 4
TRIM_EVERY_NODES: Final = 8
"""The best paths are trimmed after this number of nodes."""

_MOMENT: BindParameter[Any] = bindparam("moment")
_AS_OF: BindParameter[Any] = bindparam("as_of")
_IS_VALID_THEN = is_valid_at(nodes.c.valid_from, nodes.c.valid_until, _MOMENT)
_WAS_RECORDED_THEN = nodes.c.recorded <= _AS_OF
_LEVELS: BindParameter[Any] = bindparam("levels", expanding=True)
_HAS_NODE_LEVEL = nodes.c.trust.in_(_LEVELS)
NUMBER_QUERIES: Final = {
    (by_name, dated, as_of, levels): query.with_only_columns(nodes.c.id, nodes.c.number).where(
        *([_IS_VALID_THEN] if dated else []),
        *([_WAS_RECORDED_THEN] if as_of else []),
        *([_HAS_NODE_LEVEL] if levels else []),
    )
    for by_name, query in NODES_BY_ID.items()
    for dated, as_of, levels in product((False, True), repeat=3)
}


def _edge_query(*, back: bool, typed: bool, dated: bool, as_of: bool, levels: bool) -> Select[Any]:
    """Return a query of some edges of a node, heaviest first.

    Their `levels` are an option, because no index has them.
    """
    near, far, name = edges.c.source, edges.c.target, edges.c.target_id
    if back:
        near, far, name = edges.c.target, edges.c.source, edges.c.source_id
    conditions: list[ColumnElement[bool]] = [
        near == bindparam("near"),
        edges.c.aside == IN_GRAPH,
        edges.c.weight >= bindparam("least"),
    ]
    level = [edges.c.trust] if levels else []
    query = select(name, edges.c.weight, edges.c.type, *level)
    if typed:
        conditions.append(edges.c.type_key.in_(bindparam("types", expanding=True)))
    if dated or as_of or levels:
        query = query.join(nodes, nodes.c.number == far)
    if dated:
        conditions += [is_valid_at(edges.c.valid_from, edges.c.valid_until, _MOMENT), _IS_VALID_THEN]
    if as_of:
        conditions += [edges.c.recorded <= _AS_OF, _WAS_RECORDED_THEN]
    if levels:
        conditions += [edges.c.trust.in_(_LEVELS), _HAS_NODE_LEVEL]
    ordered = query.where(*conditions).order_by(edges.c.weight.desc(), name, edges.c.type)
    return ordered.limit(bindparam("maximum")).offset(bindparam("skipped"))


EDGE_QUERIES: Final = {
    (back, typed, dated, as_of, levels): _edge_query(
        back=back, typed=typed, dated=dated, as_of=as_of, levels=levels
    )
    for back, typed, dated, as_of, levels in product((False, True), repeat=5)
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The maximum number of reached nodes, and the instant by which paths were recorded (None: any).

    With `levels`, the steps of paths have the levels of their edges.
    """

    maximum: int
    as_of: datetime | None = None
    levels: bool = False


@dataclass(frozen=True, slots=True)
class _Path:
    """The best path to a node, with its predecessor and edge; better paths sort first."""

    cost: float
    parent: str
    type: str = ""
    backwards: bool = False
    weight: float = 1.0
    trust: Trust = "trusted"

    @property
    def rank(self) -> tuple[float, str, str, bool]:
        return self.cost, self.parent, self.type, self.backwards


@dataclass(slots=True)
class _Edges:
    """The edges of one node in one direction, as far as they were read."""

    near: int
    name: str
    decay: float
    back: bool
    last: tuple[float, str] | None
    """A lower bound of the cost of all following edges; None if there are none."""
    read: int = 0


class _BestPaths:
    """The best paths to the nodes of the next layer, up to a number."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._paths: dict[str, _Path] = {}
        self._bound: tuple[float, str] | None = None

    def may_include(self, least: tuple[float, str] | None) -> bool:
        """Return whether a path of at least this cost, None for no path, could be among the best."""
        return least is not None and (self._bound is None or least <= self._bound)

    def offer(self, name: str, path: _Path) -> None:
        """Add a path, if it is the best one to its node so far."""
        best_path = self._paths.get(name)
        if best_path is None or path.rank < best_path.rank:
            self._paths[name] = path

    def trim(self) -> dict[str, _Path]:
        """Drop all but the best paths, and return these, best first."""
        ordered = sorted(self._paths.items(), key=lambda item: (item[1].cost, item[0]))
        self._paths = dict(ordered[: self._limit])
        if len(self._paths) == self._limit:
            name, path = ordered[self._limit - 1]
            self._bound = (path.cost, name)
        return self._paths


def walk(
    connection: Connection,
    graphs: Sequence[SourceId],
    starts: Sequence[str],
    traversal: Traversal,
    *,
    bounds: Bounds,
) -> list[Neighbor]:
    """Return the nodes reachable from any start, nearest first and then by decay, up to `bounds.maximum`."""
    limit = min(traversal.offset + traversal.limit, bounds.maximum)
    walker = _Walker(connection, graphs, traversal, bounds)
    layers = [walker.begin(starts)]
    count = 0
    while layers[-1] and count < limit and len(layers) <= traversal.hops:
        layers.append(walker.step(layers[-1], limit - count))
        count += len(layers[-1])
    order = [(name, hop) for hop, names in enumerate(layers) for name in names if hop]
    return walker.neighbors(order[traversal.offset : limit])


class _Walker:
    """One traversal: the reached nodes with their paths."""

    def __init__(
        self, connection: Connection, graphs: Sequence[SourceId], traversal: Traversal, bounds: Bounds
    ) -> None:
        self._connection = connection
        self._graphs = graphs
        self._traversal = traversal
        self._backwards = {"out": (False,), "in": (True,), "both": (False, True)}[traversal.direction]
        self._reached: dict[str, _Path] = {}
        self._parameters: dict[str, Any] = {"least": traversal.min_weight}
        if traversal.types:
            self._parameters["types"] = list(dict.fromkeys(map(relation_key, traversal.types)))
        if traversal.at is not None:
            self._parameters["moment"] = to_number(traversal.at)
        self._as_of = bounds.as_of
        if bounds.as_of is not None:
            self._parameters["as_of"] = to_number(bounds.as_of)
        self._levels = bounds.levels or traversal.min_trust is not None
        self._allowed = levels_from(traversal.min_trust)
        if self._levels:
            self._parameters["levels"] = list(self._allowed)

    def begin(self, starts: Sequence[str]) -> list[str]:
        """Return the starts that exist."""
        names = dict.fromkeys(name for name, _ in self._find_numbers(starts))
        self._reached.update({name: _Path(-1.0, "") for name in names})
        return list(names)

    def step(self, layer: Sequence[str], limit: int) -> list[str]:
        """Return the best nodes one hop further, best first."""
        lists: list[_Edges] = []
        for name, number in self._find_numbers(layer):
            cost = self._reached[name].cost
            lists += [_Edges(number, name, -cost, back, (cost, "")) for back in self._backwards]
        lists.sort(key=lambda node_edges: -node_edges.decay)
        best = _BestPaths(limit)
        size = max(MIN_EDGES_READ, READ_GROWTH * limit // max(1, len(lists)))
        while lists:
            for position, node_edges in enumerate(lists):
                if best.may_include(node_edges.last):
                    self._read(node_edges, size, best)
                if position % TRIM_EVERY_NODES == 0:
                    best.trim()
            best.trim()
            lists = [node_edges for node_edges in lists if best.may_include(node_edges.last)]
            size *= READ_GROWTH
        best_paths = best.trim()
        self._reached.update(best_paths)
        return list(best_paths)

    def neighbors(self, order: Sequence[tuple[str, int]]) -> list[Neighbor]:
        """Return reached nodes with their paths."""
        nodes_by_name: dict[str, Node] = {}
        for node in nodes_by_id(self._connection, self._graphs, [name for name, _ in order]):
            if self._is_eligible(node):
                nodes_by_name.setdefault(node.id, node)
        return [self._neighbor(nodes_by_name[name], hop) for name, hop in order]

    def _find_numbers(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Return the numbers of names in the graphs."""
        dated, has_as_of = self._traversal.at is not None, self._as_of is not None
        numbers: list[tuple[str, int]] = []
        for by_name, parameters in split_by_cost(self._connection, RARE_IDS, names, self._graphs):
            query = NUMBER_QUERIES[by_name, dated, has_as_of, self._levels]
            rows = self._connection.execute(query, {**self._parameters, **parameters})
            numbers += [(row.id, row.number) for row in rows]
        return numbers

    def _read(self, node_edges: _Edges, size: int, best: _BestPaths) -> None:
        """Read more edges of a node."""
        traversal = self._traversal
        statement = EDGE_QUERIES[
            node_edges.back,
            bool(traversal.types),
            traversal.at is not None,
            self._as_of is not None,
            self._levels,
        ]
        parameters = {
            **self._parameters,
            "near": node_edges.near,
            "maximum": size,
            "skipped": node_edges.read,
        }
        rows = self._connection.execute(statement, parameters).all()
        for name, weight, type, *level in rows:
            cost = -(node_edges.decay * weight)
            if not best.may_include((cost, name)):
                break
            if name not in self._reached:
                best.offer(name, _Path(cost, node_edges.name, type, node_edges.back, weight, *level))
        node_edges.read += len(rows)
        node_edges.last = None
        if len(rows) == size:
            last_name, last_weight, *_ = rows[-1]
            node_edges.last = (-(node_edges.decay * last_weight), last_name)

    def _is_eligible(self, node: Node) -> bool:
        at = self._traversal.at
        if self._as_of is not None and node.recorded > self._as_of:
            return False
        if node.trust not in self._allowed:
            return False
        if at is None:
            return True
        has_begun = node.valid_from is None or node.valid_from <= at
        return has_begun and (node.valid_until is None or node.valid_until >= at)

    def _neighbor(self, node: Node, hop: int) -> Neighbor:
        steps: list[EdgeStep] = []
        name = node.id
        while parent := self._reached[name].parent:
            path = self._reached[name]
            steps.append(EdgeStep(parent, path.type, name, path.weight, path.backwards, path.trust))
            name = parent
        steps.reverse()
        names = (name, *(step.target for step in steps))
        return Neighbor(node, hop, -self._reached[node.id].cost, names, tuple(steps))
