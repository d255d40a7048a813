"""Team chat as its users see it: the cases of the chat seed, and the mistakes not to repeat."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.embedders import StatedEmbedder

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound, StorageError
from conspectus.facades.conversation import Conversations
from conspectus.model.access import Person, Principal
from conspectus.model.channels import NewMessage
from conspectus.providers.tokenizers import counter
from conspectus.testing.embedders import HashedEmbedder

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SETTINGS = replace(Settings(), log_level="critical")


@pytest.fixture
async def stated(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=StatedEmbedder()) as engine:
        yield engine


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        yield engine


def build_message(key: str, text: str, *, minutes: float = 0, **fields: str) -> NewMessage:
    return NewMessage(text, key=key, author=f"author{key}", at=NOW - timedelta(minutes=minutes), **fields)


async def say(engine: Engine, channel: str, text: str, key: str) -> None:
    await engine.channels.add_messages(NewMessage(text, key=key), channel=channel, wait=True)


async def list_keys(engine: Engine, tokens: int = 4_000, **options: object) -> list[str]:
    question = {"query": "zzz", "channel": "here", "at": NOW, **options}
    return sorted(
        message.key for message in (await engine.channels.window(max_tokens=tokens, **question)).messages
    )


async def test_what_is_below_the_floor_is_left_out(stated: Engine) -> None:
    await stated.channels.add_messages(
        [build_message("1", "cosine 0.9"), build_message("2", "cosine 0.5")],
        channel="here",
        link=False,
        wait=True,
    )
    assert await list_keys(stated, min_similarity=0.7) == ["1"]


async def test_a_reply_below_the_floor_is_kept_when_its_thread_is_above(stated: Engine) -> None:
    await stated.channels.add_messages(
        [
            build_message("1", "cosine 0.71", minutes=3),
            build_message("2", "cosine 0.6", minutes=2, reply_to="1"),
            build_message("3", "cosine 0.3", minutes=1),
        ],
        channel="here",
        link=False,
        wait=True,
    )
    assert await list_keys(stated, min_similarity=0.7) == ["1", "2"]


async def test_a_match_brings_what_came_before_it(stated: Engine) -> None:
    await stated.channels.add_messages(
        [
            build_message("1", "how do I set up my API key", minutes=9),
            build_message("2", "go to settings", minutes=8, reply_to="1"),
            build_message("3", "I do not see it there", minutes=7, reply_to="2"),
            build_message("4", "under developer settings, cosine 0.95", minutes=6, reply_to="3"),
        ],
        channel="here",
        wait=True,
    )
    assert await list_keys(stated, min_similarity=0.7) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("profile", ["default", "multiplicative"])
@pytest.mark.parametrize("days", [30, 3_650])
async def test_a_perfect_match_is_found_however_old_it_is(stated: Engine, days: int, profile: str) -> None:
    old = build_message("old", "cosine 0.99", minutes=days * 24 * 60)
    noise = [build_message(str(n), f"cosine 0.3{n}", minutes=n) for n in range(9)]
    await stated.channels.add_messages([old, *noise], channel="here", link=False, wait=True)
    assert "old" in await list_keys(stated, min_similarity=0.7, profile=profile)


async def test_never_a_token_over_and_never_empty_for_one_large_message(stated: Engine) -> None:
    long = build_message("1", "cosine 0.99 " + "and so on. " * 500, minutes=1)
    await stated.channels.add_messages(
        [long, build_message("2", "cosine 0.9")], channel="here", link=False, wait=True
    )
    for tokens in (0, 1, 40, 200):
        window = await stated.channels.window("zzz", tokens, channel="here", at=NOW, min_similarity=0.5)
        assert window.tokens <= tokens
        assert bool(window.messages) is (tokens >= 40)


async def test_other_channels_are_asked_only_where_that_is_wanted(engine: Engine) -> None:
    await engine.channels.add_messages(
        NewMessage("the deploy failed at noon", key="a", author="ann"), channel="here", wait=True
    )
    for name in ("ops", "dev", "web", "qa", "hr"):
        await engine.channels.add_messages(
            NewMessage(f"the deploy failed in {name}", key=name, author="bo"), channel=name, wait=True
        )
    conversations = Conversations(engine)
    alone = await conversations.get_context_window("here", "why did the deploy fail?", min_score=0.0)
    assert alone.channels == ("here",)
    wide = await conversations.get_context_window(
        "here", "why did the deploy fail?", include_related_channels=True, min_score=0.0
    )
    assert wide.channels[0] == "here"
    assert 2 <= len(wide.channels) <= 4


async def test_channels_about_something_else_are_not_related(engine: Engine) -> None:
    await engine.channels.add_messages(
        NewMessage("the deploy failed at noon", key="a"), channel="here", wait=True
    )
    await engine.channels.add_messages(NewMessage("lunch is soup today", key="b"), channel="lunch", wait=True)
    conversations = Conversations(engine)
    wide = await conversations.get_context_window(
        "here", "why did the deploy fail?", include_related_channels=True, min_score=0.0
    )
    assert wide.channels == ("here",)


async def test_a_hidden_channel_is_never_related(engine: Engine) -> None:
    ann = await engine.people.create_user("ann")
    for channel in ("here", "secret"):
        await engine.channels.add_messages(
            NewMessage(f"the deploy failed, {channel}", key=channel), channel=channel, wait=True
        )
    here = await engine.collections.get_source("here", collection="default")
    await engine.people.grant("default", Principal("user", ann.id), "viewer", source=here.id)
    theirs = engine.as_person(Person("ann", id=ann.id))
    question = {
        "query": "why did the deploy fail?",
        "channel": "here",
        "related": True,
        "min_similarity": 0.0,
    }
    window = await theirs.channels.window(max_tokens=4_000, **question)
    assert window.channels == ("here",)
    assert "secret" not in window.window.text
    assert (await engine.channels.window(max_tokens=4_000, **question)).channels == ("here", "secret")
    with pytest.raises(NotFound):
        await theirs.channels.window(max_tokens=4_000, **{**question, "channel": "secret"})


async def test_a_member_is_asked_only_what_the_member_may_read(engine: Engine) -> None:
    for channel, members in (("here", ["ann", "bo"]), ("leads", ["bo"]), ("all", None)):
        metadata = {} if members is None else {"members": members}
        await engine.collections.get_or_create_source(channel, kind="channel", metadata=metadata)
        await engine.channels.add_messages(
            NewMessage(f"the deploy failed, {channel}", key=channel), channel=channel, wait=True
        )
    question = {
        "query": "why did the deploy fail?",
        "channel": "here",
        "related": True,
        "min_similarity": 0.0,
    }
    assert (await engine.channels.window(max_tokens=4_000, **question, member="ann")).channels == (
        "here",
        "all",
    )
    assert set((await engine.channels.window(max_tokens=4_000, **question, member="bo")).channels) == {
        "here",
        "all",
        "leads",
    }
    with pytest.raises(NotFound):
        await engine.channels.window(max_tokens=4_000, **{**question, "channel": "leads"}, member="ann")


async def test_a_store_that_fails_is_an_error_and_not_an_empty_window(engine: Engine, tmp_path: Path) -> None:
    await engine.channels.add_messages(NewMessage("the deploy failed", key="1"), channel="here", wait=True)
    with closing(sqlite3.connect(tmp_path / "data" / "records.sqlite")) as other:
        other.execute("DROP TABLE chunks")
    with pytest.raises(StorageError):
        await engine.channels.window("deploy", 4_000, channel="here")


async def test_edits_and_deletions_follow_at_once(engine: Engine) -> None:
    conversations = Conversations(engine)
    first = build_message("1", "the password is swordfish", minutes=1)
    await conversations.send("here", [first, build_message("2", "ok", reply_to="1")])
    await conversations.edit("here", "1", "the password was changed")
    assert [hit.document.key for hit in (await engine.retrieve("swordfish")).hits if hit.bm25] == []
    latest = await conversations.latest("here")
    assert latest[0].text == "the password was changed"
    assert (await conversations.delete("here", "1")).documents == 1
    assert [message.document.key for message in await conversations.latest("here")] == ["2"]
    chain = await conversations.get_context_chain("here", "2")
    assert [message.document.key for message in chain.messages] == ["2"]


async def test_what_the_platform_itself_says_is_no_context(engine: Engine) -> None:
    joined = replace(build_message("1", "the deploy bot has joined the channel"), role="system")
    await engine.channels.add_messages(
        [joined, build_message("2", "the deploy failed")], channel="here", wait=True
    )
    question = {"query": "the deploy", "channel": "here", "min_similarity": 0.0}
    assert [
        message.key for message in (await engine.channels.window(max_tokens=4_000, **question)).messages
    ] == ["2"]
    assert len(await engine.channels.list_messages(channel="here")) == 2


async def test_messages_name_who_said_what_and_when(engine: Engine) -> None:
    await engine.channels.add_messages(build_message("1", "the deploy failed"), channel="here", wait=True)
    window = await Conversations(engine).get_context_window("here", "deploy", min_score=0.0)
    assert "2026-03-02 12:00 author1: the deploy failed" in window.text
    [message] = window.messages
    assert (message.id, message.author, message.timestamp, message.thread) == ("1", "author1", NOW, "1")
    assert window.total_tokens == counter("o200k_base")(window.text)
