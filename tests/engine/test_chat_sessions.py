"""Sessions of chats: their prompts begin alike, and vendors that want it are told up to where."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.support.chat_protocols import anthropic, bedrock
from tests.support.web_server import ScriptedServer

import conspectus
from conspectus import Engine, NewDocument
from conspectus.engine import chat
from conspectus.errors import InvalidInput
from conspectus.model.access import Principal
from conspectus.model.chat import CachedMessage, ChatRequest, Sources
from conspectus.model.results import Message
from conspectus.providers.chat_model import HostedChatModel
from conspectus.testing.chat_model_contract import answer
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.text.prompt_escaping import USER_MESSAGE

HERON = NewDocument("The heron stood in the reeds.", "Birds", key="heron")
OTTER = NewDocument("The otter swims in the river at night.", "Otters", key="otter")
PROMPT = "<retrieved>\n<passage>one</passage>\n<passage>two</passage>\n</retrieved>\n\nWhere?"


@pytest.fixture
def model() -> ScriptedChatModel:
    return ScriptedChatModel()


@pytest.fixture
async def engine(tmp_path: Path, model: ScriptedChatModel) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder(), chat_model=model) as opened:
        yield opened


async def ask_for_sources(
    engine: Engine, text: str, history: Sequence[Message] = (), session: str | None = "s"
) -> Sources:
    request = ChatRequest(text, history=tuple(history), session=session, min_similarity=None)
    sources, *_ = [event async for event in engine.chat.stream(request)]
    assert isinstance(sources, Sources)
    return sources


async def test_a_prompt_begins_with_the_prompt_before(engine: Engine, model: ScriptedChatModel) -> None:
    await engine.add(HERON, wait=True)
    first = await ask_for_sources(engine, "where did the heron stand?")
    await engine.add(OTTER, wait=True)
    talk = [Message("user", "where did the heron stand?"), Message("assistant", "In the reeds [1].")]
    second = await ask_for_sources(engine, "where does the otter swim?", talk)
    (_, before), (_, now, reply, last) = [call.messages for call in model.asked]
    assert isinstance(before, CachedMessage)
    assert isinstance(now, CachedMessage)
    stable, end = now.cached
    assert before.cached == (stable,)
    assert now.content[:stable] == before.content[:stable]
    assert "otter swims" in now.content[stable:end]
    assert now.content.endswith(f"{USER_MESSAGE}\nwhere did the heron stand?")
    assert (reply, last) == (talk[1], Message("user", "where does the otter swim?"))
    assert (first.stable_tokens, second.stable_tokens > 0) == (0, True)
    assert [source.key for source in second.sources] == ["heron", "otter"]


async def test_what_was_deleted_is_not_kept(engine: Engine, model: ScriptedChatModel) -> None:
    stored = await engine.add([HERON, OTTER], wait=True)
    await ask_for_sources(engine, "where did the heron stand?")
    await engine.documents.delete(stored[0].id)
    sources = await ask_for_sources(engine, "where did the heron stand?")
    assert "reeds" not in "".join(message.content for message in model.asked[-1].messages)
    assert [source.key for source in sources.sources] == ["otter"]


async def test_sessions_are_of_one_user(engine: Engine, model: ScriptedChatModel) -> None:
    await engine.keys.create_first()
    await engine.add(HERON, wait=True)
    await engine.people.create_user("ann")
    ann = engine.as_person(await engine.keys.authenticate((await engine.keys.create("ann")).secret))
    await ask_for_sources(engine, "where did the heron stand?")
    assert (await ask_for_sources(ann, "where did the heron stand?")).sources == ()
    await engine.access.grant("default", Principal("user", "ann"), "viewer")
    seen = await ask_for_sources(ann, "where did the heron stand?")
    assert [source.key for source in seen.sources] == ["heron"]
    await engine.access.revoke("default", Principal("user", "ann"))
    assert (await ask_for_sources(ann, "where did the heron stand?")).sources == ()


async def test_without_a_session_nothing_is_marked(engine: Engine, model: ScriptedChatModel) -> None:
    await engine.add(HERON, wait=True)
    talk = [Message("user", "hello"), Message("assistant", "Hello.")]
    await ask_for_sources(engine, "where did the heron stand?", talk, session=None)
    *before, last = model.asked[-1].messages
    assert before[1:] == talk
    assert type(last) is Message
    assert "reeds" in last.content


async def test_the_oldest_sessions_are_forgotten(engine: Engine, model: ScriptedChatModel) -> None:
    await engine.add(HERON, wait=True)
    for number in range(chat.MAX_SESSIONS):
        engine.chat._context.core.chat_states[engine.chat._person.id, str(number)] = ""
    await ask_for_sources(engine, "where did the heron stand?")
    states = engine.chat._context.core.chat_states
    assert [name for _, name in states][:: chat.MAX_SESSIONS - 1] == ["1", "s"]
    with pytest.raises(InvalidInput, match="session"):
        await ask_for_sources(engine, "hello", session="x" * 2_000)


VENDORS = [
    ("anthropic:claude-haiku-4-5", "/v1/messages", anthropic),
    ("bedrock:anthropic.claude-3-7-sonnet", "/model/anthropic.claude-3-7-sonnet/converse-stream", bedrock),
]


@pytest.mark.parametrize(("setting", "path", "respond"), VENDORS, ids=[vendor[0] for vendor in VENDORS])
async def test_vendors_with_explicit_caches(setting: str, path: str, respond, monkeypatch) -> None:
    ends = tuple(PROMPT.index(f"{word}</passage>") + len(f"{word}</passage>") for word in ("one", "two"))
    async with ScriptedServer({path: respond(["Here"], words=9)}) as server:
        for name in ("ANTHROPIC_BASE_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
            monkeypatch.setenv(name, server.base)
        for name in ("ANTHROPIC_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "sk-secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        model = HostedChatModel(setting, seconds=20)
        await answer(model, [CachedMessage("user", PROMPT, ends)])
        blocks = json.loads(server.requests[0].body)["messages"][0]["content"]
        await model.close()
    assert "".join(block.get("text", "") for block in blocks) == PROMPT
    marked = [
        number for number, block in enumerate(blocks) if "cache_control" in block or "cachePoint" in block
    ]
    assert len(marked) == len(ends)
    assert blocks[0]["text"].endswith("one</passage>")
