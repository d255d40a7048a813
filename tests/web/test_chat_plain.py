"""Chats for clients that read only lines of data, and servers whose chats are about tasks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import ChatRateLimited, InvalidInput
from conspectus.model.chat import Citations, Delta, Failure, Sources, Usage
from conspectus.model.tasks import Task
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.web.sse import Plain
from tests.server_events import parsed
from tests.web.chatting import MESSAGE, Chats, chats


async def add_task(site: Chats) -> None:
    await site.engine.tasks.put(Task(id="ops-1", title="Backups run at two", status="pending"))


async def test_a_server_puts_in_tasks_by_default(tmp_path: Path) -> None:
    model = ScriptedChatModel(["At two."])
    async with chats(tmp_path, model, chat_form="tasks") as site:
        await add_task(site)
        await site.chat()
        await site.chat(format="passages")
    first, second = (request.messages[-1].content for request in model.asked)
    assert "Relevant tasks:\n1. [ops-1] (status: pending" in first
    assert "Relevant tasks:" not in second and "Backups run at two" in second


@pytest.mark.parametrize("by", ["request", "server"])
async def test_a_plain_stream_has_text_and_the_end_alone(tmp_path: Path, by: str) -> None:
    settings, more = ({"chat_events": "text"}, {}) if by == "server" else ({}, {"events": "text"})
    async with chats(tmp_path, ScriptedChatModel(["Backups\n", " run."]), **settings) as site:
        await site.engine.add("Backups run at two each night.", wait=True)
        async with site.client() as client:
            answer = await client.post("/chat", json={**MESSAGE, **more})
            full_answer = await client.post("/chat", json={**MESSAGE, "events": "all"})
    assert answer.text == "data: Backups\ndata: \n\ndata:  run.\n\ndata: [DONE]\n\n"
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: sources" in full_answer.text


async def test_a_failure_is_told_by_its_code_and_message(tmp_path: Path) -> None:
    fault = ChatRateLimited("x", "the key sk-secret is over its limit")
    model = ScriptedChatModel(["Hel", "lo"], fails=fault, after=1)
    async with chats(tmp_path, model) as site, site.client() as client:
        answer = await client.post("/chat", json={**MESSAGE, "events": "text"})
    assert [(event.name, event.data) for event in parsed(answer.content)] == [
        ("message", "Hel"),
        ("error", f"LLM_RATE_LIMIT: {fault.user_message}"),
        ("message", "[DONE]"),
    ]


@given(st.lists(st.text(st.characters(codec="utf-8")) | st.sampled_from(["[DONE]", "\r", "\n", "\r\n", " "])))
def test_no_piece_is_lost_or_taken_for_the_end(pieces: list[str]) -> None:
    plain = Plain()
    events = [Sources("off"), *map(Delta, pieces), Citations(()), Usage(1, 1, exact=True)]
    *text_events, end = parsed(
        [*(plain.event(number, event) for number, event in enumerate(events)), plain.end(9)]
    )
    texts = [piece.replace("\r\n", "\n").replace("\r", "\n") for piece in pieces]
    assert "".join(event.data for event in text_events) == "".join(texts)
    assert all(event.data != "[DONE]" for event in text_events) and end.data == "[DONE]"


def test_a_failure_breaks_no_line() -> None:
    [event] = parsed([Plain().event(0, Failure("internal", "a\nb"))])
    assert (event.name, event.data) == ("error", "internal: a\nb")


@pytest.mark.parametrize("wrong", [{"chat_form": "prose"}, {"chat_events": "none"}])
def test_a_server_is_not_set_to_what_there_is_not(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="must be one of"):
        Settings(**wrong)


async def test_a_request_for_other_events_is_refused(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel()) as site, site.client() as client:
        assert (await client.post("/chat", json={**MESSAGE, "events": "some"})).status_code == 422
