from datetime import UTC, datetime

import pytest

from conspectus.graph.entity_linking import (
    SAME,
    THRESHOLD,
    Surroundings,
    contains_whole_name,
    description_of,
    link,
    relation,
    rivals_of,
)
from conspectus.model.graph import Node
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Mention, Source
from conspectus.text.name_keys import BASE, key_of, uri_of

GRAPH = Source(SourceId("g"), CollectionId("c"), "g", kind="graph")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def build_node(id, name=None, type="person", aliases=(), **properties):
    return Node(id, GRAPH, type, name or id, tuple(aliases), properties, NOON, NOON)


def build_mention(text, type="entity"):
    return Mention(0, len(text), text, key_of(text), type)


def find_linked_node(text, *nodes, **around):
    linked = link(build_mention(text), nodes, Surroundings(**around))
    return linked.node.id if linked.node else None


PEOPLE = [
    build_node("Ann"),
    build_node("Ann Smith"),
    build_node("Joanna"),
    build_node("Joanna Smith"),
    build_node("Anna"),
]


@pytest.mark.parametrize("person", PEOPLE)
def test_people_are_told_apart_although_their_names_are_parts_of_others(person):
    assert find_linked_node(person.name, *PEOPLE) == person.id
    others = [other for other in PEOPLE if other is not person]
    assert find_linked_node(person.name, *others) is None
    scores = [candidate.score for candidate in link(build_mention(person.name), others).candidates]
    assert all(score < THRESHOLD for score in scores)


@pytest.mark.parametrize("type", ["person", "entity", "place"])
@pytest.mark.parametrize(
    ("text", "name"), [("Ann", "Joanna"), ("art", "start"), ("Ann", "Ann Smith"), ("Smith", "Smithson")]
)
def test_a_part_of_a_name_is_never_the_name(text, name, type):
    assert find_linked_node(text, build_node("x", name, type)) is None


@pytest.mark.parametrize(
    ("text", "name"), [("C", "C++"), ("C#", "C++"), ("!", "?"), ("Ann A", "Anna"), (".", "-")]
)
def test_marks_and_spaces_tell_names_apart(text, name):
    assert find_linked_node(text, build_node("x", name, "concept")) is None
    assert find_linked_node(text, build_node("x", name)) is None


def test_full_stops_and_hyphens_do_not():
    assert find_linked_node("J.K. Rowling", build_node("jk", "J. K. Rowling")) == "jk"
    assert find_linked_node("Jean Luc", build_node("jl", "Jean-Luc")) == "jl"


def test_people_of_the_same_surname_are_not_the_same():
    assert find_linked_node("Bob Smith", build_node("Ann Smith")) is None
    assert link(build_mention("Bob Smith"), [build_node("Ann Smith")]).candidates == ()


def test_a_surname_means_the_one_person_of_it_whom_the_conversation_has_named():
    smiths = [build_node("Ann Smith"), build_node("Joanna Smith")]
    assert find_linked_node("Smith", *smiths) is None
    assert find_linked_node("Smith", *smiths, recent=frozenset({"Ann Smith"})) == "Ann Smith"
    assert find_linked_node("Smith", *smiths, recent=frozenset({"Ann Smith", "Joanna Smith"})) is None
    assert find_linked_node("Smith", smiths[0]) is None


def test_initials_and_a_surname_mean_the_only_person_that_they_fit():
    assert find_linked_node("A. Smith", build_node("Ann Smith"), build_node("Bob Smith")) == "Ann Smith"
    assert find_linked_node("A. Smith", build_node("Ann Smith"), build_node("Alice Smith")) is None


def test_an_exact_name_an_alias_a_plural_and_initials_are_enough_where_nothing_rivals_them():
    who = build_node("who", "World Health Organization", "organisation", ["Weltgesundheitsorganisation"])
    assert find_linked_node("the world health organization", who) == "who"
    assert find_linked_node("weltgesundheitsorganisation", who) == "who"
    assert find_linked_node("WHO", who) == "who"
    assert find_linked_node("W.H.O.", who) == "who"
    assert find_linked_node("pizzas", build_node("pizza", "pizza", "concept")) == "pizza"


def test_two_of_one_name_are_told_by_the_words_around_or_not_at_all():
    uk, canada = build_node("uk", "London", "place"), build_node("ca", "London", "place")
    about = {"uk": frozenset({"thame"}), "ca": frozenset({"ontario"})}
    assert find_linked_node("London", uk, canada) is None
    assert find_linked_node("London", uk, canada, words=frozenset({"ontario"}), about=about) == "ca"
    assert find_linked_node("London", uk, canada, close={"uk": 0.9, "ca": 0.1}) == "uk"
    assert find_linked_node("London", uk, canada, usual={"ca": 1.0}) == "ca"


def test_a_mention_of_another_kind_is_less_likely():
    candidate = link(
        Mention(0, 7, "Jackson", "jackson", "person"), [build_node("j", "Jackson", "place")]
    ).candidates[0]
    assert candidate.parts["another kind"] < 0


def test_scores_are_sums_of_their_parts_from_0_to_1_and_say_same_from_nine_tenths():
    linked = link(build_mention("Ann"), PEOPLE, Surroundings(recent=frozenset({"Ann"}), usual={"Ann": 1.0}))
    for candidate in linked.candidates:
        assert candidate.score == pytest.approx(min(1.0, max(0.0, sum(candidate.parts.values()))))
    assert [relation(score) for score in (SAME, SAME - 0.01)] == ["same", "related"]


def test_a_threshold_decides_and_nothing_is_not_linked():
    assert link(build_mention("Ann"), [], threshold=0).node is None
    assert link(build_mention("Ann"), [build_node("Ann")], threshold=0.96).node is None


def test_rivals_share_a_whole_name_and_descriptions_tell_them():
    uk, canada = build_node("uk", "London", "place", river="Thames"), build_node("ca", "London", "place")
    assert rivals_of(build_mention("London"), [uk, canada, build_node("x", "Londonderry", "place")]) == [
        uk,
        canada,
    ]
    assert rivals_of(build_mention("London"), [uk]) == []
    assert description_of(uk, ["England"]) == "London (place); Thames; England"
    assert contains_whole_name(build_node("Ann Smith"), {"ann smith"}) and not contains_whole_name(
        build_node("Ann"), {"ann"}
    )


def test_the_address_of_an_entity_ends_with_its_name_and_type():
    assert uri_of("Test Entity", "TEST") == f"{BASE}test_entity#test"
    assert (
        uri_of("Test Entity", "TEST", base="https://x.example/e/") == "https://x.example/e/test_entity#test"
    )
    assert uri_of(uri_of("Test Entity", "TEST"), "TEST") == uri_of("Test Entity", "TEST")


def test_entities_of_one_name_and_type_have_different_addresses():
    ids = ["test_entity", "Test Entity", "test entity", "TEST-ENTITY", "1", "2", "ünicode", "\ud800"]
    uris = [uri_of("Test Entity", "TEST", id=id) for id in ids]
    assert len(set(uris)) == len(ids)
    assert all(uri.endswith("test_entity#test") for uri in uris)
    assert uri_of("!?", "x") != uri_of("?!", "x")


def test_a_linked_mention_has_the_type_of_its_node() -> None:
    mention = build_mention("python", type="other")
    assert link(mention, [build_node("Python", type="language")]).mention.type == "language"
    assert link(mention, []).mention.type == "other"
