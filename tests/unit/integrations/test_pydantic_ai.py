"""The tools and the history for Pydantic AI, in agents whose model is a function."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.support.served import served

import conspectus
from conspectus import Engine, Eq, NewDocument, Settings
from conspectus.errors import InvalidInput, NotFound
from conspectus.integrations.pydantic_ai import ConspectusHistory, ConspectusToolset
from conspectus.model.memory import NewMemory, Scope
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
TALK: list[ModelMessage] = [
    ModelRequest([SystemPromptPart("Be brief, whatever you are asked."), UserPromptPart("Zürich? 🏔")]),
    ModelResponse([ThinkingPart("hm", signature="s"), ToolCallPart("find", {"a": [1, None]}, "c1")]),
    ModelRequest([ToolReturnPart("find", {"lat": 47.37, "note": "\x00"}, "c1")]),
    ModelResponse([TextPart("In Switzerland."), TextPart("")], model_name="m"),
    ModelRequest([UserPromptPart(["Look:", BinaryContent(b"\x00\x01", media_type="application/pdf")])]),
    ModelRequest([UserPromptPart("long " * 50_000)]),
]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        yield opened


def model_that_calls(tool: str, arguments: dict[str, Any]) -> FunctionModel:
    """A model that calls a tool once, and answers with what it returned."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [
            part
            for message in messages[-1:]
            for part in message.parts
            if part.part_kind in {"tool-return", "retry-prompt"}
        ]
        if returned:
            return ModelResponse([TextPart(str(returned[-1].content))])
        return ModelResponse([ToolCallPart(tool, arguments)])

    return FunctionModel(answer)


async def call_tool(toolset: ConspectusToolset, tool: str, **arguments: Any) -> str:
    agent = Agent(model_that_calls(tool, arguments), toolsets=[toolset])
    return (await agent.run("Go on.")).output


async def test_messages_come_back_as_they_were_given(engine: Engine) -> None:
    history = ConspectusHistory("c", engine, user="ann")
    assert await history.messages() == []
    await history.add([])
    assert await engine.collections.list() == []
    await history.add(TALK[:2])
    await history.add(TALK[2:])
    assert await history.messages() == TALK
    assert await history.messages(2) == TALK[-2:]
    stored = (await engine.memory.list(scope=Scope("ann"))).memories
    assert [chunk.document.role for chunk in stored] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "user",
    ]
    assert (stored[0].text, stored[3].text) == ("Zürich? 🏔", "In Switzerland.")
    await history.clear()
    assert await history.messages() == []


async def test_an_agent_goes_on_in_another_process(tmp_path: Path) -> None:
    def count(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(f"{len(messages)} messages")])

    agent = Agent(FunctionModel(count), system_prompt="Count.")
    for expected in ("1 messages", "3 messages"):
        history = ConspectusHistory("c", tmp_path, user="ann")
        result = await agent.run("How many?", message_history=await history.messages())
        assert result.output == expected
        await history.add(result.new_messages())
        history.close()


async def test_what_was_remembered_in_another_way_is_a_plain_message(engine: Engine) -> None:
    scope = Scope("ann", None, "c")
    await engine.memory.add([NewMemory("Hi", role="user"), NewMemory("Hello", role="assistant")], scope=scope)
    first, second = await ConspectusHistory("c", engine, user="ann").messages()
    assert isinstance(first, ModelRequest) and first.parts[0].content == "Hi"
    assert isinstance(second, ModelResponse) and second.parts == [TextPart("Hello")]


async def test_what_is_not_json_is_refused(engine: Engine) -> None:
    history = ConspectusHistory("c", engine)
    with pytest.raises(InvalidInput, match="JSON"):
        await history.add([TALK[0], ModelRequest([ToolReturnPart("find", object(), "c1")])])
    assert await history.messages() == []


async def test_tools_find_documents_within_the_filter(engine: Engine) -> None:
    rooms = [NewDocument(f"Meeting {n} is in room {n}.", metadata={"n": n}) for n in range(9)]
    await engine.add(rooms, wait=True)
    assert "room 7" in await call_tool(ConspectusToolset(engine), "context", query="Where is meeting 7?")
    narrow = ConspectusToolset(engine, filter=Eq(("n",), 4), max_tokens=100)
    answer = await call_tool(narrow, "context", query="Where is meeting 7?")
    assert "room 4" in answer and "room 7" not in answer
    nothing = ConspectusToolset(engine, filter=Eq(("n",), 99))
    assert await call_tool(nothing, "context", query="meeting") == "Nothing was found."
    with pytest.raises(NotFound):
        await call_tool(ConspectusToolset(engine, collection="nowhere"), "context", query="meeting")


async def test_memory_is_that_of_the_scope(engine: Engine) -> None:
    assert list(ConspectusToolset(engine).tools) == ["context"]
    ann, bob = (ConspectusToolset(engine, scope=Scope(user)) for user in ("ann", "bob"))
    assert list(ann.tools) == ["context", "recall", "remember"]
    assert await call_tool(ann, "recall", query="coffee") == "Nothing was found."
    assert await call_tool(ann, "remember", text="Ann likes her coffee black.") == "Remembered."
    assert "black" in await call_tool(ann, "recall", query="How does Ann like her coffee?")
    assert await call_tool(bob, "recall", query="How does Ann like her coffee?") == "Nothing was found."


async def test_a_wrong_argument_is_said_to_the_model(engine: Engine) -> None:
    toolset = ConspectusToolset(engine, scope=Scope("ann"))
    assert "text" in await call_tool(toolset, "remember", text="")


async def test_a_server_gives_the_same(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as local:
        await local.add("The meeting is in room 7.", wait=True)
        owner = await local.keys.create_first()
        assert owner is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=owner.secret, settings=SETTINGS) as remote,
        ):
            here, there = ConspectusToolset(local), ConspectusToolset(remote)
            answer = await call_tool(there, "context", query="meeting")
            assert answer == await call_tool(here, "context", query="meeting")
            assert "room 7" in answer
            await ConspectusHistory("c", remote, user="ann").add(TALK)
            assert await ConspectusHistory("c", local, user="ann").messages() == TALK
