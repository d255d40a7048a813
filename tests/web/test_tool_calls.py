"""Tools and forms of answers, from OpenAI's client through the server to a model behind it, and back."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from conspectus.model.chat import ToolCall
from conspectus.providers.chat_model import HostedChatModel
from conspectus.testing.chat_models import ScriptedChatModel
from tests.support.web_server import Answer, Request, ScriptedServer
from tests.web.chatting import chats

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
USER: Any = {"role": "user", "content": "How is the weather in Zürich?"}
CALL: Any = {
    "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Zürich"}'}
}  # fmt: skip
CALLING: Any = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Any = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


def stream_answer(deltas: list[dict[str, Any]], reason: str) -> Answer:
    """Chunks of a streamed answer of OpenAI's."""

    def lines() -> Iterator[str]:
        head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "small"}
        for delta in deltas:
            yield json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield json.dumps({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        yield "[DONE]"

    body = "".join(f"data: {line}\n\n" for line in lines())
    return Answer(body.encode(), type="text/event-stream")


def vendor(request: Request) -> Answer:
    """A model that calls the first tool until it has its result."""
    body = json.loads(request.body)
    if body.get("tools") and body["messages"][-1]["role"] != "tool":
        name = body["tools"][0]["function"]["name"]
        start = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}
        rest = [{"index": 0, "function": {"arguments": piece}} for piece in ('{"city":', '"Zürich"}')]
        return stream_answer(
            [{"role": "assistant", "tool_calls": [delta]} for delta in (start, *rest)], "tool_calls"
        )
    content = '{"a":1}' if body.get("response_format") else "It is sunny."
    return stream_answer([{"role": "assistant", "content": content}], "stop")


@asynccontextmanager
async def running_with_client(folder: Path) -> AsyncIterator[tuple[AsyncOpenAI, list[Any]]]:
    """A client of a served store with a real adapter before a model's server, and what that is asked."""
    seen: list[Any] = []

    def answer(request: Request) -> Answer:
        seen.append(json.loads(request.body))
        return vendor(request)

    async with ScriptedServer({"/v1/chat/completions": answer}) as server:
        model: Any = HostedChatModel("openai:small", url=f"{server.base}/v1")
        async with chats(folder, model) as site:
            await site.engine.add("The weather in Zürich is told by a tool.", wait=True)
            async with AsyncOpenAI(base_url=f"{site.url}/api/v1", api_key="none", max_retries=0) as client:
                yield client, seen
        await model.close()


@pytest.fixture(autouse=True)
def key_of_a_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


async def test_a_tool_is_called_and_its_result_answered(tmp_path: Path) -> None:
    async with running_with_client(tmp_path) as (client, seen):
        first = await client.chat.completions.create(model="x", messages=[USER], tools=[WEATHER])
        [choice] = first.choices
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
        [call] = choice.message.tool_calls or []
        assert call.model_dump() == CALL
        talk: Any = [USER, choice.message.model_dump(exclude_none=True), RESULT]
        completion = await client.chat.completions.create(model="x", messages=talk, tools=[WEATHER])
    assert (completion.choices[0].finish_reason, completion.choices[0].message.content) == (
        "stop",
        "It is sunny.",
    )
    assert (completion.choices[0].message.tool_calls, seen[0]["tool_choice"]) == (None, "auto")
    function = seen[0]["tools"][0]["function"]
    assert {name: function[name] for name in WEATHER["function"]} == WEATHER["function"]
    *_, user, calling, result = seen[1]["messages"]
    assert "told by a tool" in user["content"] and USER["content"] in user["content"]
    assert (calling["tool_calls"][0]["id"], result["tool_call_id"], result["content"]) == (
        "c1",
        "c1",
        "sunny",
    )


async def test_a_streamed_call_is_one_chunk(tmp_path: Path) -> None:
    async with running_with_client(tmp_path) as (client, _):
        stream = await client.chat.completions.create(
            model="x", messages=[USER], tools=[WEATHER], stream=True, tool_choice="required"
        )
        chunks = [chunk async for chunk in stream]
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [call.model_dump() for call in calls] == [{"index": 0, **CALL}]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_forms_of_answers_reach_the_model(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    forms: list[Any] = [
        {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        {"type": "json_object"},
        {"type": "text"},
    ]
    async with running_with_client(tmp_path) as (client, seen):
        for form in forms:
            completion = await client.chat.completions.create(
                model="x", messages=[USER], response_format=form
            )
            assert completion.choices[0].message.content == (
                '{"a":1}' if form != forms[2] else "It is sunny."
            )
    formats = [request.get("response_format") for request in seen]
    assert formats[0]["json_schema"]["schema"]["properties"] == schema["properties"]
    assert (formats[0]["json_schema"]["name"], formats[1], formats[2]) == ("n", {"type": "json_object"}, None)


async def test_earlier_calls_are_history_and_the_last_question_is_looked_for(tmp_path: Path) -> None:
    model = ScriptedChatModel(["Fine."])
    talk: Any = [
        USER,
        CALLING,
        RESULT,
        {"role": "assistant", "content": "Sunny."},
        {**USER, "content": "And?"},
    ]
    async with (
        chats(tmp_path, model) as site,
        AsyncOpenAI(base_url=f"{site.url}/api/v1", api_key="none") as client,
    ):
        await client.chat.completions.create(model="x", messages=talk)
    [question] = site.model.asked
    assert [message.role for message in question.messages][1:] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    calling: Any = question.messages[3]
    assert calling.answers == ToolCall("c1", "weather", CALL["function"]["arguments"])


UNKNOWN: Any = {**RESULT, "tool_call_id": "c9"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"messages": [USER, CALLING, UNKNOWN]}, "messages.2.tool_call_id"),
    ({"messages": [RESULT]}, "messages.0.tool_call_id"),
    ({"messages": [USER, CALLING]}, "messages"),
    ({"messages": [CALLING, RESULT]}, "messages"),
    ({"messages": [USER, {**CALLING, "tool_calls": [{"id": "c1"}]}]}, "messages.1.tool_calls.0.function"),
    ({"messages": [USER], "tools": [{"type": "web"}]}, "tools.0.type"),
    ({"messages": [USER], "tools": [{**WEATHER, "function": {"name": "a b"}}]}, "tools.0.function.name"),
    ({"messages": [USER], "tools": [WEATHER] * 129}, "tools"),
    (
        {
            "messages": [USER],
            "tools": [WEATHER],
            "tool_choice": {"type": "function", "function": {"name": "x"}},
        },
        "tool_choice",
    ),
    ({"messages": [USER], "response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"messages": [USER], "response_format": {"type": "yaml"}}, "response_format.type"),
]


async def test_what_is_no_tool_and_no_form_is_refused_by_name(tmp_path: Path) -> None:
    model = ScriptedChatModel(["Fine."])
    async with (
        chats(tmp_path, model) as site,
        AsyncOpenAI(base_url=f"{site.url}/api/v1", api_key="none", max_retries=0) as client,
    ):
        for body, field in REFUSED:
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(**{"model": "x", **body})
            assert caught.value.param == field, body
    assert site.model.asked == []
