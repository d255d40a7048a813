"""Entities of a collection, and searches that traverse the graph."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import Person, Principal
from conspectus.model.filter import Eq, Not
from conspectus.model.graph import Fact, GraphExpansion, NewEdge, NewNode
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.query import QueryContext
from conspectus.model.records import NewDocument
from conspectus.model.results import Retrieval
from conspectus.settings import Settings

WORDS_ONLY = Settings(embedder="none")
PAGES = [
    NewDocument("He made the language Python in Amsterdam.", title="Guido van Rossum", key="guido"),
    NewDocument("A language, used for Django among others.", title="Python (language)", key="python"),
    NewDocument("A framework for the web.", title="Django", key="django"),
    NewDocument("Nothing to do with any of it.", title="Soup", key="soup"),
]
WALK = GraphExpansion(alpha=0.5, hops=3)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=WORDS_ONLY) as opened:
        assert isinstance(opened, Engine)
        yield opened


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    await engine.add(PAGES, source="pages")
    await engine.graph.set_entity_extraction()
    await engine.graph.wait_until_extracted()
    return engine


def paths_by_key(retrieval: Retrieval) -> dict[str, tuple[str, ...]]:
    return {hit.document.key: hit.through for hit in retrieval.hits}


async def test_without_names_the_graph_has_no_say_and_that_is_told(engine: Engine) -> None:
    await engine.add(PAGES)
    plain, walked = await engine.retrieve("amsterdam"), await engine.retrieve("amsterdam", graph=WALK)
    assert walked.hits == plain.hits
    assert "entity extraction is off" in " ".join(walked.notices)
    assert walked.plan["graph"] == "not walked"


async def test_a_memory_that_is_waited_for_mentions_what_would_be_found_later(engine: Engine) -> None:
    new = NewMemory(
        "Ada Lovelace met Charles Babbage in London. " * 20,
        fact=Fact("Ada Lovelace", "knows", "Charles Babbage"),
        entities=("analytical engines",),
    )
    entities = []
    for user, wait in (("ann", False), ("bob", True)):
        await engine.memory.add(new, scope=Scope(user), wait=wait)
        await engine.graph.wait_until_extracted(collection="memory")
        entities.append(await engine.graph.list_entities(collection="memory", source=f"memory/{user}//"))
    assert {entity.key for entity in entities[0]} > {"ada lovelace", "london", "analytical engines"}
    assert entities[0] == entities[1]


async def test_what_is_connected_is_found_and_says_through_what(filled: Engine) -> None:
    assert {hit.document.key for hit in (await filled.retrieve("amsterdam")).hits} == {"guido"}
    retrieval = await filled.retrieve("amsterdam", graph=WALK)
    assert paths_by_key(retrieval) == {
        "guido": ("amsterdam",),
        "python": ("Python",),
        "django": ("Python", "Django"),
    }
    for hit in retrieval.hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()))
        assert 0.0 <= hit.score <= 1.0
    window = await filled.explain("amsterdam", 500, graph=WALK)
    assert any("found through Python → Django" in candidate.reason for candidate in window.trace)


async def test_without_weight_it_is_todays_ranking_and_with_all_of_it_the_graph_alone(filled: Engine) -> None:
    plain = await filled.retrieve("language amsterdam")
    weightless = await filled.retrieve("language amsterdam", graph=GraphExpansion(alpha=0.0))
    assert weightless.hits == plain.hits
    alone = await filled.retrieve("language amsterdam", graph=GraphExpansion(alpha=1.0, hops=3))
    assert all(hit.score == pytest.approx(hit.parts["graph"]) for hit in alone.hits)


async def test_a_hit_has_a_graph_score_only_by_a_path(engine: Engine) -> None:
    """Its own score by keywords is none: with the graph alone it comes after what a path leads to."""
    await engine.graph.add_nodes([NewNode("zephyr", name="Zephyr"), NewNode("office", name="Budget Office")])
    await engine.graph.add_edges([NewEdge("zephyr", "office", "is paid by")])
    await engine.graph.set_entity_extraction()
    garden = [NewDocument(f"What the garden needs about month {n}: water.", key=f"g{n}") for n in range(9)]
    paid = NewDocument("The Budget Office doubled the money in May.", key="paid")
    await engine.add([*garden, paid], wait=True)
    await engine.graph.wait_until_extracted()
    retrieval = await engine.retrieve("the garden of Zephyr", graph=GraphExpansion(alpha=1.0), limit=20)
    first, *others = retrieval.hits
    assert (first.document.key, first.through) == ("paid", ("Zephyr", "Budget Office"))
    assert len(others) == 9
    assert {(hit.score, hit.through) for hit in others} == {(0.0, ())}
    mentioned = await engine.retrieve("Zephyr and the budget", graph=GraphExpansion(alpha=1.0))
    assert mentioned.hits[0].through == ("Zephyr", "Budget Office"), "a hit may also be a start"


async def test_names_of_the_question_are_told_and_none_too(filled: Engine) -> None:
    retrieval = await filled.retrieve("does DJANGO need soup?", graph=WALK)
    assert retrieval.plan["query_entities"] == "DJANGO, soup"
    nothing = await filled.retrieve("zzz", graph=WALK)
    assert (nothing.outcome, nothing.plan["query_entities"]) == (
        "no_match",
        "none that is known",
    )
    assert (await filled.retrieve("", graph=WALK)).hits == ()


async def test_hops_say_how_far(filled: Engine) -> None:
    paths = [
        paths_by_key(await filled.retrieve("amsterdam", graph=GraphExpansion(hops=hops))) for hops in range(3)
    ]
    assert [set(keys) for keys in paths] == [{"guido"}, {"guido", "python"}, {"guido", "python", "django"}]


@pytest.mark.parametrize(
    "ask", [{"alpha": -0.1}, {"alpha": 1.1}, {"alpha": float("nan")}, {"hops": -1}, {"hops": 6}]
)
async def test_impossible_walks_are_refused(filled: Engine, ask: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await filled.retrieve("amsterdam", graph=GraphExpansion(**ask))
    with pytest.raises(NotFound):
        await filled.retrieve("amsterdam", graph=GraphExpansion(graphs=("nothing",)))


@pytest.mark.parametrize("name", ["team a", "graph/team%20a"])
async def test_a_graph_is_named_as_it_was_when_it_was_written(filled: Engine, name: str) -> None:
    await filled.graph.add_nodes([NewNode("hot", name="Soup"), NewNode("cold", name="Django")], graph=name)
    await filled.graph.add_edges([NewEdge("hot", "cold", weight=0.9)], graph="team a")
    retrieval = await filled.retrieve("nothing to do", graph=GraphExpansion(hops=1, graphs=("team a",)))
    assert paths_by_key(retrieval)["django"] == ("Soup", "Django")
    with pytest.raises(NotFound, match="no graph 'team b'"):
        await filled.retrieve("nothing", graph=GraphExpansion(graphs=("team a", "team b")))


async def test_stored_edges_lead_to_passages_too(filled: Engine) -> None:
    await filled.graph.add_nodes(
        [NewNode("hot", name="Soup"), NewNode("cold", name="Django", aliases=("DJ",))]
    )
    await filled.graph.add_edges([NewEdge("hot", "cold", weight=0.9)])
    retrieval = await filled.retrieve("nothing to do", graph=GraphExpansion(hops=1))
    assert paths_by_key(retrieval)["django"] == ("Soup", "Django")
    none = await filled.retrieve("nothing to do", graph=GraphExpansion(hops=1, graphs=()))
    assert "django" not in paths_by_key(none)
    assert paths_by_key(await filled.retrieve("who is dj?", graph=WALK))["django"] == ("dj", "Django")


async def test_a_filter_leaves_nothing_to_walk_over_outside_of_it(filled: Engine) -> None:
    beyond = await filled.retrieve(
        "amsterdam", graph=WALK, filter=Not(Eq("document", await document_id(filled, "python")))
    )
    assert paths_by_key(beyond) == {"guido": ("amsterdam",)}


async def document_id(engine: Engine, key: str) -> str:
    return next(document.id for document in (await engine.documents.list()).documents if document.key == key)


async def test_names_that_only_hidden_passages_have_leave_no_trace(filled: Engine) -> None:
    secret = NewDocument("Guido van Rossum met Django there.", title="Atlantis", key="secret")
    await filled.add([secret], source="hidden", wait=True)
    user = await filled.people.create_user("bob")
    home = (await filled.collections.get_or_create()).id
    await filled.access.grant(home, Principal("user", user.id), "viewer", source="pages")
    bob = filled.as_person(Person("bob", False, user.id))
    retrieval = await bob.retrieve("django in atlantis", graph=GraphExpansion(hops=5), collection=home)
    assert retrieval.hits
    assert "atlantis" not in repr(retrieval).casefold()
    assert "atlantis" in repr(await filled.retrieve("django in atlantis", graph=WALK)).casefold()
    assert "atlantis" not in {entity.key for entity in await bob.graph.list_entities(collection=home)}
    with pytest.raises(NotFound):
        await bob.graph.list_entities(collection=home, source="hidden")
    with pytest.raises(PermissionDenied):
        await bob.graph.set_entity_extraction(collection=home)


async def test_a_hostile_text_of_names_alone_is_kept_in_bounds(filled: Engine) -> None:
    await filled.add([NewDocument(", ".join(f"Name{number}ly" for number in range(10_000)))], wait=True)
    retrieval = await filled.retrieve("amsterdam Name7ly", graph=GraphExpansion(hops=5))
    assert paths_by_key(retrieval)["python"] == ("Python",)
    assert len(await filled.graph.list_entities(limit=1_000)) <= 1_000


async def test_what_is_written_is_looked_through_and_what_is_deleted_goes(filled: Engine) -> None:
    await filled.add([NewDocument("Ada Lovelace wrote.", key="ada")], wait=True)
    assert [entity.name for entity in await filled.graph.list_entities(prefix="ADA")] == ["Ada Lovelace"]
    await filled.documents.delete([await document_id(filled, "python")])
    assert "python" not in paths_by_key(await filled.retrieve("amsterdam", graph=WALK))
    await filled.documents.delete([await document_id(filled, "ada")])
    assert await filled.graph.list_entities(prefix="ada") == []
    await filled.graph.set_entity_extraction(False)
    assert await filled.graph.list_entities() == []
    assert not (await filled.collections.get_or_create()).names


async def test_deleting_beneath_a_walk_spoils_nothing(filled: Engine) -> None:
    searches = [filled.retrieve("amsterdam", graph=WALK) for _ in range(20)]
    deletions = [filled.documents.delete([await document_id(filled, key)]) for key in ("python", "django")]
    answers = await asyncio.gather(*searches, *deletions)
    assert all("guido" in paths_by_key(answer) for answer in answers if isinstance(answer, Retrieval))


async def test_the_same_question_has_the_same_answer(filled: Engine) -> None:
    first, second = [await filled.retrieve("guido amsterdam language", graph=WALK) for _ in range(2)]
    assert replace(first, timings={}) == replace(second, timings={})


async def test_all_collections_are_asked_alike(filled: Engine) -> None:
    await filled.add([NewDocument("Amsterdam is wet.", key="wet")], collection="other")
    retrieval = await filled.retrieve("amsterdam", graph=WALK, collection="*")
    assert {"guido", "wet", "python", "django"} == {hit.document.key for hit in retrieval.hits}
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in retrieval.hits)
    assert "entity extraction is off" in " ".join(retrieval.notices)


async def test_messages_in_threads_keep_the_parts_of_their_scores(filled: Engine) -> None:
    messages = [
        NewDocument(text, kind="message", thread="t", sequence=position, author="ann", key=f"m{position}")
        for position, text in enumerate(["Who knows Amsterdam?", "I do.", "Ask Guido van Rossum.", "Thanks."])
    ]
    await filled.add(messages, source="chat", wait=True)
    for profile in ("default", "multiplicative"):
        context = QueryContext(channel="chat", profile=profile)
        retrieval = await filled.retrieve("amsterdam", graph=WALK, query_context=context, min_similarity=0.0)
        assert {"m0", "guido", "python"} <= paths_by_key(retrieval).keys()
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in retrieval.hits)


async def test_names_are_of_one_source_or_all(filled: Engine) -> None:
    await filled.add([NewDocument("Eve met Ada Lovelace.")], source="diary", wait=True)
    assert "ada lovelace" in {entity.key for entity in await filled.graph.list_entities(source="diary")}
    assert "ada lovelace" not in {entity.key for entity in await filled.graph.list_entities(source="pages")}
    for limit in (-1, 1_001):
        with pytest.raises(InvalidInput):
            await filled.graph.list_entities(limit=limit)
