"""Reads of graphs: nodes, edges, names, counts, and traversal over several hops.

A traversal proceeds layer by layer, nearest first: a layer is read only after the whole layer before, and
only if more nodes are needed; of the last layer only the best are read. An index has every node's edges by
weight, so that of a node with very many edges only the first few are read.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
    tuple_,
    union,
)

from conspectus.deferred import dataclass
from conspectus.errors import NotFound
from conspectus.model.graph import (
    Edge,
    EdgePage,
    EdgeStep,
    GraphSummary,
    Neighbor,
    Node,
    NodeEvent,
    NodePage,
    Traversal,
)
from conspectus.model.ids import SourceId
from conspectus.model.trust import MinTrust, Trust, levels_from
from conspectus.records.core.dialects import given, one_of, parted, rare
from conspectus.records.core.rows import IDS, from_cursor, rows_in, to_cursor, to_number
from conspectus.records.graph.rows import EDGES, HERE, NODE_COLUMNS, sources_by_id, to_edge, to_event, to_node
from conspectus.records.tables.graph import edges, events, evidence, names, nodes, terms
from conspectus.text.times import to_microseconds

_GRAPHS: BindParameter[Any] = bindparam("graphs", expanding=True)
_NODES = select(*NODE_COLUMNS).where(nodes.c.graph.in_(_GRAPHS), nodes.c.aside == HERE)
_BY_ID = _NODES.where(nodes.c.id.in_(IDS))
_NUMBERS = _BY_ID.with_only_columns(nodes.c.number)
_BY_NUMBER = select(*NODE_COLUMNS).where(nodes.c.number.in_(IDS), nodes.c.aside == HERE)
_CALLED = select(names.c.key, *NODE_COLUMNS).join(nodes, nodes.c.number == names.c.node)
_CALLED = _CALLED.where(names.c.key.in_(given("ids")), nodes.c.aside == HERE)
CALLED: Final = {way: _CALLED.where(one_of(names.c.graph, "sources", by_name=way)) for way in (False, True)}
_RARE_KEYS = rare(names.c.key)
_CALLED_SO = select(*NODE_COLUMNS).where(nodes.c.id.in_(given("ids")), nodes.c.aside == HERE)
NODES_BY_ID: Final = {
    way: _CALLED_SO.where(one_of(nodes.c.graph, "sources", by_name=way)) for way in (False, True)
}
RARE_IDS: Final = rare(nodes.c.id)
_MATCHES = func.count().label("matches")
_LIKE = (
    select(nodes.c.number, _MATCHES)
    .join(nodes, nodes.c.number == terms.c.node)
    .where(terms.c.graph.in_(_GRAPHS), terms.c.term.in_(IDS), nodes.c.aside == HERE)
    .group_by(nodes.c.number, nodes.c.id, nodes.c.graph)
    .order_by(_MATCHES.desc(), nodes.c.id, nodes.c.graph)
    .limit(bindparam("maximum"))
)
_EDGES = EDGES.where(edges.c.graph.in_(_GRAPHS), edges.c.aside == HERE, edges.c.number > bindparam("after"))
_EDGES_BY_ID = _EDGES.where(edges.c.id.in_(IDS))
_EDGE_PAGE = _EDGES.order_by(edges.c.number).limit(bindparam("maximum"))
_BEYOND = and_(edges.c.aside == HERE, edges.c.number > bindparam("after"))
_BY_EDGE = EDGES.where(edges.c.number.in_(IDS)).order_by(edges.c.number)
_RESTING = (
    select(evidence.c.edge)
    .distinct()
    .join(edges, edges.c.number == evidence.c.edge)
    .where(evidence.c.document.in_(IDS), edges.c.stands == 0)
)
_PROOFS = select(evidence.c.edge, evidence.c.document).where(evidence.c.edge.in_(IDS))


def nodes_by_id(connection: Connection, graphs: Sequence[SourceId], ids: Sequence[str]) -> list[Node]:
    """Return the nodes that exist, in the given order; an id may be in several graphs."""
    found: dict[str, list[Node]] = {}
    rows = [
        row
        for by_name, traversal in parted(connection, RARE_IDS, ids, graphs)
        for row in connection.execute(NODES_BY_ID[by_name], traversal)
    ]
    known = sources_by_id(connection, (row.graph for row in rows))
    for row in rows:
        found.setdefault(row.id, []).append(to_node(row, known))
    places = {graph: place for place, graph in enumerate(graphs)}
    for several in found.values():
        several.sort(key=lambda node: places[node.graph.id])
    return [node for each in ids for node in found.get(each, ())]


def nodes_by_number(
    connection: Connection, graphs: Sequence[SourceId], numbers: Sequence[int]
) -> dict[int, Node]:
    """Return nodes of these graphs by number."""
    known = sources_by_id(connection, graphs)
    return {row.number: to_node(row, known) for row in rows_in(connection, _BY_NUMBER, numbers)}


def node_page(
    connection: Connection,
    graphs: Sequence[SourceId],
    *,
    type: str | None = None,
    min_trust: MinTrust | None = None,
    after: str | None = None,
    limit: int,
) -> NodePage:
    known = sources_by_id(connection, graphs)
    chosen = _NODES if type is None else _NODES.where(nodes.c.type == type)
    if min_trust is not None:
        chosen = chosen.where(nodes.c.trust.in_(levels_from(min_trust)))
    if after is not None:
        chosen = chosen.where(tuple_(nodes.c.id, nodes.c.graph) > tuple_(*from_cursor(after, (str, str))))
    ordered = chosen.order_by(nodes.c.id, nodes.c.graph).limit(limit + 1)
    rows = connection.execute(ordered, {"graphs": list(known)}).all()
    found = tuple(to_node(row, known) for row in rows[:limit])
    return NodePage(
        found, to_cursor(rows[limit - 1].id, rows[limit - 1].graph) if len(rows) > limit else None
    )


def edge_page(
    connection: Connection,
    graphs: Sequence[SourceId],
    *,
    node: str | None = None,
    min_trust: MinTrust | None = None,
    after: str | None = None,
    limit: int,
) -> EdgePage:
    known = sources_by_id(connection, graphs)
    page: dict[str, Any] = {
        "graphs": list(known),
        "after": 0 if after is None else from_cursor(after, (int,))[0],
        "maximum": limit + 1,
    }
    if node is None:
        allowed = edges.c.trust.in_(levels_from(min_trust))
        chosen_edges = _EDGE_PAGE if min_trust is None else _EDGE_PAGE.where(allowed)
        rows = connection.execute(chosen_edges, page).all()
    else:
        own = connection.execute(_NUMBERS, {"graphs": list(known), "ids": [node]}).scalars().all()
        numbers = _of_node(min_trust).order_by(edges.c.number.name).limit(limit + 1)
        chosen = connection.execute(numbers, {"ids": own, "after": page["after"]}).scalars().all()
        rows = connection.execute(_BY_EDGE, {"ids": chosen}).all()
    found = tuple(to_edge(row, known) for row in rows[:limit])
    return EdgePage(found, to_cursor(rows[limit - 1].number) if len(rows) > limit else None)


def _of_node(min_trust: MinTrust | None) -> CompoundSelect[Any]:
    """Return the numbers of the edges of nodes, those from a level on."""
    beyond = _BEYOND
    if min_trust is not None:
        beyond = and_(_BEYOND, edges.c.trust.in_(levels_from(min_trust)))
    ends = (edges.c.source, edges.c.target)
    return union(*(select(edges.c.number).where(end.in_(IDS), beyond) for end in ends))


def edges_by_id(connection: Connection, graphs: Sequence[SourceId], ids: Sequence[str]) -> list[Edge]:
    known = sources_by_id(connection, graphs)
    rows = rows_in(connection, _EDGES_BY_ID, dict.fromkeys(ids), graphs=list(known), after=0)
    found = {row.id: to_edge(row, known) for row in rows}
    return [found[each] for each in ids if each in found]


def nodes_by_name(
    connection: Connection, graphs: Sequence[SourceId], keys: Sequence[str]
) -> list[tuple[str, Node]]:
    rows = [
        row
        for by_name, traversal in parted(connection, _RARE_KEYS, keys, graphs)
        for row in connection.execute(CALLED[by_name], traversal)
    ]
    known = sources_by_id(connection, (row.graph for row in rows))
    order = {key: place for place, key in enumerate(keys)}
    rows.sort(key=lambda row: (order[row.key], row.id, row.graph))
    return [(row.key, to_node(row[1:], known)) for row in rows]


def nodes_by_terms(
    connection: Connection,
    graphs: Sequence[SourceId],
    words: Sequence[str],
    *,
    min_trust: MinTrust | None = None,
    limit: int,
) -> list[tuple[Node, int]]:
    traversal = {"graphs": list(graphs), "ids": list(dict.fromkeys(words)), "maximum": limit}
    chosen = _LIKE if min_trust is None else _LIKE.where(nodes.c.trust.in_(levels_from(min_trust)))
    rows = connection.execute(chosen, traversal).all()
    found = nodes_by_number(connection, graphs, [row.number for row in rows])
    return [(found[row.number], row.matches) for row in rows]


def summary(connection: Connection, graph: SourceId) -> GraphSummary:
    known = sources_by_id(connection, [graph])
    if graph not in known:
        raise NotFound("graph", graph)
    types, relations = (_counts(connection, table, graph) for table in (nodes, edges))
    return GraphSummary(known[graph], sum(types.values()), sum(relations.values()), types, relations)


def _counts(connection: Connection, table: Table, graph: SourceId) -> dict[str, int]:
    """Return the number of nodes or edges by type, most first."""
    here = select(table.c.type, func.count()).where(table.c.graph == graph, table.c.aside == HERE)
    ordered = here.group_by(table.c.type).order_by(func.count().desc(), table.c.type)
    return {row[0]: row[1] for row in connection.execute(ordered)}


def at(connection: Connection, graph: SourceId, instant: datetime) -> tuple[list[Node], list[Edge]]:
    """Return the nodes valid at an instant, and the edges with both ends valid."""
    known = sources_by_id(connection, [graph])
    moment = to_microseconds(instant)
    there = _NODES.where(valid(nodes.c.valid_from, nodes.c.valid_until, moment)).order_by(nodes.c.id)
    found = {row.number: to_node(row, known) for row in connection.execute(there, {"graphs": [graph]})}
    held = _EDGES.where(valid(edges.c.valid_from, edges.c.valid_until, moment)).order_by(edges.c.number)
    ended = held.add_columns(edges.c.source, edges.c.target)
    rows = connection.execute(ended, {"graphs": [graph], "after": 0})
    return list(found.values()), [
        to_edge(row, known) for row in rows if row.source in found and row.target in found
    ]


def valid(
    begins: ColumnElement[Any], ends: ColumnElement[Any], moment: int | ColumnElement[Any]
) -> ColumnElement[bool]:
    """Return whether something was valid at an instant; both ends are included, and None is open."""
    return and_(or_(begins.is_(None), begins <= moment), or_(ends.is_(None), ends >= moment))


def resting_edges(connection: Connection, ids: Sequence[str]) -> list[int]:
    """Return the edges without other evidence than these documents, which are deleted with them.

    Edges ended by such an edge stay ended, since no evidence says that they are valid again.
    """
    going = set(ids)
    touched = {row.edge for row in rows_in(connection, _RESTING, ids)}
    proofs = rows_in(connection, _PROOFS, sorted(touched))
    return sorted(touched - {edge for edge, document in proofs if document not in going})


def event_list(connection: Connection, graph: SourceId, *, node: str | None = None) -> list[NodeEvent]:
    chosen = select(*events.c).where(events.c.graph == graph).order_by(events.c.number)
    found = [to_event(row) for row in connection.execute(chosen)]
    return [each for each in found if node is None or node in (*each.before, *each.after)]


MIN_READ: Final = 16
"""Number of edges of a node read at first; four times as many each time more are needed."""
FURTHER: Final = 4
TRIM_EVERY: Final = 8
"""The best paths are trimmed after this number of nodes."""

_MOMENT: BindParameter[Any] = bindparam("moment")
_KNOWN: BindParameter[Any] = bindparam("known")
_THEN = valid(nodes.c.valid_from, nodes.c.valid_until, _MOMENT)
_KNOWN_THEN = nodes.c.recorded <= _KNOWN
_LEVELS: BindParameter[Any] = bindparam("levels", expanding=True)
_LEVEL_OF_NODE = nodes.c.trust.in_(_LEVELS)
PLACES: Final = {
    (by_name, dated, known, levels): chosen.with_only_columns(nodes.c.id, nodes.c.number).where(
        *([_THEN] if dated else []), *([_KNOWN_THEN] if known else []), *([_LEVEL_OF_NODE] if levels else [])
    )
    for by_name, chosen in NODES_BY_ID.items()
    for dated, known, levels in product((False, True), repeat=3)
}


def _reading(*, back: bool, typed: bool, dated: bool, known: bool, levels: bool) -> Select[Any]:
    """Return a query of some edges of a node, heaviest first, with their `levels` if they are asked for.

    No index has the levels, so that they are read only then.
    """
    near, far, name = edges.c.source, edges.c.target, edges.c.target_id
    if back:
        near, far, name = edges.c.target, edges.c.source, edges.c.source_id
    conditions: list[ColumnElement[bool]] = [
        near == bindparam("near"),
        edges.c.aside == HERE,
        edges.c.weight >= bindparam("least"),
    ]
    level = [edges.c.trust] if levels else []
    chosen = select(name, edges.c.weight, edges.c.type, *level)
    if typed:
        conditions.append(edges.c.type.in_(bindparam("types", expanding=True)))
    if dated or known or levels:
        chosen = chosen.join(nodes, nodes.c.number == far)
    if dated:
        conditions += [valid(edges.c.valid_from, edges.c.valid_until, _MOMENT), _THEN]
    if known:
        conditions += [edges.c.recorded <= _KNOWN, _KNOWN_THEN]
    if levels:
        conditions += [edges.c.trust.in_(_LEVELS), _LEVEL_OF_NODE]
    ordered = chosen.where(*conditions).order_by(edges.c.weight.desc(), name, edges.c.type)
    return ordered.limit(bindparam("maximum")).offset(bindparam("skipped"))


READINGS: Final = {
    (back, typed, dated, known, levels): _reading(
        back=back, typed=typed, dated=dated, known=known, levels=levels
    )
    for back, typed, dated, known, levels in product((False, True), repeat=5)
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The maximum number of reached nodes, and the instant by which paths were recorded (None: any).

    With `levels`, the steps of paths have the levels of their edges.
    """

    maximum: int
    known: datetime | None = None
    levels: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
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


class _Best:
    """The best paths to the nodes of the next layer, up to a number."""

    def __init__(self, limit: int) -> None:
        self._wanted = limit
        self._ways: dict[str, _Way] = {}
        self._bound: tuple[float, str] | None = None

    def takes(self, least: tuple[float, str] | None) -> bool:
        """Return whether a path of at least this cost could be among the best."""
        return least is not None and (self._bound is None or least <= self._bound)

    def offer(self, name: str, way: _Way) -> None:
        """Add a path, if it is the best one to its node so far."""
        known = self._ways.get(name)
        if known is None or way.rank < known.rank:
            self._ways[name] = way

    def trim(self) -> dict[str, _Way]:
        """Drop all but the best paths, and return these, best first."""
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
    traversal: Traversal,
    *,
    bounds: Bounds,
) -> list[Neighbor]:
    """Return the nodes reachable from any start, nearest first and then by decay, up to `most`."""
    limit = min(traversal.offset + traversal.limit, bounds.maximum)
    walker = _Walker(connection, graphs, traversal, bounds)
    layers = [walker.begin(starts)]
    found = 0
    while layers[-1] and found < limit and len(layers) <= traversal.hops:
        layers.append(walker.step(layers[-1], limit - found))
        found += len(layers[-1])
    order = [(name, hop) for hop, names in enumerate(layers) for name in names if hop]
    return walker.neighbors(order[traversal.offset : limit])


class _Walker:
    """One traversal: the reached nodes with their paths."""

    def __init__(
        self, connection: Connection, graphs: Sequence[SourceId], traversal: Traversal, bounds: Bounds
    ) -> None:
        self._connection = connection
        self._graphs = graphs
        self._asked = traversal
        self._backwards = {"out": (False,), "in": (True,), "both": (False, True)}[traversal.direction]
        self._reached: dict[str, _Way] = {}
        self._given: dict[str, Any] = {"least": traversal.min_weight}
        if traversal.types:
            self._given["types"] = list(traversal.types)
        if traversal.at is not None:
            self._given["moment"] = to_number(traversal.at)
        self._known = bounds.known
        if bounds.known is not None:
            self._given["known"] = to_number(bounds.known)
        self._levels = bounds.levels or traversal.min_trust is not None
        self._allowed = levels_from(traversal.min_trust)
        if self._levels:
            self._given["levels"] = list(self._allowed)

    def begin(self, starts: Sequence[str]) -> list[str]:
        """Return the starts that exist."""
        names = dict.fromkeys(name for name, _ in self._places(starts))
        self._reached.update({name: _Way(-1.0, "") for name in names})
        return list(names)

    def step(self, layer: Sequence[str], limit: int) -> list[str]:
        """Return the best nodes one hop further, best first."""
        lists = [
            _Edges(number, name, -way.cost, back, (way.cost, ""))
            for name, number in self._places(layer)
            for way in (self._reached[name],)
            for back in self._backwards
        ]
        lists.sort(key=lambda each: -each.decay)
        best = _Best(limit)
        size = max(MIN_READ, FURTHER * limit // max(1, len(lists)))
        while lists:
            for place, each in enumerate(lists):
                if best.takes(each.last):
                    self._read(each, size, best)
                if place % TRIM_EVERY == 0:
                    best.trim()
            best.trim()
            lists = [each for each in lists if best.takes(each.last)]
            size *= FURTHER
        found = best.trim()
        self._reached.update(found)
        return list(found)

    def neighbors(self, order: Sequence[tuple[str, int]]) -> list[Neighbor]:
        """Return reached nodes with their paths."""
        found: dict[str, Node] = {}
        for node in nodes_by_id(self._connection, self._graphs, [name for name, _ in order]):
            if self._there(node):
                found.setdefault(node.id, node)
        return [self._neighbor(found[name], hop) for name, hop in order]

    def _places(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Return the numbers of names in the graphs."""
        dated, known = self._asked.at is not None, self._known is not None
        return [
            (row.id, row.number)
            for by_name, traversal in parted(self._connection, RARE_IDS, names, self._graphs)
            for row in self._connection.execute(
                PLACES[by_name, dated, known, self._levels], {**self._given, **traversal}
            )
        ]

    def _read(self, each: _Edges, size: int, best: _Best) -> None:
        """Read more edges of a node."""
        traversal = self._asked
        statement = READINGS[
            each.back,
            bool(traversal.types),
            traversal.at is not None,
            self._known is not None,
            self._levels,
        ]
        given = {**self._given, "near": each.near, "maximum": size, "skipped": each.read}
        rows = self._connection.execute(statement, given).all()
        for name, weight, type, *level in rows:
            cost = -(each.decay * weight)
            if not best.takes((cost, name)):
                break
            if name not in self._reached:
                best.offer(name, _Way(cost, each.name, type, each.back, weight, *level))
        each.read += len(rows)
        each.last = (-(each.decay * rows[-1][1]), rows[-1][0]) if len(rows) == size else None

    def _there(self, node: Node) -> bool:
        at = self._asked.at
        is_known = self._known is None or node.recorded <= self._known
        if not is_known or node.trust not in self._allowed:
            return False
        return at is None or (
            (node.valid_from is None or node.valid_from <= at)
            and (node.valid_until is None or node.valid_until >= at)
        )

    def _neighbor(self, node: Node, hop: int) -> Neighbor:
        steps: list[EdgeStep] = []
        name = node.id
        while parent := self._reached[name].parent:
            way = self._reached[name]
            steps.append(EdgeStep(parent, way.type, name, way.weight, way.backwards, way.trust))
            name = parent
        steps.reverse()
        path = (name, *(step.target for step in steps))
        return Neighbor(node, hop, -self._reached[node.id].cost, path, tuple(steps))
