"""Questions with a channel, a thread and a time, through the engine: what comes first and what is kept."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.embedders import StatedEmbedder

import conspectus
from conspectus import Engine, Hit, NewDocument, Settings
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.access import Person, Principal
from conspectus.model.query import EVERYWHERE, QueryContext

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
QUESTION = "zzz"
HERE = QueryContext(channel="here", at=NOW)
PRODUCT = replace(HERE, profile="multiplicative")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=StatedEmbedder()) as opened:
        yield opened


async def say(engine: Engine, channel: str, *said: NewDocument) -> None:
    await engine.collections.get_or_create_source(channel, kind="channel")
    await engine.add(said, source=channel, wait=True)


def message(
    key: str, cosine: float, *, hours: float | None = 0.0, thread: str | None = None, **fields: str
) -> NewDocument:
    return NewDocument(
        f"{key}, cosine {cosine}",
        kind="message",
        key=key,
        thread=thread,
        occurred=None if hours is None else NOW - timedelta(hours=hours),
        author=fields.get("author", key),
        role=fields.get("role"),
    )


async def hits(engine: Engine, situation: QueryContext | None = HERE, **fields: object) -> list[Hit]:
    return list((await engine.retrieve(QUESTION, query_context=situation, **fields)).hits)


def keys(found: Sequence[Hit]) -> list[str]:
    return [hit.document.key for hit in found]


@pytest.mark.parametrize("days", [30, 3_650])
@pytest.mark.parametrize("thread", [None, "t"])
async def test_an_old_perfect_match_comes_first_in_its_channel(
    engine: Engine, days: int, thread: str | None
) -> None:
    talk = [message(str(n), 0.3 + n / 100, hours=n / 60, thread=thread) for n in range(30)]
    await say(engine, "here", message("old", 1.0, hours=24.0 * days), *talk)
    found = await hits(engine)
    assert keys(found)[0] == "old"
    assert found[0].parts["recency"] < 1e-9


async def test_a_score_is_the_sum_of_its_parts(engine: Engine) -> None:
    await say(engine, "here", *(message(str(n), 0.6 + n / 20, thread="t") for n in range(6)))
    for situation in (None, HERE, replace(HERE, thread="t"), PRODUCT, replace(PRODUCT, thread="t")):
        found = await hits(engine, situation, min_similarity=0.72)
        assert keys(found)[0] == "5"
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in found)
    assert keys(await hits(engine, None, min_similarity=0.72)) == ["5", "4", "3"]


@pytest.mark.parametrize("situation", [HERE, PRODUCT])
async def test_a_message_is_kept_with_its_thread_and_the_trace_says_so(
    engine: Engine, situation: QueryContext
) -> None:
    await say(
        engine,
        "here",
        message("parent", 0.71, thread="parent"),
        message("reply", 0.6, thread="parent"),
        message("unrelated", 0.3, thread="unrelated"),
    )
    found = {hit.document.key: hit for hit in await hits(engine, situation, min_similarity=0.7)}
    assert sorted(found) == ["parent", "reply"]
    assert found["reply"].parts["kept_by_thread"] == 0.0
    assert "kept_by_thread" not in found["parent"].parts
    window = await engine.window(QUESTION, 500, query_context=situation, min_similarity=0.7)
    fates = {entry.document: (entry.status, entry.parts) for entry in window.trace}
    assert [fate for fate, _ in fates.values()] == ["included", "included", "below_min_similarity"]
    assert "kept_by_thread" in fates[found["reply"].document.id][1]


async def test_a_boost_lifts_nothing_over_the_floor(engine: Engine) -> None:
    await say(engine, "here", message("near", 0.69), message("far", 0.71, hours=1_000.0))
    found = await engine.retrieve(QUESTION, query_context=PRODUCT)
    assert keys(found.hits) == ["far"]
    assert keys(found.below_min_similarity) == ["near"]
    assert found.below_min_similarity[0].score > 1.0
    assert found.plan["min_similarity"] == "0.70"
    assert found.plan["profile"] == "multiplicative"
    assert keys(await hits(engine, PRODUCT, min_similarity=0.0)) == ["near", "far"]


async def test_the_channel_asked_in_beats_a_closer_match_elsewhere(engine: Engine) -> None:
    await say(engine, "here", message("msg1", 0.95))
    await say(engine, "there", message("msg2", 0.98, hours=1.0))
    for profile in ("default", "multiplicative"):
        situation = replace(HERE, profile=profile)
        assert keys(await hits(engine, situation)) == ["msg1", "msg2"]
        assert keys(await hits(engine, replace(situation, channel="there"))) == ["msg2", "msg1"]
    assert keys(await hits(engine, None)) == ["msg2", "msg1"]


async def test_a_channel_is_found_by_its_id_as_well(engine: Engine) -> None:
    await say(engine, "here", message("a", 0.9))
    source = await engine.collections.get_or_create_source("here")
    found = await hits(engine, replace(HERE, channel=source.id))
    assert found[0].parts["same_channel"] > 0.0


async def test_an_exchange_is_worth_more_than_the_same_words_alone(engine: Engine) -> None:
    talk = [message(f"t{n}", 0.8 if n == 2 else 0.75, thread="t", hours=n / 60) for n in range(5)]
    alone = [message(f"s{n}", 0.3, thread=f"s{n}") for n in range(20)]
    await say(engine, "here", *talk, *alone)
    found = {hit.document.key: hit.parts for hit in await hits(engine, limit=30)}
    assert found["t2"]["conversation_flow"] > 0.0
    assert found["t2"]["thread_completeness"] > 0.0
    assert found["s1"]["conversation_flow"] == found["s1"]["thread_completeness"] == 0.0


async def test_messages_without_a_time_are_found_without_recency(engine: Engine) -> None:
    await say(engine, "here", message("undated", 0.9, hours=None), message("dated", 0.9, hours=1_000_000.0))
    found = await hits(engine)
    assert {hit.parts["recency"] for hit in found} == {0.0}
    assert len(found) == 2


async def test_now_is_the_time_of_a_question_that_has_none(engine: Engine) -> None:
    await engine.add(
        NewDocument("said, cosine 0.9", kind="message", occurred=datetime.now(UTC)), source="here", wait=True
    )
    found = await hits(engine, QueryContext(channel="here"))
    assert found[0].parts["recency"] > 0.14


async def test_without_a_situation_nothing_is_added(engine: Engine) -> None:
    await say(engine, "here", message("a", 0.9, thread="t"), message("b", 0.8, thread="t"))
    today = {"keyword", "vector", "neighbors", "thread", "speaker", "role", "question", "reply", "date"}
    found = await engine.retrieve(QUESTION)
    assert all(set(hit.parts) == today for hit in found.hits)
    assert "profile" not in found.plan
    assert set((await hits(engine))[0].parts) == today | {
        "recency",
        "same_channel",
        "conversation_flow",
        "thread_completeness",
    }


async def test_a_channel_that_is_not_there_or_not_to_be_seen_is_not_found(engine: Engine) -> None:
    await say(engine, "here", message("a", 0.9))
    await say(engine, "secret", message("b", 0.9))
    ann = await engine.people.create_user("ann")
    await engine.people.grant("default", Principal("user", ann.id), "viewer", source="here")
    view = engine.as_person(Person("ann", id=ann.id))
    assert (await view.retrieve(QUESTION, query_context=HERE)).hits[0].document.key == "a"
    for asker, channel in ((engine, "nowhere"), (view, "nowhere"), (view, "secret")):
        with pytest.raises(NotFound, match=f"channel '{channel}'"):
            await asker.retrieve(QUESTION, query_context=QueryContext(channel=channel))


async def test_a_channel_is_looked_up_in_every_collection_that_is_asked(engine: Engine) -> None:
    await say(engine, "here", message("a", 0.9))
    await engine.collections.create("other")
    await engine.add(message("b", 0.95), source="there", collection="other", wait=True)
    for profile in ("default", "multiplicative"):
        found = await hits(engine, replace(HERE, profile=profile), collection=EVERYWHERE)
        assert keys(found) == ["a", "b"]
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in found)
    with pytest.raises(NotFound, match="nowhere"):
        await hits(engine, QueryContext(channel="nowhere"), collection=EVERYWHERE)


@pytest.mark.parametrize(
    ("situation", "said"),
    [
        (QueryContext(thread="t"), "give the channel"),
        (QueryContext(profile="best"), "expected one of default, multiplicative"),
    ],
)
async def test_a_situation_that_makes_no_sense_is_refused(
    engine: Engine, situation: QueryContext, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        await engine.retrieve(QUESTION, query_context=situation)
    with pytest.raises(InvalidInput, match="at: must have a zone"):
        QueryContext(at=NOW.replace(tzinfo=None))
    with pytest.raises(InvalidInput, match="thread_messages"):
        await engine.retrieve(QUESTION, thread_messages=101)
