"""Searches with a channel, a thread and a time: the order of the hits, and the parts of their scores."""

import math
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
from conspectus.model.channels import NewMessage
from conspectus.model.filter import Eq
from conspectus.model.query import EVERYWHERE, QueryContext

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
QUESTION = "zzz"
HERE = QueryContext(channel="here", at=NOW)
PRODUCT = replace(HERE, profile="multiplicative")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=StatedEmbedder()) as opened:
        yield opened


async def post(engine: Engine, channel: str, *messages: NewDocument) -> None:
    await engine.collections.get_or_create_source(channel, kind="channel")
    await engine.add(messages, source=channel, wait=True)


def make_message(
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


async def search(engine: Engine, context: QueryContext | None = HERE, **fields: object) -> list[Hit]:
    return list((await engine.retrieve(QUESTION, query_context=context, **fields)).hits)


def keys_of(hits: Sequence[Hit]) -> list[str]:
    return [hit.document.key for hit in hits]


@pytest.mark.parametrize("days", [30, 3_650])
@pytest.mark.parametrize("thread", [None, "t"])
async def test_an_old_perfect_match_comes_first_in_its_channel(
    engine: Engine, days: int, thread: str | None
) -> None:
    talk = [make_message(str(n), 0.3 + n / 100, hours=n / 60, thread=thread) for n in range(30)]
    await post(engine, "here", make_message("old", 1.0, hours=24.0 * days), *talk)
    ranked = await search(engine)
    assert keys_of(ranked)[0] == "old"
    assert ranked[0].parts["recency"] < 1e-9


async def test_a_score_is_the_sum_of_its_parts(engine: Engine) -> None:
    await post(engine, "here", *(make_message(str(n), 0.6 + n / 20, thread="t") for n in range(6)))
    for context in (None, HERE, replace(HERE, thread="t"), PRODUCT, replace(PRODUCT, thread="t")):
        ranked = await search(engine, context, min_similarity=0.72)
        assert keys_of(ranked)[0] == "5"
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in ranked)
    assert keys_of(await search(engine, None, min_similarity=0.72)) == ["5", "4", "3"]


@pytest.mark.parametrize("context", [HERE, PRODUCT])
async def test_a_message_is_kept_with_its_thread_and_the_trace_says_so(
    engine: Engine, context: QueryContext
) -> None:
    await post(
        engine,
        "here",
        make_message("parent", 0.71, thread="parent"),
        make_message("reply", 0.6, thread="parent"),
        make_message("unrelated", 0.3, thread="unrelated"),
    )
    hits_by_key = {hit.document.key: hit for hit in await search(engine, context, min_similarity=0.7)}
    assert sorted(hits_by_key) == ["parent", "reply"]
    assert hits_by_key["reply"].parts["kept_by_thread"] == 0.0
    assert "kept_by_thread" not in hits_by_key["parent"].parts
    window = await engine.window(QUESTION, 500, query_context=context, min_similarity=0.7)
    traced = {candidate.document: (candidate.status, candidate.parts) for candidate in window.trace}
    assert [status for status, _ in traced.values()] == ["included", "included", "below_min_similarity"]
    assert "kept_by_thread" in traced[hits_by_key["reply"].document.id][1]


async def test_a_boost_lifts_nothing_over_the_floor(engine: Engine) -> None:
    await post(engine, "here", make_message("near", 0.69), make_message("far", 0.71, hours=1_000.0))
    retrieval = await engine.retrieve(QUESTION, query_context=PRODUCT)
    assert keys_of(retrieval.hits) == ["far"]
    assert keys_of(retrieval.below_min_similarity) == ["near"]
    assert retrieval.below_min_similarity[0].score > 1.0
    assert retrieval.plan["min_similarity"] == "0.70"
    assert retrieval.plan["profile"] == "multiplicative"
    assert keys_of(await search(engine, PRODUCT, min_similarity=0.0)) == ["near", "far"]


async def test_the_channel_asked_in_beats_a_closer_match_elsewhere(engine: Engine) -> None:
    await post(engine, "here", make_message("msg1", 0.95))
    await post(engine, "there", make_message("msg2", 0.98, hours=1.0))
    for profile in ("default", "multiplicative"):
        context = replace(HERE, profile=profile)
        assert keys_of(await search(engine, context)) == ["msg1", "msg2"]
        assert keys_of(await search(engine, replace(context, channel="there"))) == ["msg2", "msg1"]
    assert keys_of(await search(engine, None)) == ["msg2", "msg1"]


async def test_a_channel_is_found_by_its_id_as_well(engine: Engine) -> None:
    await post(engine, "here", make_message("a", 0.9))
    source = await engine.collections.get_or_create_source("here")
    ranked = await search(engine, replace(HERE, channel=source.id))
    assert ranked[0].parts["same_channel"] > 0.0


async def test_an_exchange_is_worth_more_than_the_same_words_alone(engine: Engine) -> None:
    talk = [make_message(f"t{n}", 0.8 if n == 2 else 0.75, thread="t", hours=n / 60) for n in range(5)]
    alone = [make_message(f"s{n}", 0.3, thread=f"s{n}") for n in range(20)]
    await post(engine, "here", *talk, *alone)
    parts_by_key = {hit.document.key: hit.parts for hit in await search(engine, limit=30)}
    assert parts_by_key["t2"]["conversation_flow"] > 0.0
    assert parts_by_key["t2"]["thread_completeness"] > 0.0
    assert parts_by_key["s1"]["conversation_flow"] == parts_by_key["s1"]["thread_completeness"] == 0.0


async def test_messages_without_a_time_are_found_without_recency(engine: Engine) -> None:
    await post(
        engine,
        "here",
        make_message("undated", 0.9, hours=None),
        make_message("dated", 0.9, hours=1_000_000.0),
    )
    ranked = await search(engine)
    assert {hit.parts["recency"] for hit in ranked} == {0.0}
    assert len(ranked) == 2


async def test_now_is_the_time_of_a_question_that_has_none(engine: Engine) -> None:
    await engine.add(
        NewDocument("said, cosine 0.9", kind="message", occurred=datetime.now(UTC)), source="here", wait=True
    )
    ranked = await search(engine, QueryContext(channel="here"))
    assert ranked[0].parts["recency"] > 0.14


async def test_without_a_situation_nothing_is_added(engine: Engine) -> None:
    await post(engine, "here", make_message("a", 0.9, thread="t"), make_message("b", 0.8, thread="t"))
    usual_parts = {"keyword", "vector", "neighbors", "thread", "speaker", "role", "question", "reply", "date"}
    retrieval = await engine.retrieve(QUESTION)
    assert all(set(hit.parts) == usual_parts for hit in retrieval.hits)
    assert "profile" not in retrieval.plan
    assert set((await search(engine))[0].parts) == usual_parts | {
        "recency",
        "same_channel",
        "conversation_flow",
        "thread_completeness",
    }


async def test_a_channel_that_is_not_there_or_not_to_be_seen_is_not_found(engine: Engine) -> None:
    await post(engine, "here", make_message("a", 0.9))
    await post(engine, "secret", make_message("b", 0.9))
    ann = await engine.people.create_user("ann")
    await engine.access.grant("default", Principal("user", ann.id), "viewer", source="here")
    view = engine.as_person(Person("ann", id=ann.id))
    assert (await view.retrieve(QUESTION, query_context=HERE)).hits[0].document.key == "a"
    for asker, channel in ((engine, "nowhere"), (view, "nowhere"), (view, "secret")):
        with pytest.raises(NotFound, match=f"channel '{channel}'"):
            await asker.retrieve(QUESTION, query_context=QueryContext(channel=channel))


async def test_a_channel_is_looked_up_in_every_collection_that_is_asked(engine: Engine) -> None:
    await post(engine, "here", make_message("a", 0.9))
    await engine.collections.create("other")
    await engine.add(make_message("b", 0.95), source="there", collection="other", wait=True)
    for profile in ("default", "multiplicative"):
        ranked = await search(engine, replace(HERE, profile=profile), collection=EVERYWHERE)
        assert keys_of(ranked) == ["a", "b"]
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in ranked)
    with pytest.raises(NotFound, match="nowhere"):
        await search(engine, QueryContext(channel="nowhere"), collection=EVERYWHERE)


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        (QueryContext(thread="t"), "give the channel"),
        (QueryContext(profile="best"), "expected one of default, multiplicative"),
    ],
)
async def test_a_situation_that_makes_no_sense_is_refused(
    engine: Engine, context: QueryContext, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        await engine.retrieve(QUESTION, query_context=context)
    with pytest.raises(InvalidInput, match="at: must have a zone"):
        QueryContext(at=NOW.replace(tzinfo=None))
    with pytest.raises(InvalidInput, match="thread_messages"):
        await engine.retrieve(QUESTION, thread_messages=101)


@pytest.mark.parametrize("context", [HERE, PRODUCT])
async def test_the_thread_of_the_query_has_no_floor(engine: Engine, context: QueryContext) -> None:
    await post(
        engine,
        "here",
        make_message("root", 0.2, thread="t"),
        make_message("reply", 0.1, thread="t"),
        make_message("other", 0.3, thread="o"),
    )
    named = replace(context, thread="t")
    assert sorted(keys_of(await search(engine, named, min_similarity=0.6))) == ["reply", "root"]
    assert not await search(engine, context, min_similarity=0.6)
    other_channel = replace(named, channel="there")
    await post(engine, "there", make_message("else", 0.2, thread="t"))
    assert keys_of(await search(engine, other_channel, min_similarity=0.6)) == ["else"]


async def test_a_filter_that_names_texts_has_no_default_floor(engine: Engine) -> None:
    await post(engine, "here", make_message("a", 0.1, thread="t"), make_message("b", 0.1, thread="u"))
    window = await engine.search.augment(QUESTION, 500, filter=Eq("thread", "t"))
    assert [citation.key for citation in window.citations] == ["a"]
    assert not (await engine.search.augment(QUESTION, 500)).citations
    assert not (
        await engine.search.augment(QUESTION, 500, filter=Eq("thread", "t"), min_similarity=0.25)
    ).citations


STATEMENTS = {
    "The token must be renewed in the developer settings every month": "When must the token be renewed?",
    "The nightly backup of db-2 runs at two in the morning": "When does the backup of db-2 run?",
    "Invoices are approved by the finance team on Thursdays": "Who approves invoices?",
    "The staging cluster uses port 8443 for the gateway": "Which port does the staging cluster use?",
    "Holiday requests go through the portal, not by mail": "How do I request holidays?",
    "The orders table is migrated with the release on Friday": "When is the orders table migrated?",
    "Use the blue badge for the garage in building seven": "Which badge opens the garage?",
    "The printer on the second floor needs the new driver": "Which driver does the printer need?",
}


@pytest.mark.parametrize("profile", [None, "default"])
async def test_a_message_that_is_answered_and_thanked_scores_as_high_as_alone(
    tmp_path: Path, profile: str | None
) -> None:
    """With the shipped model, in a channel of its own and among other messages."""
    replies = ("Ah, good to know, I will do that", "Thanks a lot!")
    async with conspectus.open(tmp_path) as engine:
        for number, (text, query) in enumerate(STATEMENTS.items()):
            scores = {}
            for name, answers in (("alone", ()), ("answered", replies)):
                channel = f"{name}{number}"
                root = NewMessage(text, key="root", author="ann", at=NOW - timedelta(minutes=30))
                chatter = [
                    NewMessage(other, author="zoe", at=NOW - timedelta(hours=3))
                    for other in STATEMENTS
                    if other != text and number % 2
                ]
                answered = [
                    NewMessage(reply, author="ben", at=NOW - timedelta(minutes=29), reply_to="root")
                    for reply in answers
                ]
                await engine.channels.add_messages(
                    [*chatter, root, *answered], channel=channel, link=False, wait=True
                )
                source = await engine.collections.get_or_create_source(channel)
                context = profile and QueryContext(channel=channel, at=NOW, profile=profile)
                retrieval = await engine.retrieve(
                    query, limit=50, filter=Eq("source", source.id), query_context=context
                )
                [score] = [hit.score for hit in retrieval.hits if hit.document.key == "root"]
                scores[name] = score
            assert scores["answered"] >= scores["alone"] - 1e-9, query


async def test_a_product_has_only_its_factors(engine: Engine) -> None:
    """A phrase, a rare identifier and feedback add to sums, and not to a product."""
    quoted = NewDocument(
        "The gateway of staging listens on BX-77120, cosine 0.8",
        kind="message",
        key="quoted",
        thread="t",
        occurred=NOW - timedelta(hours=2),
    )
    await post(engine, "here", quoted, *(make_message(str(n), 0.75) for n in range(30)))
    query = "gateway of staging listens on BX-77120"
    parts = {}
    for profile in ("default", "multiplicative"):
        context = QueryContext(channel="here", thread="t", at=NOW, profile=profile)
        [chunk] = [
            hit.chunk.id
            for hit in (await engine.retrieve(query, query_context=context)).hits
            if hit.document.key == "quoted"
        ]
        await engine.search.add_feedback(query, used=[chunk])
        retrieval = await engine.retrieve(query, query_context=context)
        [hit] = [hit for hit in retrieval.hits if hit.document.key == "quoted"]
        parts[profile] = hit
    assert {"phrase", "identifier", "feedback"} <= parts["default"].parts.keys()
    product = parts["multiplicative"]
    assert product.similarity is not None
    assert product.score == pytest.approx(product.similarity * 1.5 * 1.3 * math.exp(-0.1 * 2))
    assert product.parts.keys() == {"keyword", "vector", "same_channel", "same_thread", "recency"}
