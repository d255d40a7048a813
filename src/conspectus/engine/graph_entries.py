"""Conversion of new nodes and edges to stored ones, and checks of traversals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, TooLarge
from conspectus.ingest.document_fields import check_name, storable
from conspectus.ingest.quarantine import refuse_attacks, strings_in
from conspectus.ingest.sensitive import screen_of, with_tags
from conspectus.model.checks import require_settings
from conspectus.model.graph import DIRECTIONS, Edge, NewEdge, NewNode, Node, Traversal
from conspectus.model.records import Json, Metadata, Source
from conspectus.model.trust import (
    HIGHEST,
    MinTrust,
    Origin,
    Trust,
    least,
    least_trusted,
)
from conspectus.ports.graphs import Adding
from conspectus.settings import Settings
from conspectus.text.hashing import edge_id
from conspectus.text.name_keys import keys_of
from conspectus.text.times import parse_instant, validity

MAX_ALIASES = 1_000
MAX_TERMS = 1_000
"""Maximum number of distinct words that are searched in nodes."""


Item = TypeVar("Item")
Terms = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Entries:
    """Converts new nodes and edges of one graph to stored ones, within the limits of the settings."""

    graph: Source
    settings: Settings
    terms: Terms
    now: datetime
    origin: Origin | None = None

    def prepare_adding(
        self, nodes: Iterable[NewNode] = (), edges: Iterable[NewEdge] = (), *, passing: bool = False
    ) -> Adding:
        """Return the validated nodes and edges to store. Raises InvalidInput or TooLarge.

        Nodes that are `passing` are deleted with the last document that supports one of their edges.
        """
        maximum = self.settings.max_graph_batch
        new_nodes = [self._node(new) for new in _require_count("nodes", nodes, maximum)]
        edge_inputs = _require_count("edges", edges, maximum)
        new_edges = [self._edge(new) for new in edge_inputs]
        return Adding(
            nodes=tuple(new_nodes),
            edges=tuple(new_edges),
            single=frozenset(edge.id for edge, new in zip(new_edges, edge_inputs, strict=True) if new.single),
            keys={node.id: keys_of(node.name, node.aliases) for node in new_nodes},
            terms={node.id: self._terms(node) for node in new_nodes},
            passing=frozenset(node.id for node in new_nodes) if passing else frozenset(),
        )

    def _node(self, new: NewNode) -> Node:
        if isinstance(new.aliases, str) or len(new.aliases) > MAX_ALIASES:
            raise InvalidInput("aliases", f"must be at most {MAX_ALIASES} names")
        begins, ends = validity(new.valid_from, new.valid_until)
        tags: set[str] = set()
        screened = partial(self._screen, tags)
        name = check_name("node", screened("graph_nodes.id", new.id, "node"))
        aliases = screened("graph_nodes.aliases", list(new.aliases))
        type = check_name("type", screened("graph_nodes.type", new.type))
        display_name = (
            name if new.name is None else check_name("name", screened("graph_nodes.name", new.name))
        )
        properties = self._properties("graph_nodes.properties", new.properties, tags)
        origin, trust = self._level(new.origin, new.trust)
        node = Node(
            id=name,
            graph=self.graph,
            type=type,
            name=display_name,
            aliases=tuple(dict.fromkeys(check_name("alias", alias) for alias in aliases)),
            properties=properties,
            recorded=self.now,
            updated=self.now,
            valid_from=begins,
            valid_until=ends,
            origin=origin,
            trust=trust,
        )
        refuse_attacks(
            origin, "node", name, node.type, node.name, *node.aliases, *strings_in(node.properties)
        )
        return node

    def _edge(self, new: NewEdge) -> Edge:
        begins, ends = validity(new.valid_from, new.valid_until)
        tags: set[str] = set()
        screened = partial(self._screen, tags)
        source = check_name("source", screened("graph_edges.source_id", new.source, "source"))
        target = check_name("target", screened("graph_edges.target_id", new.target, "target"))
        type = check_name("type", screened("graph_edges.type", new.type))
        origin, trust = self._level(new.origin, new.trust)
        edge = Edge(
            id=edge_id(self.graph.id, source, target, type, begins),
            graph=self.graph,
            source=source,
            target=target,
            type=type,
            weight=_check_weight(new.weight),
            properties=self._properties("graph_edges.properties", new.properties, tags),
            recorded=self.now,
            updated=self.now,
            valid_from=begins,
            valid_until=ends,
            evidence=None if new.evidence is None else check_name("evidence", new.evidence),
            origin=origin,
            trust=trust,
        )
        refuse_attacks(origin, "edge", source, target, type, *strings_in(edge.properties))
        return edge

    def _level(self, origin: Origin | None, trust: MinTrust | None) -> tuple[Origin, Trust]:
        """Return origin and trust of a node or edge: those of the writer, or lower ones that are given."""
        lowest = least_trusted(self.origin, origin)
        return lowest, least(HIGHEST[lowest], trust)

    def _screen(self, tags: set[str], column: str, value: Any, field: str = "") -> Any:
        screen = screen_of(self.settings.sensitive, self.graph.collection)
        return value if screen is None else screen.column(column, value, field=field, tags=tags)

    def _properties(self, column: str, values: Mapping[str, object], tags: set[str]) -> Metadata:
        """Return storable properties, with the tags of all texts of their node or edge."""
        try:
            return with_tags(storable(self._screen(tags, column, values), self.settings), tags)
        except TooLarge as error:
            raise TooLarge("properties", size=error.size, limit=error.limit) from error
        except InvalidInput as error:
            raise InvalidInput("properties", error.reason) from error

    def _terms(self, node: Node) -> tuple[str, ...]:
        texts = chain((node.name,), node.aliases, *map(_texts, node.properties.values()))
        terms = chain.from_iterable(self.terms(text) for text in texts)
        return tuple(islice(dict.fromkeys(terms), MAX_TERMS))


def check_traversal(walk: Traversal, settings: Settings) -> Traversal:
    """Return a valid traversal, with time zones. Raises InvalidInput."""
    require_settings(walk, settings)
    if walk.direction not in DIRECTIONS:
        raise InvalidInput("direction", f"must be one of {', '.join(DIRECTIONS)}")
    if isinstance(walk.types, str):
        raise InvalidInput("types", "must be a sequence of types")
    at = None if walk.at is None else parse_instant(walk.at)
    types = tuple(dict.fromkeys(check_name("types", type) for type in walk.types))
    return replace(walk, types=types, min_weight=float(walk.min_weight), at=at)


def _require_count(field: str, values: Iterable[Item], maximum: int) -> list[Item]:
    bounded = list(islice(values, maximum + 1))
    if len(bounded) > maximum:
        raise TooLarge(field, size=len(bounded), limit=maximum, unit=field)
    return bounded


def _check_weight(weight: float) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
        raise InvalidInput("weight", "must be above 0 and at most 1")
    return float(weight)


def _texts(value: Json) -> Iterator[str]:
    """Yield every text in a property."""
    match value:
        case str():
            yield value
        case list():
            yield from chain.from_iterable(map(_texts, value))
        case dict():
            yield from chain.from_iterable(map(_texts, value.values()))
