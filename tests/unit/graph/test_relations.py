"""Relations between the nodes that a text mentions, without a store."""

import re

import pytest

from conspectus.graph.node_mentions import MAX_LINKED_CHARACTERS, NodeMention, split_for_linking
from conspectus.graph.relations import Relation, find_relations, relations_of

TOGETHER = "mentioned_with"


def find_mentions(text: str, *names: str) -> list[NodeMention]:
    return [
        NodeMention(
            node=name.casefold(),
            name=name,
            type="entity",
            sentence=text.count(". ", 0, match.start()),
            start=match.start(),
            end=match.end(),
            exists=False,
        )
        for name in names
        for match in re.finditer(name, text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice founded Acme.", Relation("alice", "founded", "acme")),
        ("Acme was founded by Alice.", Relation("alice", "founded", "acme")),
        ("Alice also works for the Acme.", Relation("alice", "works_for", "acme")),
    ],
)
def test_a_plain_statement_is_a_relation(text: str, expected: Relation) -> None:
    assert relations_of(text, find_mentions(text, "Alice", "Acme")) == [expected]


@pytest.mark.parametrize("text", ["Alice never founded Acme.", "Alice founded Acme?", "Alice saw Acme."])
def test_other_sentences_only_connect_their_nodes(text: str) -> None:
    mentions = find_mentions(text, "Alice", "Acme")
    assert find_relations(text, mentions) == []
    assert relations_of(text, mentions) == [Relation("acme", TOGETHER, "alice", 0.5)]


def test_nodes_of_two_sentences_are_not_connected() -> None:
    text = "Alice sings. Acme sells."
    assert relations_of(text, find_mentions(text, "Alice", "Acme")) == []


def test_of_many_nodes_each_is_paired_with_the_next() -> None:
    names = [f"N{number}" for number in range(7)]
    text = ", ".join(names)
    pairs = [
        (relation.source, relation.target) for relation in relations_of(text, find_mentions(text, *names))
    ]
    assert pairs == [(f"n{number}", f"n{number + 1}") for number in range(6)]


@pytest.mark.parametrize("sentence", ["It rained all day. ", "rain " * 10, "r" * 10])
def test_a_long_text_is_split_without_a_loss(sentence: str) -> None:
    text = sentence * (3 * MAX_LINKED_CHARACTERS // len(sentence))
    pieces = list(split_for_linking(text))
    assert "".join(pieces) == text
    assert all(len(piece) <= MAX_LINKED_CHARACTERS for piece in pieces)
    assert all(piece.endswith(sentence[-1]) for piece in pieces)
