"""Search over the embedded store: scores, filters, limits, budgets and explanations."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Budget, Engine, Eq, NewDocument, Not, Settings
from conspectus.errors import InvalidInput
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), chunk_size=400, chunk_overlap=40)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


async def test_a_score_is_the_sum_of_its_parts(engine: Engine) -> None:
    await engine.add([f"river {number} flows to the sea {number % 3}" for number in range(20)], wait=True)
    retrieval = await engine.retrieve("which river flows to sea 2", limit=20)
    assert len(retrieval.hits) == 20
    for hit in retrieval.hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()))
    assert [hit.score for hit in retrieval.hits] == sorted(
        (hit.score for hit in retrieval.hits), reverse=True
    )


async def test_a_filter_holds_for_both_arms_and_for_lists(engine: Engine) -> None:
    news = [NewDocument(text="same words here", metadata={"team": team}) for team in ("a", "b", "b")]
    await engine.add(news, wait=True)
    where = Eq(("team",), "b")
    retrieval = await engine.retrieve("same words", filter=where)
    assert [hit.document.metadata["team"] for hit in retrieval.hits] == ["b", "b"]
    assert await engine.documents.count(filter=where) == 2
    assert [
        document.metadata["team"] for document in (await engine.documents.list(filter=Not(where))).documents
    ] == ["a"]


async def test_the_window_never_costs_more_than_its_budget(engine: Engine) -> None:
    await engine.add(["The harbour is deep. " * 40, "The harbour is closed."], wait=True)
    for tokens in (0, 1, 7, 50, 300):
        window = await engine.window("harbour", tokens)
        assert window.tokens <= window.max_tokens <= tokens
    beside = await engine.window("harbour", Budget(300, system="be brief", query="why?", reserved_tokens=100))
    assert beside.max_tokens < 200


async def test_a_floor_looks_at_raw_similarity(engine: Engine) -> None:
    await engine.add(["apples and pears", "quarks and gluons"], wait=True)
    retrieval = await engine.retrieve("apples and pears", min_similarity=0.9)
    assert len(retrieval.hits) == 1
    assert len(retrieval.below_min_similarity) == 1
    nothing = await engine.retrieve("entirely other", min_similarity=0.99)
    assert nothing.outcome == "no_match"


async def test_explain_shows_a_document_that_was_not_found(engine: Engine) -> None:
    written = await engine.add(["apples and pears", "quarks and gluons"], wait=True)
    window = await engine.explain("apples", Budget(100), document=written[1].id, retrievers=("keyword",))
    assert written[1].id in {candidate.document for candidate in window.trace}


async def test_explain_says_when_a_document_could_not_be_ranked(engine: Engine) -> None:
    written = await engine.add([NewDocument(text="apples", kind="task"), NewDocument(text=" ")])
    kept_out = await engine.explain("apples", 100, document=written[0].id, filter=Eq("kind", "page"))
    assert "the filter leaves it out" in kept_out.notices[-1]
    empty = await engine.explain("apples", 100, document=written[1].id)
    assert "it has no text" in empty.notices[-1]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"limit": -1}, InvalidInput),
        ({"limit": 10_000}, InvalidInput),
        ({"min_similarity": 2.0}, InvalidInput),
        ({"vector": (0.0,) * 64}, InvalidInput),
        ({"vector": (1.0,)}, InvalidInput),
        ({"nonsense": 1}, InvalidInput),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(
    engine: Engine, fields: dict[str, object], error: type[Exception]
) -> None:
    await engine.add("anything")
    with pytest.raises(error):
        await engine.retrieve("question", **fields)


async def test_a_limit_bounds_what_a_window_looks_at(engine: Engine) -> None:
    await engine.add([f"pebble number {number} of many" for number in range(30)], wait=True)
    assert len((await engine.window("pebble", 2_000, limit=3)).trace) == 3
    assert len((await engine.window("pebble", 2_000)).trace) == 30


async def test_an_empty_question_finds_nothing_and_says_so(engine: Engine) -> None:
    await engine.add("anything", wait=True)
    for question in ("", "  \n", "?!"):
        assert (await engine.retrieve(question, retrievers=("keyword",))).outcome == "no_match"
    assert (await engine.window("", 100)).tokens == 0
