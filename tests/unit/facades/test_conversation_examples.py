"""Windows for questions in team chat, with the shipped embedding model and two short threads."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import conspectus
from conspectus import NewMessage, Settings
from conspectus.errors import InvalidInput
from conspectus.facades.conversation import Conversations, similarity_of

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ERROR = (
    "I'm getting a 404 error",
    "Which endpoint?",
    "The /users/profile",
    "Check your authentication token",
    "Thanks, that fixed it!",
)
STATUS = (
    "The API integration is done and deployed to staging since this morning",
    "I have lunch at noon, who joins?",
    "The status page of the API shows errors in the billing integration",
    "Sprint review moved to Friday",
)


@pytest.fixture
async def team(tmp_path: Path) -> AsyncIterator[Conversations]:
    async with conspectus.open(tmp_path / "data", settings=Settings(log_level="critical")) as engine:
        team = Conversations(engine)
        for channel, texts, thread in (("support", ERROR, "0"), ("engineering", STATUS, None)):
            for number, text in enumerate(texts):
                at = NOON + timedelta(minutes=number)
                message = NewMessage(text, key=str(number), author="ab"[number % 2], at=at, thread=thread)
                await team.send(channel, message)
        await engine.documents.wait_until_embedded()
        yield team


@pytest.mark.parametrize("prompt", ["I'm getting a 404 error", "how do I fix a 404 error?", "404"])
async def test_a_window_for_three_messages_of_a_thread_has_the_solution(
    team: Conversations, prompt: str
) -> None:
    sizes = set()
    for tokens in range(48, 68, 4):
        window = await team.get_context_window("support", prompt, tokens)
        texts = {message.text for message in window.messages}
        assert {ERROR[0], ERROR[3]} <= texts
        sizes.add(len(texts))
    assert 3 in sizes


async def test_a_minimum_score_of_seven_tenths_finds_what_is_relevant(team: Conversations) -> None:
    window = await team.get_context_window(
        channel_id="engineering",
        prompt="API status",
        max_tokens=4000,
        include_related_channels=True,
        min_score=0.7,
    )
    texts = {message.text for message in window.messages}
    assert {STATUS[0], STATUS[2]} <= texts
    assert not texts & set(ERROR)
    strict = await team.get_context_window("engineering", "API status", min_score=0.95)
    assert strict.messages == ()


async def test_messages_have_the_text_that_is_shown_and_a_score(team: Conversations) -> None:
    window = await team.get_context_window("support", ERROR[0])
    assert [message.text for message in window.messages] == list(ERROR)
    assert all(message.text in window.text for message in window.messages)
    assert {message.channel_id for message in window.messages} == set(window.channels) == {"support"}
    scores = [message.score for message in window.messages]
    assert max(scores) == scores[0] and min(scores) < scores[0]


async def test_of_a_cut_message_there_is_what_is_shown(team: Conversations) -> None:
    await team.send("long", NewMessage("The deploy failed. " * 200, key="0"))
    [message] = (await team.get_context_window("long", "deploy", 60, min_score=0.0)).messages
    assert "The deploy failed." in message.text and len(message.text) < 400


def test_the_scale_of_scores_is_linear_on_both_sides() -> None:
    assert [round(similarity_of(score), 3) for score in (0.0, 0.35, 0.7, 0.85, 1.0)] == [
        0.0,
        0.125,
        0.25,
        0.625,
        1.0,
    ]


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), True, "0.7"])
async def test_scores_beyond_the_scale_are_refused(team: Conversations, score: object) -> None:
    with pytest.raises(InvalidInput, match="min_score"):
        await team.get_context_window("support", "404", min_score=score)


async def test_a_score_and_a_similarity_are_not_given_together(team: Conversations) -> None:
    with pytest.raises(InvalidInput, match="min_similarity"):
        await team.get_context_window("support", "404", min_score=0.7, min_similarity=0.2)
