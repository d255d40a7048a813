import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    SessionSettings,
    function_tool,
    set_tracing_disabled,
)
from agents.memory import Session
from openai import AsyncOpenAI
from tests.support.web_server import Answer, Request, ScriptedServer

import conspectus
from conspectus import Engine
from conspectus.errors import InvalidInput, TooLarge
from conspectus.integrations.openai_agents import ConspectusSession
from conspectus.model.memory import NewMemory, Scope
from conspectus.testing.embedders import HashedEmbedder

COMPLETIONS = "/v1/chat/completions"
ITEMS: list[Any] = [
    {"role": "user", "content": "Wie ist das Wetter in 東京? 🌦"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 40_000},
    {"type": "function_call", "name": "weather", "arguments": '{"city":"東京"}', "call_id": "c1", "id": "f"},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny\x00\ud800"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
    {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Sunny.", "annotations": [], "logprobs": []},
            {"type": "output_text", "text": "", "annotations": []},
        ],
    },
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:" + "A" * 100_000}]},
    {"role": "user", "content": ""},
    {"role": "user", "content": "long " * 50_000},
    {"role": "developer", "content": [], "nested": {"a": [{"b": [None, 1.5, True]}]}},
]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        yield opened


@pytest.fixture
def untraced() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


async def test_items_come_back_verbatim_in_their_order(engine: Engine) -> None:
    session = ConspectusSession("c", engine, user="ann")
    assert isinstance(session, Session)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.clear_session()
    await session.add_items([])
    assert await engine.collections.list() == []
    await session.add_items(ITEMS[:4])
    await session.add_items(ITEMS[4:])
    assert await session.get_items() == ITEMS
    roles = [memory.document.role for memory in (await engine.memory.list(scope=Scope("ann"))).memories]
    assert roles[:6] == ["user", "assistant", "assistant", "tool", "tool", "assistant"]


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (-3, 0), (1, 1), (4, 4), (10, 10), (99, 10)])
async def test_a_limit_gives_the_last_items_in_order(engine: Engine, limit: int, expected: int) -> None:
    session = ConspectusSession("c", engine)
    await session.add_items(ITEMS)
    assert await session.get_items(limit) == ITEMS[len(ITEMS) - expected :]


async def test_the_limit_of_the_settings_holds_where_none_is_given(engine: Engine) -> None:
    session = ConspectusSession("c", engine, session_settings=SessionSettings(limit=2))
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS[-2:]
    assert await session.get_items(3) == ITEMS[-3:]


async def test_settings_may_be_a_dictionary(engine: Engine) -> None:
    session = ConspectusSession("c", engine, session_settings={"limit": 2})
    await session.add_items(ITEMS)
    assert (session.session_settings, await session.get_items()) == (SessionSettings(limit=2), ITEMS[-2:])
    with pytest.raises(TypeError, match="limt"):
        ConspectusSession("c", engine, session_settings={"limt": 2})


async def test_a_closed_session_is_named(tmp_path: Path, engine: Engine) -> None:
    for engine_or_path in (engine, tmp_path / "own"):
        session = ConspectusSession("c", engine_or_path)
        session.close()
        session.close()
        for call in (
            session.get_items,
            session.pop_item,
            session.clear_session,
            lambda s=session: s.add_items([]),
        ):
            with pytest.raises(RuntimeError, match="closed"):
                await call()
    assert await engine.collections.list() == []


async def test_more_items_than_a_page(engine: Engine) -> None:
    session = ConspectusSession("c", engine)
    items: list[Any] = [{"role": "user", "content": f"{number}"} for number in range(1_200)]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(1_100) == items[100:]
    await session.clear_session()
    assert await session.get_items() == []


async def test_popping_takes_the_last_and_each_only_once(engine: Engine) -> None:
    session, other = ConspectusSession("c", engine), ConspectusSession("c", engine)
    await session.add_items(ITEMS[:6])
    assert await session.pop_item() == ITEMS[5]
    popped = await asyncio.gather(*(shared.pop_item() for shared in (session, other) * 4))
    assert sorted(map(json.dumps, filter(None, popped))) == sorted(map(json.dumps, ITEMS[:5]))
    assert await session.get_items() == []


async def test_sessions_users_and_agents_are_apart(engine: Engine) -> None:
    keys = [("c", "ann", "x"), ("c", "ann", "y"), ("d", "ann", "x"), ("c", "bob", "x"), ("c", None, "x")]
    keys += [("c", "ann/x", None), ("c", "%", "x")]
    sessions = {key: ConspectusSession(key[0], engine, user=key[1], agent=key[2]) for key in keys}
    for key, session in sessions.items():
        await session.add_items([{"role": "user", "content": str(key)}])
    await sessions["c", "ann", "x"].clear_session()
    for key, session in sessions.items():
        expected = [] if key == ("c", "ann", "x") else [{"role": "user", "content": str(key)}]
        assert await session.get_items() == expected
    assert await sessions["c", "bob", "x"].pop_item() is not None
    assert await sessions["c", "ann", "y"].get_items() != []


async def test_a_session_has_a_name(engine: Engine) -> None:
    await ConspectusSession("c", engine).add_items(ITEMS[:1])
    with pytest.raises(InvalidInput, match="conversation"):
        ConspectusSession("", engine)
    nameless = ConspectusSession(cast(Any, None), engine)
    for call in (nameless.get_items(), nameless.pop_item(), nameless.clear_session()):
        with pytest.raises(InvalidInput, match="conversation"):
            await call
    assert await ConspectusSession("c", engine).get_items() == ITEMS[:1]


async def test_what_comes_at_once_is_all_there_and_batches_stay_whole(engine: Engine) -> None:
    sessions = [ConspectusSession("c", engine) for _ in range(10)]
    batches: list[list[Any]] = [
        [{"role": "user", "content": f"{n}.{number}"} for number in range(3)] for n in range(10)
    ]
    await asyncio.gather(
        *(session.add_items(batch) for session, batch in zip(sessions, batches, strict=True))
    )
    items = await sessions[0].get_items()
    assert sorted((items[start : start + 3] for start in range(0, 30, 3)), key=str) == batches


async def test_a_batch_that_cannot_be_stored_is_not_stored_in_part(engine: Engine) -> None:
    session = ConspectusSession("c", engine)
    unfit: Any = {"role": "user", "content": object()}
    with pytest.raises(InvalidInput, match="JSON"):
        await session.add_items([ITEMS[0], unfit])
    assert await session.get_items() == []
    with pytest.raises(TooLarge):
        await session.add_items([{"role": "user", "content": "x" * 50_000_001}])
    assert await session.get_items() == []


async def test_it_survives_a_restart_and_what_was_said_is_recalled(tmp_path: Path) -> None:
    first = ConspectusSession("c", tmp_path, user="ann")
    await first.add_items(ITEMS)
    first.close()
    async with conspectus.open(tmp_path) as engine:
        again = ConspectusSession("c", engine, user="ann")
        assert await again.get_items() == ITEMS
        retrieval = await engine.memory.recall("weather 東京", scope=Scope("ann"))
        assert any("weather" in hit.memory.text for hit in retrieval.memories)
        assert (await engine.memory.recall("weather 東京", scope=Scope("bob"))).memories == ()


async def test_turns_that_were_remembered_otherwise_are_messages(engine: Engine) -> None:
    session = ConspectusSession("c", engine, user="ann")
    scope = Scope("ann", None, "c")
    await engine.memory.add([NewMemory("Hi"), NewMemory("Hello", role="assistant")], scope=scope)
    await engine.memory.add(NewMemory("Always be brief.", kind="note"), scope=scope)
    expected = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert await session.get_items() == expected
    await session.clear_session()
    assert [memory.text for memory in (await engine.memory.list(scope=scope)).memories] == [
        "Always be brief."
    ]


def _answer(request: Request) -> Answer:
    """A model that looks the weather up, then says it; asked again, it says how much it was told."""
    messages = json.loads(request.body)["messages"]
    last = messages[-1]
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bern"}'}}
    message: dict[str, Any] = {"role": "assistant", "content": f"I was told {len(messages)} messages."}
    if last["role"] == "tool":
        message["content"] = f"It is {last['content']}."
    elif "weather" in str(last["content"]):
        message |= {"content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    completion = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return Answer(json.dumps({**completion, "choices": [choice]}).encode(), type="application/json")


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@pytest.mark.usefixtures("untraced")
async def test_the_runner_goes_on_where_another_process_left_off(tmp_path: Path) -> None:
    async with ScriptedServer({COMPLETIONS: _answer}) as server:
        client = AsyncOpenAI(base_url=f"{server.base}/v1", api_key="none", max_retries=0)
        model = OpenAIChatCompletionsModel(model="m", openai_client=client)
        agent = Agent(name="helper", instructions="Help.", model=model, tools=[weather])
        for question, answer in [
            ("What is the weather?", "It is sunny in Bern."),
            ("And now?", "I was told 6 messages."),
        ]:
            session = ConspectusSession("c", tmp_path, user="ann")
            result_of_run = await Runner.run(agent, question, session=session)
            assert result_of_run.final_output == answer
            session.close()
        await client.close()
        sent = json.loads(server.requests[-1].body)["messages"]
        assert [message["role"] for message in sent] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        assert sent[2]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city":"Bern"}'}


@pytest.mark.usefixtures("untraced")
async def test_the_runner_keeps_to_a_limit(engine: Engine) -> None:
    session = ConspectusSession("c", engine)
    await session.add_items([{"role": "user", "content": f"{number}"} for number in range(50)])
    async with ScriptedServer({COMPLETIONS: _answer}) as server:
        client = AsyncOpenAI(base_url=f"{server.base}/v1", api_key="none", max_retries=0)
        agent = Agent(name="a", model=OpenAIChatCompletionsModel(model="m", openai_client=client))
        few = RunConfig(session_settings=SessionSettings(limit=4))
        result_of_run = await Runner.run(agent, "Hello?", session=session, run_config=few)
        assert result_of_run.final_output == "I was told 5 messages."
        await client.close()
    assert len(await session.get_items()) == 52
