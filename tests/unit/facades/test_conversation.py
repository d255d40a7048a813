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
    await engine.access.grant("default", Principal("user", ann.id), "viewer", source=here.id)
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


THREADS = {
    "e0": ("I'm getting a 404 error", "Which endpoint?", "The /users/profile", "Check your token"),
    "e1": ("The nightly backup stopped", "The disk of db-2 is full", "Old snapshots are gone", "It ran now"),
    "e2": ("Lunch on Friday?", "Book a table for six", "Booked it for noon", "See you there"),
}
VAGUE_PROMPTS = ("What does that mean?", "Did that work?", "How do I fix this?", "Is it done?")


async def talk_in_threads(engine: Engine, *, minutes: float = 0) -> None:
    """Send three threads, 20 minutes apart; the last message of the latest is some minutes old."""
    for position, (root, lines) in enumerate(THREADS.items()):
        messages = [
            NewMessage(
                line,
                key=root if not number else f"{root}-{number}",
                author=f"author{number % 2}",
                at=NOW - timedelta(minutes=minutes + 20 * (2 - position) + len(lines) - 1 - number),
                thread=root,
            )
            for number, line in enumerate(lines)
        ]
        await engine.channels.add_messages(messages, channel="dev", wait=True)


async def test_a_vague_prompt_in_a_thread_gets_that_thread(engine: Engine) -> None:
    await talk_in_threads(engine)
    team = Conversations(engine)
    for thread, lines in THREADS.items():
        for prompt in VAGUE_PROMPTS:
            window = await team.get_context_window("dev", prompt, thread=thread, at=NOW)
            texts = {message.text for message in window.messages if message.thread == thread}
            assert texts == set(lines)
            assert window.assumed_thread is None


async def test_a_thread_is_also_named_by_one_of_its_messages(engine: Engine) -> None:
    await talk_in_threads(engine)
    window = await Conversations(engine).get_context_window(
        "dev", "Did that work?", thread="e1-2", min_score=1.0, at=NOW
    )
    assert [message.text for message in window.messages] == [*THREADS["e1"]]


async def test_all_messages_of_the_named_thread_are_candidates(stated: Engine) -> None:
    """Also where a hundred other messages of the channel are nearer to the query."""
    near = [
        build_message(f"n{number}", f"{number}: cosine 0.9", thread=f"n{number}") for number in range(120)
    ]
    far = [build_message(f"t{number}", f"{number}: cosine 0.1", thread="t") for number in range(5)]
    await stated.channels.add_messages([*near, *far], channel="here", link=False, wait=True)
    assert {"t0", "t4"} <= {*await list_keys(stated, 10_000, thread="t")}
    assert "t0" not in await list_keys(stated, 10_000)


async def test_a_prompt_that_names_nothing_takes_the_latest_thread(engine: Engine) -> None:
    await talk_in_threads(engine, minutes=50)
    window = await Conversations(engine).get_context_window("dev", "What does that mean?", at=NOW)
    assert window.assumed_thread == "e2"
    assert {message.text for message in window.messages if message.thread == "e2"} == set(THREADS["e2"])
    assert any("names nothing" in notice and "e2" in notice for notice in window.notices)


async def test_an_old_thread_or_a_prompt_with_a_subject_takes_none(engine: Engine) -> None:
    await talk_in_threads(engine, minutes=61)
    team = Conversations(engine)
    assert (await team.get_context_window("dev", "What does that mean?", at=NOW)).assumed_thread is None
    recent = NOW - timedelta(minutes=60)
    assert (await team.get_context_window("dev", "Where is the backup?", at=recent)).assumed_thread is None


async def test_notices_count_the_messages_below_the_floor(stated: Engine) -> None:
    messages = [build_message(str(n), f"{n}: cosine 0.{n}", thread=str(n)) for n in range(1, 6)]
    await stated.channels.add_messages(messages, channel="here", link=False, wait=True)
    window = await Conversations(stated).get_context_window(
        "here", "zzz", at=NOW, min_similarity=0.35, thread_messages=0
    )
    assert {message.id for message in window.messages} == {"4", "5"}
    assert "3 messages are left out, below the minimum similarity" in window.notices
