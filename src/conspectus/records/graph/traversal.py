"""Walking graphs: layer by layer, the heaviest edges of each node first, and no further than is asked for.

What is nearest comes first, so a layer is only left for the next one when it is known as a whole and more is
wanted; and of the last layer only the best are wanted. Every node's edges lie in an index by weight, so that
of a node with very many edges only the first few are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, Connection, Select, bindparam, select

from conspectus.model.graph import EdgeStep, Neighbor, Node, Traversal
from conspectus.model.ids import SourceId
from conspectus.records.core.query_choice import parted
from conspectus.records.graph.reads import NODES_BY_ID, RARE_IDS, nodes_by_id, valid
from conspectus.records.graph.rows import HERE, to_number
from conspectus.records.tables.graph import graph_edges as edges
from conspectus.records.tables.graph import graph_nodes as nodes

LEAST_READ: Final = 16
"""So many edges of a node are read at first, and four times as many each time when more are needed."""
FURTHER: Final = 4
SETTLED: Final = 8
"""After so many nodes it is found out again what is not good enough."""

_MOMENT: BindParameter[Any] = bindparam("moment")
_KNOWN: BindParameter[Any] = bindparam("known")
_THEN = valid(nodes.c.valid_from, nodes.c.valid_until, _MOMENT)
_KNOWN_THEN = nodes.c.recorded <= _KNOWN
PLACES: Final = {
    (by_name, dated, known): chosen.with_only_columns(nodes.c.id, nodes.c.number).where(
        *([_THEN] if dated else []), *([_KNOWN_THEN] if known else [])
    )
    for by_name, chosen in NODES_BY_ID.items()
    for dated in (False, True)
    for known in (False, True)
}


def _reading(*, back: bool, typed: bool, dated: bool, known: bool) -> Select[Any]:
    """Some edges of a node, heaviest first."""
    near, far, name = edges.c.source, edges.c.target, edges.c.target_id
    if back:
        near, far, name = edges.c.target, edges.c.source, edges.c.source_id
    conditions: list[ColumnElement[bool]] = [
        near == bindparam("near"),
        edges.c.aside == HERE,
        edges.c.weight >= bindparam("least"),
    ]
    chosen = select(name, edges.c.weight, edges.c.type)
    if typed:
        conditions.append(edges.c.type.in_(bindparam("types", expanding=True)))
    if dated or known:
        chosen = chosen.join(nodes, nodes.c.number == far)
    if dated:
        conditions += [valid(edges.c.valid_from, edges.c.valid_until, _MOMENT), _THEN]
    if known:
        conditions += [edges.c.recorded <= _KNOWN, _KNOWN_THEN]
    ordered = chosen.where(*conditions).order_by(edges.c.weight.desc(), name, edges.c.type)
    return ordered.limit(bindparam("most")).offset(bindparam("skipped"))


READINGS: Final = {
    (back, typed, dated, known): _reading(back=back, typed=typed, dated=dated, known=known)
    for back in (False, True)
    for typed in (False, True)
    for dated in (False, True)
    for known in (False, True)
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most nodes that are reached, and the instant by which all of a way was recorded (None: any)."""

    most: int
    known: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """The best way to a node: over which one, and by what; what sorts first is better."""

    cost: float
    parent: str
    type: str = ""
    backwards: bool = False
    weight: float = 1.0

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
    """What follows costs as much as this at least; None when nothing follows."""
    read: int = 0


class _Best:
    """The best ways to the nodes of the next layer, of which only so many are wanted."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._ways: dict[str, _Way] = {}
        self._bound: tuple[float, str] | None = None

    def takes(self, least: tuple[float, str] | None) -> bool:
        """Whether anything that costs as much as this or more could be among the best."""
        return least is not None and (self._bound is None or least <= self._bound)

    def offer(self, name: str, way: _Way) -> None:
        """Take a way, if it is the best one to its node so far."""
        known = self._ways.get(name)
        if known is None or way.rank < known.rank:
            self._ways[name] = way

    def settle(self) -> dict[str, _Way]:
        """Forget what is not among the best, and return that, best first."""
        ordered = sorted(self._ways.items(), key=lambda item: (item[1].cost, item[0]))
        self._ways = dict(ordered[: self._wanted])
        if len(self._ways) == self._wanted:
            name, way = ordered[self._wanted - 1]
            self._bound = (way.cost, name)
        return self._ways


def walk(
    connection: Connection,
    graphs: Sequence[SourceId],
    starts: Sequence[str],
    asked: Traversal,
    *,
    bounds: Bounds,
) -> list[Neighbor]:
    """What is reached from any of the starts, nearest first and then by decay; at most the first `most`."""
    wanted = min(asked.skip + asked.limit, bounds.most)
    walker = _Walker(connection, graphs, asked, bounds.known)
    layers = [walker.begin(starts)]
    found = 0
    while layers[-1] and found < wanted and len(layers) <= asked.hops:
        layers.append(walker.step(layers[-1], wanted - found))
        found += len(layers[-1])
    order = [(name, hop) for hop, names in enumerate(layers) for name in names if hop]
    return walker.told(order[asked.skip : wanted])


class _Walker:
    """One walk: what was reached, and how."""

    def __init__(
        self, connection: Connection, graphs: Sequence[SourceId], asked: Traversal, known: datetime | None
    ) -> None:
        self._connection = connection
        self._graphs = graphs
        self._asked = asked
        self._backwards = {"out": (False,), "in": (True,), "both": (False, True)}[asked.direction]
        self._reached: dict[str, _Way] = {}
        self._given: dict[str, Any] = {"least": asked.min_weight}
        if asked.types:
            self._given["types"] = list(asked.types)
        if asked.at is not None:
            self._given["moment"] = to_number(asked.at)
        self._known = known
        if known is not None:
            self._given["known"] = to_number(known)

    def begin(self, starts: Sequence[str]) -> list[str]:
        """Those of the starts that are there."""
        names = dict.fromkeys(name for name, _ in self._places(starts))
        self._reached.update({name: _Way(-1.0, "") for name in names})
        return list(names)

    def step(self, layer: Sequence[str], wanted: int) -> list[str]:
        """The best of the nodes that are one step further, best first."""
        lists = [
            _Edges(number, name, -way.cost, back, (way.cost, ""))
            for name, number in self._places(layer)
            for way in (self._reached[name],)
            for back in self._backwards
        ]
        lists.sort(key=lambda each: -each.decay)
        best = _Best(wanted)
        size = max(LEAST_READ, FURTHER * wanted // max(1, len(lists)))
        while lists:
            for place, each in enumerate(lists):
                if best.takes(each.last):
                    self._read(each, size, best)
                if place % SETTLED == 0:
                    best.settle()
            best.settle()
            lists = [each for each in lists if best.takes(each.last)]
            size *= FURTHER
        found = best.settle()
        self._reached.update(found)
        return list(found)

    def told(self, order: Sequence[tuple[str, int]]) -> list[Neighbor]:
        """Nodes that were reached, with the way there."""
        found: dict[str, Node] = {}
        for node in nodes_by_id(self._connection, self._graphs, [name for name, _ in order]):
            if self._there(node):
                found.setdefault(node.id, node)
        return [self._neighbour(found[name], hop) for name, hop in order]

    def _places(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """The names with the numbers that they have in the graphs."""
        dated, known = self._asked.at is not None, self._known is not None
        return [
            (row.id, row.number)
            for by_name, asked in parted(self._connection, RARE_IDS, names, self._graphs)
            for row in self._connection.execute(PLACES[by_name, dated, known], {**self._given, **asked})
        ]

    def _read(self, each: _Edges, size: int, best: _Best) -> None:
        """Take in some more edges of a node."""
        asked = self._asked
        statement = READINGS[each.back, bool(asked.types), asked.at is not None, self._known is not None]
        given = {**self._given, "near": each.near, "most": size, "skipped": each.read}
        rows = self._connection.execute(statement, given).all()
        for name, weight, type in rows:
            cost = -(each.decay * weight)
            if not best.takes((cost, name)):
                break
            if name not in self._reached:
                best.offer(name, _Way(cost, each.name, type, each.back, weight))
        each.read += len(rows)
        each.last = (-(each.decay * rows[-1][1]), rows[-1][0]) if len(rows) == size else None

    def _there(self, node: Node) -> bool:
        at = self._asked.at
        if self._known is not None and node.recorded > self._known:
            return False
        return at is None or (
            (node.valid_from is None or node.valid_from <= at)
            and (node.valid_until is None or node.valid_until >= at)
        )

    def _neighbour(self, node: Node, hop: int) -> Neighbor:
        steps: list[EdgeStep] = []
        name = node.id
        while parent := self._reached[name].parent:
            way = self._reached[name]
            steps.append(EdgeStep(parent, way.type, name, way.weight, way.backwards))
            name = parent
        steps.reverse()
        path = (name, *(step.target for step in steps))
        return Neighbor(node, hop, -self._reached[node.id].cost, path, tuple(steps))
