"""The proxy for clients of OpenAI: one budget for all that is sent, and the upstream's own words."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from conspectus.errors import ChatError
from conspectus.providers.chat_model import HostedChatModel
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.web.logs import API
from tests.support.misbehaviour import service_faults
from tests.support.web_server import Answer, Request, ScriptedServer
from tests.waiting import until
from tests.web.chatting import chats
from tests.web.test_tool_calls import CALL, CALLING, RESULT, USER, stream_answer

WINDOW = 8_192
THINKING = [{"content": "<thi"}, {"content": "nk>hm</think>\n"}, {"content": "Paris"}]


def build_tool(number: int, words: int) -> Any:
    field = {"type": "string", "description": "one of six words here"}
    properties = {f"field{number_of_field}": field for number_of_field in range(words)}
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": f"tool{number}", "parameters": parameters}}


def form(characters: int) -> Any:
    schema = {"type": "object", "description": "word " * (characters // 5)}
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


@asynccontextmanager
async def running_proxy(
    folder: Path, upstream: Answer | Callable[[Request], Answer], *, seconds: float = 5.0
) -> AsyncIterator[tuple[AsyncOpenAI, list[Any]]]:
    """A client of a served store before an upstream, and the requests that reach the upstream."""
    seen: list[Any] = []

    def answer(request: Request) -> Answer:
        seen.append(json.loads(request.body))
        return upstream(request) if callable(upstream) else upstream

    async with ScriptedServer({"/v1/chat/completions": answer}) as server:
        model: Any = HostedChatModel("openai:small", url=f"{server.base}/v1", window=WINDOW, seconds=seconds)
        async with (
            chats(folder, model) as site,
            AsyncOpenAI(base_url=f"{site.url}/api/v1", api_key="none", max_retries=0) as client,
        ):
            yield client, seen
        await model.close()


@pytest.fixture(autouse=True)
def key_of_a_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.mark.parametrize(
    "options",
    [{"tools": [build_tool(number, 40) for number in range(60)]}, {"response_format": form(60_000)}],
    ids=["tools", "schema"],
)
async def test_what_does_not_fit_beside_the_answer_is_refused(tmp_path: Path, options: Any) -> None:
    async with running_proxy(tmp_path, stream_answer([{"content": "Fine."}], "stop")) as (client, seen):
        with pytest.raises(openai.APIStatusError) as refused:
            await client.chat.completions.create(model="x", messages=[USER], **options)
    assert (refused.value.status_code, seen) == (400, [])
    assert "tools" in str(refused.value)


async def test_tools_take_the_place_of_passages_and_history(tmp_path: Path) -> None:
    tools = [build_tool(number, 12) for number in range(20)]
    talk = [USER, {"role": "assistant", "content": "word " * 500}] * 9
    async with chats(tmp_path, ScriptedChatModel(["Fine."], window=WINDOW)) as site:
        count = site.engine.tokenizer()
        for number in range(20):
            await site.engine.add(f"The weather in Zürich is mild {number}. " + "Rain falls. " * 60)
        async with AsyncOpenAI(base_url=f"{site.url}/api/v1", api_key="none") as client:
            messages: Any = [*talk, USER]
            options: Any = {"tools": tools, "max_tokens": 500}
            body: Any = {"conspectus": {"context": 4_000}}
            await client.chat.completions.create(model="x", messages=messages, extra_body=body, **options)
        [question] = site.model.asked
        schemas = sum(count(json.dumps(schema_of_tool["function"])) for schema_of_tool in tools)
        prompt = sum(count(message.content) + 4 for message in question.messages)
        assert schemas > WINDOW / 4
        assert WINDOW / 2 < prompt + schemas + 500 <= WINDOW


@pytest.mark.parametrize(
    ("reason", "deltas", "expected"),
    [
        ("stop", [{"content": "Paris"}], ("stop", "Paris")),
        ("length", [{"content": "Par"}], ("length", "Par")),
        ("content_filter", [{"content": "Par"}], ("content_filter", "Par")),
        (
            "stop",
            [{"content": "<thi"}, {"content": "nk>hm</think>\n"}, {"content": "Paris"}],
            ("stop", "Paris"),
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_end_is_the_upstreams(
    tmp_path: Path, reason: str, deltas: Any, expected: tuple[str, str], stream: bool
) -> None:
    async with running_proxy(tmp_path, stream_answer(deltas, reason)) as (client, _):
        if stream:
            pieces = await client.chat.completions.create(model="x", messages=[USER], stream=True)
            choices = [choice async for piece in pieces for choice in piece.choices]
            text = "".join(choice.delta.content or "" for choice in choices)
            assert (choices[-1].finish_reason, text) == expected
        else:
            answer = await client.chat.completions.create(model="x", messages=[USER])
            assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == expected


async def test_broken_arguments_are_the_same_string(tmp_path: Path) -> None:
    function = {"name": "tool0", "arguments": '{"h": 7'}
    calling = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    async with running_proxy(tmp_path, stream_answer([calling], "tool_calls")) as (client, _):
        answer = await client.chat.completions.create(model="x", messages=[USER], tools=[build_tool(0, 1)])
    [call] = answer.choices[0].message.tool_calls or []
    assert (call.function.arguments, answer.choices[0].finish_reason) == ('{"h": 7', "tool_calls")


async def test_an_assistant_without_words_says_none(tmp_path: Path) -> None:
    async with running_proxy(tmp_path, stream_answer([{"content": "Sunny."}], "stop")) as (client, seen):
        talk: Any = [USER, CALLING, RESULT, {"role": "assistant", "content": "It is"}]
        await client.chat.completions.create(model="x", messages=talk)
    calling = next(message for message in seen[0]["messages"] if message.get("tool_calls"))
    assert calling.get("content") in (None, "")
    assert calling["tool_calls"][0]["function"]["arguments"] == CALL["function"]["arguments"]
    assert seen[0]["messages"][-1]["content"] == "It is"


async def test_a_client_that_left_is_logged_as_such(tmp_path: Path) -> None:
    model = ScriptedChatModel(["Fine."], hangs=True)
    body = {"model": "x", "messages": [USER]}
    async with chats(tmp_path, model) as site:
        async with httpx.AsyncClient(timeout=60) as client:
            request = asyncio.create_task(client.post(f"{site.url}{API}/chat/completions", json=body))
            await model.hanging.wait()
            request.cancel()
            await asyncio.wait({request})
        await until(lambda: site.requests)
        assert [line["status"] for line in site.requests] == [499]


async def test_no_misbehaviour_of_the_upstream_is_an_answer(tmp_path: Path) -> None:
    plan: list[Answer] = []
    codes = {ChatError.code, *(kind.code for kind in ChatError.__subclasses__())}
    async with running_proxy(tmp_path, lambda request: plan[0], seconds=0.5) as (client, _):
        for name, fault in service_faults().items():
            plan[:] = [fault]
            with pytest.raises(openai.APIStatusError) as refused:
                answer = await client.chat.completions.create(model="x", messages=[USER])
                pytest.fail(f"{name}: {answer}")
            assert refused.value.code in codes, name
