"""How well names are found in documents, and which of them are told to mean the same."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Final

import regex

from conspectus.evals.entity_sets import NamedDocument, Span
from conspectus.graph.entity_linking import Surroundings, link
from conspectus.graph.entity_rules import names_in
from conspectus.graph.name_keys import key_of
from conspectus.model.graph import ENTITY, Mention, Node
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Source

Spans = set[Span]
Pairs = set[tuple[Span, Span]]
_CAPITALS: Final = regex.compile(r"\p{Lu}\S*+(?: \p{Lu}\S*+)*+|\d\S*+")
_GRAPH: Final = Source(SourceId("document"), CollectionId("document"), "document", kind="graph")
_NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)


def runs_of_capitals(document: NamedDocument) -> Spans:
    """The plain way without any name known: words with a capital that stand together, and numbers."""
    return {found.span() for found in _CAPITALS.finditer(document.text)}


def by_rules(document: NamedDocument) -> Spans:
    """What the product's rules find in a text alone, plain numbers with it."""
    return {(each.start, each.end) for each in names_in(document.text, with_numbers=True)}


class EveryName:
    """The plain way with every name known that any document of the set has: whole words, in any case."""

    def __init__(self, documents: Sequence[NamedDocument]) -> None:
        names = {
            document.text[start:end].lower() for document in documents for start, end in document.entities
        }
        ordered = sorted(names, key=lambda each: (-len(each), each))
        self._firsts: dict[str, list[str]] = {}
        for name in ordered:
            self._firsts.setdefault(name.split(" ")[0], []).append(name)

    def found(self, document: NamedDocument) -> Spans:
        """The spans of names, the longest first, without overlaps."""
        text, spans, done = document.text.lower(), set[Span](), 0
        at = 0
        for token in text.split(" "):
            if at >= done:
                name = next((each for each in self._firsts.get(token, ()) if _stands(text, each, at)), None)
                if name is not None:
                    done = at + len(name)
                    spans.add((at, done))
            at += len(token) + 1
        return spans


def same_string(document: NamedDocument) -> dict[Span, str]:
    """The plain way of telling which mentions are one: those that are written alike, whatever their case."""
    return {span: document.text[span[0] : span[1]].lower() for span in document.entities}


def linked_within(document: NamedDocument) -> dict[Span, str]:
    """Which mentions the product tells to mean the same: each is linked to what was named before, or is new.

    The spans are those that people marked; their types are those that the product finds by itself.
    """
    kinds = {(each.start, each.end): each.type for each in names_in(document.text)}
    nodes: list[Node] = []
    meant: dict[Span, str] = {}
    longest = sorted(document.entities, key=lambda span: (-_words(document.text, span), span))
    for span in longest:
        said = document.text[span[0] : span[1]]
        mention = Mention(*span, said, key_of(said), kinds.get(span, ENTITY))
        recent = frozenset(node.id for node in nodes)
        node = link(mention, nodes, Surroundings(recent=recent)).node
        if node is None:
            node = Node(str(len(nodes)), _GRAPH, mention.type, said, (), {}, _NOW, _NOW)
            nodes.append(node)
        elif said not in (node.name, *node.aliases):
            nodes[int(node.id)] = replace(node, aliases=(*node.aliases, said))
        meant[span] = node.id
    return meant


def pairs(meant: Mapping[Span, object]) -> Pairs:
    """The pairs of mentions that are one."""
    together: dict[object, list[Span]] = {}
    for span in sorted(meant):
        together.setdefault(meant[span], []).append(span)
    return {pair for each in together.values() for pair in combinations(each, 2)}


def recall_by_type(documents: Iterable[NamedDocument]) -> dict[str, tuple[int, int]]:
    """For each type of entities how many mentions the rules find, and how many there are."""
    found, all_of = Counter[str](), Counter[str]()
    for document in documents:
        spans = by_rules(document)
        for span, kind in document.types.items():
            all_of[kind] += 1
            found[kind] += span in spans
    return {kind: (found[kind], all_of[kind]) for kind in sorted(all_of)}


def _words(text: str, span: Span) -> int:
    return text.count(" ", *span) + 1


def _stands(text: str, name: str, at: int) -> bool:
    end = at + len(name)
    return text.startswith(name, at) and (end == len(text) or text[end] == " ")
