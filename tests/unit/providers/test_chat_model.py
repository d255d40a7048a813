"""The chat model's adapter: what a vendor does wrong, where keys come from, what is noted and imported."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest
from tests.support.chat_protocols import anthropic, bedrock, google
from tests.support.chat_server import ChatServer, refusing, stumbling
from tests.support.web_server import Answer, ScriptedServer

import conspectus
from conspectus import bootstrap
from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatError,
    ChatFiltered,
    ChatModelUnknown,
    ChatRateLimited,
    ChatTimedOut,
    ChatTooLong,
    ChatUnreachable,
    InvalidInput,
)
from conspectus.model.chat import Delta, Usage
from conspectus.model.jobs import EmbeddingRequest
from conspectus.model.results import Message
from conspectus.providers.chat_model import HostedChatModel
from conspectus.settings import Settings
from conspectus.testing.chat_model_contract import ASK, TALK, answer, text
from conspectus.testing.chat_models import ScriptedChatModel

KEY = "sk-very-secret"
VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
VARIABLES += ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY", "OLLAMA_BASE_URL")
VARIABLES += ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")


@pytest.fixture(autouse=True)
def no_vendor(monkeypatch, tmp_path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
async def server(monkeypatch) -> AsyncIterator[ChatServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with ChatServer(key=KEY, model="small", window=200) as running:
        yield running


@pytest.fixture
def notes() -> list[EmbeddingRequest]:
    return []


@pytest.fixture
async def model(server: ChatServer, notes: list[EmbeddingRequest]) -> AsyncIterator[HostedChatModel]:
    hosted = HostedChatModel("openai:small", url=server.url, seconds=30, note=notes.append)
    yield hosted
    await hosted.close()


REFUSALS = [
    (refusing(401, "invalid_api_key"), ChatAuthFailed),
    (refusing(403), ChatAuthFailed),
    (refusing(402), ChatAuthFailed),
    (refusing(429, "insufficient_quota"), ChatAuthFailed),
    (refusing(404, "model_not_found"), ChatModelUnknown),
    (refusing(404), ChatModelUnknown),
    (refusing(429), ChatRateLimited),
    (refusing(529), ChatRateLimited),
    (refusing(400, "context_length_exceeded"), ChatTooLong),
    (refusing(400, "content_filter"), ChatFiltered),
    (refusing(400), ChatError),
    (refusing(422), ChatError),
    (refusing(500), ChatUnreachable),
    (refusing(502), ChatUnreachable),
    (refusing(503), ChatUnreachable),
]


@pytest.mark.parametrize(("fault", "kind"), REFUSALS, ids=lambda case: getattr(case, "code", ""))
async def test_a_refusal_is_told_from_others_and_asked_for_once(server, model, fault, kind) -> None:
    server.plan.append(fault)
    with pytest.raises(ChatError) as refused:
        await answer(model)
    assert (type(refused.value), refused.value.status, len(server.calls)) == (kind, fault.status, 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_no_word_of_the_vendors_is_repeated(server, model, status: int) -> None:
    server.plan.append(refusing(status, message=f"key {KEY}, you said one two three, to http://u:p@inner"))
    with pytest.raises(ChatError) as refused:
        await answer(model)
    error_text = str(refused.value) + refused.value.user_message
    assert not any(word in error_text for word in (KEY, "two", "http://", server.url))


@pytest.mark.parametrize(("seconds", "understood"), [(None, None), (0, 0.0), (7, 7.0), (10**9, 86_400.0)])
async def test_how_long_a_busy_vendor_wants_to_be_left_alone(server, model, seconds, understood) -> None:
    server.plan.append(refusing(429, retry_after=seconds))
    with pytest.raises(ChatRateLimited) as refused:
        await answer(model)
    assert refused.value.retry_after == understood


async def test_what_an_honest_server_refuses(server: ChatServer, model: HostedChatModel, monkeypatch) -> None:
    with pytest.raises(ChatTooLong):
        await answer(model, max_tokens=198)
    assert text(await answer(model, max_tokens=197)) == "Hello world"
    other = HostedChatModel("openai:large", url=server.url)
    with pytest.raises(ChatModelUnknown):
        await answer(other)
    astray = HostedChatModel("openai:small", url=server.url + "/deeper")
    with pytest.raises(ChatModelUnknown):
        await answer(astray)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    stranger = HostedChatModel("openai:small", url=server.url)
    with pytest.raises(ChatAuthFailed):
        await answer(stranger)
    for client in (other, astray, stranger):
        await client.close()


TROUBLES = [
    ("cut_quietly", ChatUnreachable),
    ("garbage", ChatBadAnswer),
    ("filtered", ChatFiltered),
    ("error", ChatUnreachable),
]


@pytest.mark.parametrize(("trouble", "kind"), TROUBLES)
async def test_trouble_after_the_first_piece_ends_the_answer(server, model, trouble: str, kind) -> None:
    server.plan.append(stumbling(trouble, after=1))
    pieces = []
    with pytest.raises(kind):
        async for piece in model.stream(ASK, max_tokens=9):
            pieces.append(piece)
    assert (pieces, len(server.calls)) == ([Delta("Hello")], 1)


@pytest.mark.parametrize("trouble", ["garbage", "not_json", "empty", "filtered"])
async def test_an_answer_without_anything_in_it_is_no_answer(server, model, trouble: str) -> None:
    server.plan.append(stumbling(trouble))
    with pytest.raises(ChatBadAnswer):
        await answer(model)
    assert len(server.calls) == 1


@pytest.mark.parametrize("trouble", ["dropped", "cut", "cut_quietly"])
async def test_a_lost_connection_is_made_once_more_while_nothing_was_said(
    server, model, notes, trouble: str
) -> None:
    server.plan.append(stumbling(trouble))
    assert text(await answer(model)) == "Hello world"
    assert [note.error for note in notes] == ["LLM_CONNECTION_ERROR", None]
    server.plan.extend([stumbling(trouble), stumbling(trouble)])
    with pytest.raises(ChatUnreachable):
        await answer(model)
    assert len(server.calls) == 4


@pytest.mark.parametrize("after", [0, 1])
async def test_silence_is_waited_out_for_so_long(server: ChatServer, after: int) -> None:
    # Shorter, and on a busy machine the model leaves before the server has read what it asks.
    model = HostedChatModel("openai:small", url=server.url, seconds=2)
    assert text(await answer(model)) == "Hello world"
    server.plan.append(stumbling("silent", after=after))
    with pytest.raises(ChatTimedOut, match="no data for 2 s"):
        await answer(model)
    async with asyncio.timeout(30):
        await server.leaving.wait()
    await model.close()


async def test_a_model_that_was_closed_connects_again(server: ChatServer, model: HostedChatModel) -> None:
    assert text(await answer(model)) == "Hello world"
    await model.close()
    assert text(await answer(model)) == "Hello world"


@pytest.mark.slow
async def test_hundreds_of_answers_at_once(server: ChatServer, model: HostedChatModel) -> None:
    server.says = lambda call: [f"{call.body['messages'][0]['content']} "] * 5
    conversations = [[Message("user", f"number{number}")] for number in range(200)]
    answers = await asyncio.gather(*(answer(model, messages) for messages in conversations))
    assert [text(pieces).split() for pieces in answers] == [
        [conversation[0].content] * 5 for conversation in conversations
    ]
    assert (server.open, server.left) == (0, 0)


async def test_nobody_is_there() -> None:
    model = HostedChatModel("openai:small", url="http://127.0.0.1:1/v1")
    with pytest.raises(ChatUnreachable) as refused:
        await answer(model)
    assert refused.value.status is None
    await model.close()


async def test_thoughts_are_no_part_of_the_answer(server, model) -> None:
    server.says = ["<think>", "hm, ", "so", "</think>", "Paris"]
    assert text(await answer(model)).strip() == "Paris"
    server.says = ["<think>", "and on and on"]
    with pytest.raises(ChatBadAnswer, match="no answer"):
        await answer(model)


async def test_every_request_is_noted_without_its_words(server, model, notes) -> None:
    await answer(model, TALK)
    server.tells = False
    await answer(model, TALK)
    server.plan.append(refusing(503))
    with pytest.raises(ChatUnreachable):
        await answer(model)
    async with aclosing(model.stream(ASK, max_tokens=9)) as pieces:
        await anext(pieces)
    rows = [(note.status, note.error, note.inputs, note.tokens) for note in notes]
    assert rows[0] == ("success", None, 4, 11)
    assert [row[:3] for row in rows[1:]] == [
        ("success", None, 4),
        ("error", "HTTP 503", 1),
        ("error", "cancelled", 1),
    ]
    assert {(note.kind, note.model) for note in notes} == {("chat", "openai:small")}
    assert all(note.latency > 0 for note in notes)
    assert not any(word in repr(notes) for word in ("wrote", "Hello", KEY))


@pytest.mark.parametrize("name", ["", "openai", "openai:", ":small", "nobody:small", "small", "none:x"])
def test_a_setting_of_another_form_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="vendor:model"):
        HostedChatModel(name)


@pytest.mark.parametrize("url", ["localhost:11434", "ftp://host/v1", "/v1"])
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="chat_base_url"):
        HostedChatModel("openai:small", url=url)


@pytest.mark.parametrize(
    ("setting", "missing"),
    [
        ("openai:small", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("bedrock:us.amazon.nova-lite-v1:0", "region"),
    ],
)
async def test_a_missing_key_is_told_when_the_model_is_first_asked(setting: str, missing: str) -> None:
    model = HostedChatModel(setting)
    with pytest.raises(ChatAuthFailed, match=missing):
        await answer(model)
    await model.close()


async def test_without_credentials_bedrock_is_not_asked(monkeypatch, tmp_path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    model = HostedChatModel("bedrock:nova")
    with pytest.raises(ChatAuthFailed, match="no credentials"):
        await answer(model)
    await model.close()


async def test_without_a_key_another_server_is_asked_all_the_same(server: ChatServer, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with ChatServer(key="none") as open_server:
        model = HostedChatModel("openai:anything", url=open_server.url)
        assert text(await answer(model)) == "Hello world"
        await model.close()


async def test_ollama_is_asked_where_its_variable_says(monkeypatch) -> None:
    async with ChatServer(model="llama3.2:1b") as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        model = HostedChatModel("ollama:llama3.2:1b")
        assert await answer(model, max_tokens=50) == [Delta("Hello"), Delta(" world"), Usage(3, 2)]
        assert server.calls[0].body["max_tokens"] == 50
        assert KEY not in repr(server.calls)
        await model.close()


async def test_openai_is_asked_where_its_variable_says(server: ChatServer, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    model = HostedChatModel("openai:small")
    assert await answer(model, max_tokens=40) == [Delta("Hello"), Delta(" world"), Usage(3, 2)]
    assert server.calls[0].body["max_completion_tokens"] == 40
    await model.close()


OTHERS = [
    ("anthropic:claude-haiku-4-5", "/v1/messages", anthropic, "refusal"),
    ("google:gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", google, "SAFETY"),
    (
        "bedrock:amazon.nova-lite-v1",
        "/model/amazon.nova-lite-v1/converse-stream",
        bedrock,
        "guardrail_intervened",
    ),
]


@pytest.mark.parametrize(
    ("setting", "path", "respond", "filtered"), OTHERS, ids=[vendor[0] for vendor in OTHERS]
)
async def test_the_other_vendors(setting: str, path: str, respond, filtered: str, monkeypatch) -> None:
    async with ScriptedServer({path: respond(["Pa", "ris"], words=9)}) as server:
        for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
            monkeypatch.setenv(name, server.base)
        for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, KEY)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        model = HostedChatModel(setting, seconds=20)
        assert await answer(model, TALK) == [Delta("Pa"), Delta("ris"), Usage(9, 2)]
        sent = json.loads(server.requests[0].body)
        assert all(message.content in json.dumps(sent) for message in TALK)
        server.answers[path] = respond(["Pa"], words=9, reason=filtered)
        with pytest.raises(ChatBadAnswer):
            await answer(model)
        server.answers[path] = replace(respond(["Pa", "ris"] * 50, words=9), broken=True)
        with pytest.raises(ChatUnreachable):
            await answer(model)
        count = server.count()
        for status, kind in [(401, ChatAuthFailed), (429, ChatRateLimited), (500, ChatUnreachable)]:
            server.answers[path] = Answer(b'{"message": "planned"}', status, "application/json")
            with pytest.raises(kind):
                await answer(model)
        assert server.count() == count + 3
        await model.close()


async def test_an_engine_has_the_model_of_its_settings(server: ChatServer, tmp_path) -> None:
    settings = Settings(
        embedder="none",
        chat_model="openai:small",
        chat_base_url=server.url,
        chat_context_tokens=50,
        chat_timeout_seconds=20,
    )
    async with conspectus.open(tmp_path, settings=settings) as engine:
        model = engine._context.core.parts.chat_model
        assert (model.name, model.window, model.tokenizer) == ("openai:small", 50, "o200k_base")
        assert text(await answer(model, max_tokens=40)) == "Hello world"
    async with conspectus.open(tmp_path, settings=settings) as engine:
        rows = await engine.jobs.list_requests()
        assert [(row.kind, row.model, row.tokens) for row in rows] == [("chat", "openai:small", 5)]


async def test_a_model_that_is_handed_in_stays_its_owners(tmp_path) -> None:
    model = ScriptedChatModel()
    settings = Settings(embedder="none", chat_model="openai:small")
    async with conspectus.open(tmp_path, settings=settings, chat_model=model) as engine:
        assert engine._context.core.parts.chat_model is model
    assert not model.closed
    assert bootstrap.Models(Settings()).speaker() is None


def test_nothing_of_a_vendors_is_imported_before_the_first_question() -> None:
    program = (
        "import sys\n"
        "from conspectus import bootstrap\n"
        "from conspectus.settings import Settings\n"
        "made = [bootstrap.Models(Settings(chat_model=each)).speaker().name for each in sys.argv[1:]]\n"
        "vendors = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'boto3', 'httpx2'}\n"
        "print(made == sys.argv[1:], vendors & set(sys.modules))"
    )
    settings = ["openai:small", "anthropic:claude", "google:gemini", "bedrock:nova", "ollama:llama"]
    line = [sys.executable, "-c", program, *settings]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True set()"


def test_without_the_library_the_error_is_the_line_that_installs_it() -> None:
    missing = {
        "openai:small": "pydantic_ai",
        "ollama:llama": "openai",
        "anthropic:claude": "anthropic",
        "bedrock:nova": "boto3",
    }
    program = f"""
import sys
from conspectus.errors import MissingExtra
from conspectus.providers.chat_model import HostedChatModel
for setting, library in {missing!r}.items():
    sys.modules[library] = None
    try:
        HostedChatModel(setting)
    except MissingExtra as told:
        print(told)
    del sys.modules[library]
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    extras = ("openai", "openai", "anthropic", "bedrock")
    lines = [line.partition("pip install ")[2] for line in done.stdout.splitlines()]
    assert lines == [f"'conspectus[{extra}]'" for extra in extras]
