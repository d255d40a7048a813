"""From new nodes and edges to such that can be stored: checked, named, with the words they are found by."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import TypeVar

from conspectus.errors import InvalidInput, TooLarge, as_field
from conspectus.graph.name_keys import keys_of
from conspectus.ingest.prepare import DocumentLimits, named, storable
from conspectus.model.graph import DIRECTIONS, Edge, NewEdge, NewNode, Node, Traversal
from conspectus.model.records import Json, Metadata, Source
from conspectus.ports.graphs import Adding
from conspectus.settings import Settings
from conspectus.text.hashing import edge_id
from conspectus.text.times import parse_instant

MOST_ALIASES = 1_000
MOST_TERMS = 1_000
"""A node is found by at most so many different words."""

Item = TypeVar("Item")
Terms = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Entries:
    """Everything that nodes and edges of a graph depend on besides what is given."""

    graph: Source
    settings: Settings
    terms: Terms
    now: datetime

    def adding(
        self, nodes: Iterable[NewNode] = (), edges: Iterable[NewEdge] = (), *, passing: bool = False
    ) -> Adding:
        """What is to be stored. Raises InvalidInput or TooLarge."""
        most = self.settings.max_graph_batch
        new_nodes = [self._node(each) for each in _bounded("nodes", nodes, most)]
        given = _bounded("edges", edges, most)
        new_edges = [self._edge(each) for each in given]
        return Adding(
            nodes=tuple(new_nodes),
            edges=tuple(new_edges),
            single=frozenset(edge.id for edge, new in zip(new_edges, given, strict=True) if new.single),
            keys={each.id: keys_of(each.name, each.aliases) for each in new_nodes},
            terms={each.id: self._terms(each) for each in new_nodes},
            passing=frozenset(each.id for each in new_nodes) if passing else frozenset(),
        )

    def _node(self, new: NewNode) -> Node:
        if isinstance(new.aliases, str) or len(new.aliases) > MOST_ALIASES:
            raise InvalidInput("aliases", f"must be at most {MOST_ALIASES} names")
        begins, ends = _span(new.valid_from, new.valid_until)
        name = named("node", new.id)
        return Node(
            id=name,
            graph=self.graph,
            type=named("type", new.type),
            name=name if new.name is None else named("name", new.name),
            aliases=tuple(dict.fromkeys(named("alias", each) for each in new.aliases)),
            properties=self._properties(new.properties),
            recorded=self.now,
            updated=self.now,
            valid_from=begins,
            valid_until=ends,
        )

    def _edge(self, new: NewEdge) -> Edge:
        begins, ends = _span(new.valid_from, new.valid_until)
        source, target, type = (
            named("source", new.source),
            named("target", new.target),
            named("type", new.type),
        )
        return Edge(
            id=edge_id(self.graph.id, source, target, type, begins),
            graph=self.graph,
            source=source,
            target=target,
            type=type,
            weight=_weight("weight", new.weight),
            properties=self._properties(new.properties),
            recorded=self.now,
            updated=self.now,
            valid_from=begins,
            valid_until=ends,
            evidence=None if new.evidence is None else named("evidence", new.evidence),
        )

    def _properties(self, given: Mapping[str, object]) -> Metadata:
        settings = self.settings
        limits = DocumentLimits(
            settings.max_document_characters, settings.max_metadata_bytes, settings.max_metadata_depth
        )
        try:
            return storable(given, limits)
        except TooLarge as error:
            raise TooLarge("properties", size=error.size, limit=error.limit) from error
        except InvalidInput as error:
            raise InvalidInput("properties", error.reason) from error

    def _terms(self, node: Node) -> tuple[str, ...]:
        texts = chain((node.name,), node.aliases, *map(_texts, node.properties.values()))
        found = chain.from_iterable(self.terms(text) for text in texts)
        return tuple(islice(dict.fromkeys(found), MOST_TERMS))


def checked(walk: Traversal, settings: Settings) -> Traversal:
    """A walk that can be made, with zones. Raises InvalidInput."""
    if not 0 <= walk.hops <= settings.max_hops:
        raise InvalidInput("hops", f"must be from 0 to {settings.max_hops}")
    if walk.direction not in DIRECTIONS:
        raise InvalidInput("direction", f"must be one of {', '.join(DIRECTIONS)}")
    if not (math.isfinite(walk.min_weight) and 0 <= walk.min_weight <= 1):
        raise InvalidInput("min_weight", "must be from 0 to 1")
    if isinstance(walk.types, str):
        raise InvalidInput("types", "must be a sequence of types")
    if not 0 <= walk.skip < settings.max_traversal_nodes:
        raise InvalidInput(
            "skip", f"must be from 0 to below {settings.max_traversal_nodes}, where a walk ends"
        )
    page("limit", walk.limit, settings.max_limit)
    return Traversal(
        hops=walk.hops,
        types=tuple(dict.fromkeys(named("types", each) for each in walk.types)),
        min_weight=float(walk.min_weight),
        direction=walk.direction,
        at=None if walk.at is None else parse_instant(walk.at),
        skip=walk.skip,
        limit=walk.limit,
    )


def page(field: str, limit: int, most: int) -> int:
    """A number of things to be given at once. Raises InvalidInput."""
    if not 1 <= limit <= most:
        raise InvalidInput(field, f"must be from 1 to {most}")
    return limit


def _bounded(field: str, given: Iterable[Item], most: int) -> list[Item]:
    found = list(islice(given, most + 1))
    if len(found) > most:
        raise TooLarge(field, size=len(found), limit=most, unit=field)
    return found


def _span(
    begins: datetime | str | None, ends: datetime | str | None
) -> tuple[datetime | None, datetime | None]:
    with as_field("valid_from", was="time"):
        since = None if begins is None else parse_instant(begins)
    with as_field("valid_until", was="time"):
        until = None if ends is None else parse_instant(ends)
    if since is not None and until is not None and until < since:
        raise InvalidInput("valid_until", "is before valid_from")
    return since, until


def _weight(field: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidInput(field, "must be above 0 and at most 1")
    return float(value)


def _texts(value: Json) -> Iterator[str]:
    """Every text in a property."""
    match value:
        case str():
            yield value
        case list():
            yield from chain.from_iterable(map(_texts, value))
        case dict():
            yield from chain.from_iterable(map(_texts, value.values()))
