"""Confidence of searches: with and without an answer, and below the minimum."""

import pytest

import conspectus
from conspectus import NewMemory
from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.model.memory import MEMORY, Scope
from conspectus.model.query import EVERYWHERE
from conspectus.retrieval.confidence_weights import WEIGHTS

TEXTS = (
    "The release train leaves every Tuesday at nine in the morning.",
    "Lunch is served in the canteen on the second floor.",
    "Badges are printed at the reception desk near the entrance.",
)
REMEMBERED = (
    "I live in Köln, near the cathedral.",
    "I'm allergic to peanuts.",
    "My sister Mia works as a vet in Bremen.",
    "My favourite tea is green tea with jasmine.",
    "Remind me to call the dentist on Monday.",
    "Nice to meet you!",
    "ok",
)
REMEMBERED_ANSWERS = {
    "Where do I live?": REMEMBERED[0],
    "What am I allergic to?": REMEMBERED[1],
    "What does my sister do for a living?": REMEMBERED[2],
    "Which tea do I like best?": REMEMBERED[3],
}
NEVER_TOLD = (
    "What is my blood type?",
    "Which car do I drive?",
    "What did my brother study?",
    "Who won the cup?",
)
NOWHERE = "Who was the third emperor of the Tang dynasty?"


@pytest.fixture
async def engine(tmp_path: object) -> Engine:
    async with conspectus.open(str(tmp_path)) as opened:
        await opened.add([conspectus.NewDocument(text) for text in TEXTS])
        await opened.documents.wait_until_embedded()
        yield opened


async def test_a_question_without_an_answer_has_less_confidence(engine: Engine) -> None:
    good = await engine.retrieve("When does the release train leave?")
    bad = await engine.retrieve(NOWHERE)
    assert good.confidence > 0.6 > 0.3 > bad.confidence > 0
    assert good.signals.keys() <= WEIGHTS.keys()
    assert good.plan["confidence"].startswith(("best_cosine +", "bm25_lead +", "cosine_lead +"))
    window = await engine.window(NOWHERE, 500)
    assert (window.confidence, window.signals) == (bad.confidence, bad.signals)


@pytest.mark.parametrize("collection", ["default", EVERYWHERE])
async def test_below_the_minimum_nothing_is_found_and_says_why(engine: Engine, collection: str) -> None:
    retrieval = await engine.retrieve(NOWHERE, min_confidence=0.5, collection=collection)
    assert (retrieval.outcome, retrieval.hits) == ("no_match", ())
    assert retrieval.plan["min_confidence"] == "0.50"
    assert f"{retrieval.confidence:.2f} is below the minimum 0.50" in retrieval.notices[-1]
    assert (
        retrieval.below_min_confidence == (await engine.retrieve(NOWHERE, collection=collection)).hits != ()
    )
    window = await engine.window(NOWHERE, 500, min_confidence=0.5, collection=collection)
    assert {candidate.status for candidate in window.trace} == {"below_min_confidence"}
    assert [candidate.rank for candidate in window.trace] == list(range(1, len(window.trace) + 1))
    assert window.trace[0].reason.endswith("of all candidates is below the minimum 0.50")
    assert (window.outcome, window.text, window.notices) == ("no_match", "", retrieval.notices)
    quoted = await engine.retrieve(TEXTS[0], min_confidence=0.5, collection=collection)
    assert (len(quoted.hits), quoted.notices) == (3, ())


async def test_memories_answer_with_confidence_or_not_at_all(tmp_path: object) -> None:
    scope = Scope("ann")
    async with conspectus.open(str(tmp_path)) as engine:
        await engine.memory.add([NewMemory(text) for text in REMEMBERED], scope=scope)
        await engine.documents.wait_until_embedded(collection=MEMORY)
        for question, answer in REMEMBERED_ANSWERS.items():
            recall = await engine.memory.recall(question, scope=scope, min_confidence=0.5)
            assert (recall.outcome, recall.memories[0].memory.text) == ("found", answer)
        for question in NEVER_TOLD:
            recall = await engine.memory.recall(question, scope=scope)
            assert 0.0 < recall.confidence < 0.2
            recall = await engine.memory.recall(question, scope=scope, min_confidence=0.5)
            assert (recall.outcome, recall.memories) == ("no_match", ())


async def test_what_another_person_said_is_no_answer(tmp_path: object) -> None:
    async with conspectus.open(str(tmp_path)) as engine:
        messages = (
            ("Ann", "In May I moved from Bremen to a flat in Hamburg."),
            ("Bob", "That was a good idea!"),
            ("Bob", "I will bake bread at home on Sunday."),
        )
        await engine.add(
            [conspectus.NewDocument(text, kind="message", author=author) for author, text in messages],
            wait=True,
        )
        right = await engine.retrieve("To which flat in Hamburg did Ann move in May?")
        wrong = await engine.retrieve("To which flat in Hamburg did Bob move in May?")
        nobody = await engine.retrieve("To which flat in Hamburg did people move?")
    assert right.signals["author"] > 0.8 > 0.5 > wrong.signals["author"]
    assert right.confidence > wrong.confidence
    assert "author -" in wrong.plan["confidence"]
    assert "author" not in nobody.signals


async def test_an_empty_store_has_no_confidence(tmp_path: object) -> None:
    async with conspectus.open(str(tmp_path)) as empty:
        await empty.collections.get_or_create()
        retrieval = await empty.retrieve("anything", min_confidence=0.9)
    assert (retrieval.confidence, retrieval.signals, retrieval.outcome) == (0.0, {}, "no_match")
    assert not any("confidence" in notice for notice in retrieval.notices)


@pytest.mark.parametrize("min_confidence", [-0.1, 1.1, float("nan")])
async def test_a_minimum_is_a_probability(engine: Engine, min_confidence: float) -> None:
    with pytest.raises(InvalidInput, match="min_confidence"):
        await engine.retrieve("when", min_confidence=min_confidence)
