"""The examples of the document that describes context from team chat."""

import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.embedders import StatedEmbedder

import conspectus
from conspectus import NewMessage
from conspectus.facades.conversation import ContextWindow, Conversations

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
API_KEY = (
    "How do I set up my API key?",
    "Go to settings",
    "I don't see it in settings",
    "It's under Developer Settings > API Keys",
)
ERROR = (
    "I'm getting a 404 error",
    "Which endpoint?",
    "The /users/profile",
    "Check your authentication token",
    "Thanks, that fixed it!",
)


@pytest.fixture
async def team(tmp_path: Path) -> AsyncIterator[Conversations]:
    async with conspectus.open(tmp_path / "data") as engine:
        team = Conversations(engine)
        for channel, lines in (("support", API_KEY), ("engineering", ERROR)):
            for number, line in enumerate(lines):
                at = NOON + timedelta(minutes=number)
                await team.send(
                    channel, NewMessage(line, key=str(number), author="ab"[number % 2], at=at, thread="0")
                )
        await engine.documents.wait_until_embedded()
        yield team


async def test_a_context_chain_has_the_messages_before_the_relevant_one(team: Conversations) -> None:
    chain = await team.get_context_chain("support", "3")
    assert [message.text for message in chain.messages] == list(API_KEY)


async def test_a_vague_prompt_has_what_was_discussed_before(team: Conversations) -> None:
    """User: "How do I fix this?" The model needs what "this" is, and any error messages."""
    window = await team.get_context_window(
        "engineering", "How do I fix this?", at=NOON + timedelta(minutes=9)
    )
    assert [message.text for message in window.messages] == list(ERROR)


async def test_three_messages_have_the_solution(team: Conversations) -> None:
    sizes = {}
    for tokens in range(40, 80, 2):
        window = await team.get_context_window("engineering", "how do I fix a 404 error?", tokens)
        assert window.total_tokens <= tokens
        sizes[len(window.messages)] = {message.text for message in window.messages}
    assert {ERROR[0], ERROR[3]} <= sizes[3]


async def test_the_interface_of_a_window(team: Conversations) -> None:
    result = await team.get_context_window(
        channel_id="engineering",
        prompt="API status",
        max_tokens=4000,
        include_related_channels=True,
        min_score=0.7,
    )
    assert isinstance(result, ContextWindow)
    assert isinstance(result.total_tokens, int)
    assert set(result.channels) >= {message.channel_id for message in result.messages}
    fields = ("id", "channel_id", "author", "timestamp", "thread", "reply_to", "text", "score")
    assert all(hasattr(message, field) for message in result.messages for field in fields)


def calculate_time_score(timestamp: datetime, now: datetime, time_decay_factor: float = 0.1) -> float:
    """The time score of the document."""
    return math.exp(-time_decay_factor * abs((now - timestamp).total_seconds()) / 3600)


@pytest.mark.parametrize(("channel", "thread"), [("a", "t"), ("a", None), ("b", None)])
async def test_the_score_is_the_product_of_the_document(
    tmp_path: Path, channel: str, thread: str | None
) -> None:
    """baseScore * channelBoost * threadBoost, with the time score of the document."""
    async with conspectus.open(tmp_path, embedder=StatedEmbedder()) as engine:
        team = Conversations(engine)
        sent = NOON - timedelta(hours=2)
        await team.send("a", NewMessage("cosine 0.9", key="1", author="ann", at=sent, thread="t"))
        await team.send("b", NewMessage("cosine 0.8", key="2", author="ben", at=sent, thread="u"))
        await engine.documents.wait_until_embedded()
        window = await team.get_context_window(
            channel,
            "zzz",
            thread=thread,
            at=NOON,
            profile="multiplicative",
            min_similarity=0.0,
            include_related_channels=True,
        )
    base, boosts = {"1": 0.9, "2": 0.8}, {"1": 1.0, "2": 1.0}
    boosts["1" if channel == "a" else "2"] *= 1.5
    if thread is not None:
        boosts["1"] *= 1.3
    for message in window.messages:
        expected = base[message.id] * boosts[message.id] * calculate_time_score(sent, NOON)
        assert message.score == pytest.approx(expected, abs=0.002)


async def test_replies_below_the_minimum_stay_with_their_thread(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=StatedEmbedder()) as engine:
        team = Conversations(engine)
        for key, cosine, root in (("1", 0.71, None), ("2", 0.6, "1"), ("3", 0.3, None)):
            message = NewMessage(f"cosine {cosine}", key=key, author=key, at=NOON, reply_to=root)
            await engine.channels.add_messages(message, channel="a", link=False)
        await engine.documents.wait_until_embedded()
        window = await team.get_context_window("a", "zzz", 100, min_similarity=0.7, at=NOON)
        assert [message.id for message in window.messages] == ["1", "2"]
