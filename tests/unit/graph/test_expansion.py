"""Ways over names: what they are worth, and which of them is the best."""

from datetime import UTC, datetime
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.graph.expansion import (
    MAX_NAMES,
    MAX_PASSAGES,
    MAX_SEEDS,
    MENTION,
    MIN_VALUE,
    NAMED,
    STEP,
    Way,
    best,
    find_starts,
    max_mentions,
    names_beyond,
    names_in,
    passages_with,
    phrases,
    seeds,
    select_known_names,
)
from conspectus.model.graph import Neighbor, Node
from conspectus.model.ids import ChunkId, CollectionId, SourceId
from conspectus.model.records import Source
from conspectus.ports.graphs import Mentioned, TextPassage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GRAPH = Source(SourceId("g"), CollectionId("c"), "g", kind="graph")


def build_node(name: str, *aliases: str) -> Node:
    return Node(name.lower(), GRAPH, "entity", name, aliases, {}, NOW, NOW)


def build_mentions(*chunks: int, about: tuple[int, ...] = ()) -> Mentioned:
    return Mentioned(tuple(ChunkId(chunk) for chunk in chunks), frozenset(ChunkId(chunk) for chunk in about))


def test_the_best_hit_is_worth_its_score_and_one_that_is_near_stays_near() -> None:
    begun = seeds({1: 0.99, 2: 0.98, 3: 0.0, 4: -1.0})
    assert (begun[1].value, begun[1].start) == (pytest.approx(0.99), 1)
    assert begun[2].value == pytest.approx(0.98, abs=0.03)
    assert begun.keys() == {1, 2}
    assert seeds({}) == {}
    assert seeds({1: 3.0})[1].value == 1.0
    assert len(seeds(dict.fromkeys(range(50), 1.0))) == MAX_SEEDS


def test_the_longest_names_of_a_question_are_found_in_any_case_and_words_of_them_are_none() -> None:
    candidates = phrases("who lived in new york city, the York of Ada's?")
    ways = select_known_names(candidates, ["new york city", "york", "city", "ada", "who", "the"])
    assert ways == {
        "new york city": (Way(NAMED, ("new york city",)),),
        "york": (Way(NAMED, ("York",)),),
        "ada": (Way(NAMED, ("Ada's",)),),
    }


@given(st.text())
def test_any_question_has_phrases(text: str) -> None:
    assert all(phrase.key and phrase.text in text for phrase in phrases(text))


def test_a_question_of_very_many_words_has_few_phrases() -> None:
    assert len(phrases("Word " * 2_000)) < 1_000


def test_a_passage_about_a_name_is_nearer_than_one_that_mentions_it() -> None:
    ways = passages_with({"ada": (Way(1.0, ("Ada",)),)}, {"ada": build_mentions(1, 2, 3, 4, about=(3,))})
    assert ways[3] == (Way(1.0, ("Ada",)),)
    assert ways[1][0].value == pytest.approx(MENTION / sqrt(4))


def test_no_path_leads_back_to_its_start() -> None:
    """A hit is worth what paths from the query and from other hits give it, not its own score."""
    mentions = {"ada": build_mentions(1, 2)}
    alone = passages_with({"ada": (Way(1.0, ("Ada",), start=1),)}, mentions)
    assert alone.keys() == {2}
    both = names_in(
        {1: (Way(0.9, start=1),), 2: (Way(0.8, start=2),), 3: (Way(0.7, start=3),)},
        [TextPassage(ChunkId(chunk), {"ada": "Ada"}) for chunk in (1, 2, 3)],
    )
    assert [way.start for way in both["ada"]] == [1, 2]
    ways = passages_with(both, mentions)
    assert {chunk: way.start for chunk, (way, *_) in ways.items()} == {1: 2, 2: 1}
    from_query = passages_with({"ada": (Way(NAMED, ("Ada",)),)}, mentions)
    assert from_query.keys() == {1, 2}


def test_a_name_that_many_mention_is_worth_less_and_at_last_nothing() -> None:
    worth = [
        passages_with({"ada": (Way(1.0),)}, {"ada": build_mentions(*range(1, number + 1))})
        .get(1, (Way(0.0),))[0]
        .value
        for number in (1, 4, max_mentions(1.0) - 1, max_mentions(1.0) + 1)
    ]
    assert worth == sorted(worth, reverse=True)
    assert worth[2] >= MIN_VALUE > worth[3]


@given(st.floats(MIN_VALUE, 1.0), st.integers(0, 9))
def test_more_passages_than_are_read_would_not_be_reached(weight: float, more: int) -> None:
    many = build_mentions(*range(1, max_mentions(weight) + 2 + more))
    assert passages_with({"ada": (Way(weight),)}, {"ada": many}) == {}


def test_of_several_ways_with_one_start_the_best_counts() -> None:
    names = {"ada": (Way(0.5, ("Ada",)),), "bob": (Way(0.9, ("Bob",)),), "bo": (Way(0.9, ("Bo",)),)}
    everywhere = {key: build_mentions(7, about=(7,)) for key in names}
    assert passages_with(names, everywhere) == {7: (Way(0.9, ("Bo",)),)}
    many = {f"n{number}": (Way(1.0),) for number in range(500)}
    mentions = {key: build_mentions(number, about=(number,)) for number, key in enumerate(many, 1)}
    assert len(passages_with(many, mentions)) == MAX_PASSAGES


def test_names_are_reached_through_passages_as_they_are_spelt() -> None:
    passage = TextPassage(ChunkId(1), {"ada": "ADA", "bob": "Bob"})
    assert names_in({1: (Way(0.5, ("Eve",)),)}, [passage]) == {
        "ada": (Way(0.5 * STEP, ("Eve", "ADA")),),
        "bob": (Way(0.5 * STEP, ("Eve", "Bob")),),
    }


WAYS = st.builds(
    Way,
    st.sampled_from([0.04, 0.06, 0.3, 0.5]),
    st.sampled_from([(), ("A",), ("B",), ("A", "B")]),
    st.integers(0, 3),
)


@given(st.lists(WAYS, max_size=30), st.integers(1, 40))
def test_only_the_best_ways_to_names_and_passages_are_kept(ways: list[Way], number: int) -> None:
    by_chunk = {chunk: (way,) for chunk, way in enumerate(ways, 10)}
    spelt = [
        {f"n{index * chunk % (16 * number)}": "xy"[chunk % 2] for index in range(number)}
        for chunk in by_chunk
    ]
    passages = [TextPassage(ChunkId(chunk), names) for chunk, names in zip(by_chunk, spelt, strict=True)]
    steps = [
        (key, by_chunk[passage.chunk][0].on(STEP, name))
        for passage in passages
        for key, name in passage.names.items()
    ]
    assert list(names_in(by_chunk, passages).items()) == list(best(steps, MAX_NAMES).items())
    names = {f"n{chunk}": way for chunk, way in by_chunk.items()}
    mentions = {key: build_mentions(*range(first, first + number)) for first, key in enumerate(names)}
    every = [
        (chunk, names[key][0].on(MENTION / sqrt(number)))
        for key, where in mentions.items()
        for chunk in where.chunks
        if chunk != names[key][0].start
    ]
    assert list(passages_with(names, mentions).items()) == list(best(every, MAX_PASSAGES).items())


def test_edges_lead_to_names_and_other_names_of_the_same_cost_nothing() -> None:
    python, web, django = build_node("Python", "Py"), build_node("Web"), build_node("Django")
    named_nodes = [("py", python)]
    begun = find_starts({"py": (Way(0.5, ("py",)),)}, named_nodes)
    walked = [
        Neighbor(web, 1, 0.9, ("python", "web"), ()),
        Neighbor(django, 2, 0.63, ("python", "web", "django"), ()),
    ]
    ways = names_beyond(begun, named_nodes, walked)
    assert ways["python"] == (Way(0.5, ("py", "Python")),)
    assert ways["web"][0].through == ("py", "Web")
    assert ways["django"][0].through == ("py", "Web", "Django")
    assert ways["django"][0].value == pytest.approx(0.5 * 0.63 * STEP**2)


@given(st.dictionaries(st.integers(1, 30), st.floats(-1, 2), max_size=20), st.permutations(range(1, 31)))
def test_no_way_is_worth_more_than_what_it_begins_with(scores: dict[int, float], order: list[int]) -> None:
    begun = {chunk: (way,) for chunk, way in seeds(scores).items()}
    passages = [TextPassage(ChunkId(chunk), {"ada": "Ada", f"n{chunk % 3}": "N"}) for chunk in order]
    names = names_in(begun, [passage for passage in passages if int(passage.chunk) in begun])
    ways = passages_with(names, {key: build_mentions(*sorted(order)) for key in names})
    maximum = max((way.value for way, *_ in begun.values()), default=0.0)
    assert all(0.0 < way.value <= maximum <= 1.0 for paths in ways.values() for way in paths)
    assert all(way.start != chunk for chunk, paths in ways.items() for way in paths)
