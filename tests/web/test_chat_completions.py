"""The face that clients of OpenAI see, asked by OpenAI's own client over a real connection."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from conspectus.errors import ChatAuthFailed, ChatRateLimited, ChatUnreachable
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.web.openai_chat import Until
from tests.waiting import until
from tests.web.chatting import Chats, chats

SAYS = [{"role": "user", "content": "When do backups run?"}]
ANY: Any = {"model": "gpt-whatever", "messages": SAYS}
WORDS = ["Backups", " run", " at", " two [1]."]


@asynccontextmanager
async def client_of(site: Chats, key: str = "none") -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's client; it asks once, so that a test sees the first answer."""
    async with AsyncOpenAI(base_url=f"{site.url}/api/v1", api_key=key, max_retries=0) as client:
        yield client


@asynccontextmanager
async def running_site_with_client(
    folder: Path, model: ScriptedChatModel | None, **settings: Any
) -> AsyncIterator[tuple[Chats, AsyncOpenAI]]:
    """A site with an owner, a document, and a client with the owner's key."""
    async with chats(folder, model, **settings) as site:
        await site.engine.add("Backups run at two each night.", wait=True)
        owner = await site.engine.keys.create_first()
        assert owner is not None
        async with client_of(site, owner.secret) as client:
            yield site, client


LOOK: Any = {"conspectus": {"collection": "default"}}


async def test_a_whole_answer(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (site, client):
        completion = await client.chat.completions.create(**ANY, extra_body=LOOK)
    [choice] = completion.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "Backups run at two [1].")
    assert (choice.finish_reason, completion.model, completion.object) == (
        "stop",
        "scripted:model",
        "chat.completion",
    )
    assert completion.usage is not None
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + 4
    extra: Any = completion.model_extra or {}
    assert [source["snippet"] for source in extra["conspectus"]["sources"]] == [
        "Backups run at two each night."
    ]
    assert [citation["number"] for citation in extra["conspectus"]["cited"]] == [1]
    assert "Backups run at two each night." in site.model.asked[0].messages[-1].content


async def test_a_streamed_answer(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel([*WORDS, "\r\n[DONE]", "[DONE]"])) as (
        _,
        client,
    ):
        options: Any = {"include_usage": True}
        stream = await client.chat.completions.create(**ANY, stream=True, stream_options=options)
        chunks = [chunk async for chunk in stream]
    first, *pieces, last, usage = chunks
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert len((first.model_extra or {})["conspectus"]["sources"]) == 1
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces)
    assert text == "Backups run at two [1].\r\n[DONE][DONE]"
    assert (last.choices[0].finish_reason, last.usage) == ("stop", None)
    assert (usage.choices, usage.usage is not None and usage.usage.completion_tokens) == ([], 6)
    assert {chunk.model for chunk in chunks} == {"scripted:model"}
    assert len({chunk.id for chunk in chunks}) == 1


async def test_without_include_usage_there_is_none(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (_, client):
        stream = await client.chat.completions.create(**ANY, stream=True)
        chunks = [chunk async for chunk in stream]
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


async def test_a_conversation_and_instructions_of_ones_own(tmp_path: Path) -> None:
    long = " ".join(["Answer in verse."] * 300)
    messages: Any = [
        {"role": "system", "content": long},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "Hi"}], "name": "bot"},
        {"role": "developer", "content": "Be terse."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "When do"}, {"type": "text", "text": "they run?"}],
        },
    ]
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (site, client):
        await client.chat.completions.create(
            messages=messages,
            model="x",
            temperature=0.5,
            max_tokens=3,
            extra_body={"conspectus": {"use_context": False}},
        )
    [question] = site.model.asked
    assert [message.role for message in question.messages] == ["system", "user", "assistant", "user"]
    assert question.messages[0].content.startswith(f"{long.strip()}\n\nBe terse.")
    assert [message.content for message in question.messages[1:]] == ["Hello", "Hi", "When do\nthey run?"]
    assert (question.max_tokens, question.temperature) == (3, 0.5)


async def test_an_answer_that_was_cut_by_its_tokens_says_so(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (_, client):
        completion = await client.chat.completions.create(**ANY, max_completion_tokens=2)
    assert (completion.choices[0].message.content, completion.choices[0].finish_reason) == (
        "Backups run",
        "length",
    )


@pytest.mark.parametrize("stream", [True, False])
async def test_it_ends_at_a_stop_and_so_does_the_models_call(tmp_path: Path, stream: bool) -> None:
    model = ScriptedChatModel(["one Ob", "serva", "tion: two"], hangs=True, after=3)
    async with running_site_with_client(tmp_path, model) as (_, client):
        stops = ["Observation:", "never"]
        completion = await client.chat.completions.create(**ANY, stop=stops, stream=stream)
        if isinstance(completion, openai.AsyncStream):
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in completion])
        else:
            text = completion.choices[0].message.content or ""
        assert text == "one "
        await until(lambda: model.broken_off == 1)


@given(
    st.lists(st.text("ab", max_size=3), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=3), max_size=2),
)
def test_text_up_to_a_stop_however_it_is_cut(pieces: list[str], stops: list[str]) -> None:
    text, until = "".join(pieces), Until(stops)
    passed_text = "".join(
        [until.release_text(piece) for piece in pieces if not until.found] + [until.flush()]
    )
    positions = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    assert (passed_text, until.found) == (text[: min(positions)[1]] if positions else text, bool(positions))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"logprobs": True}, "logprobs"),
    ({"n": 2}, "n"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "assistant", "content": "Hi"}]}, "messages"),
    ({"messages": [{"role": "user", "content": " "}]}, "messages"),
    ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages.0.tool_call_id"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        "messages.0.content",
    ),
    ({"messages": [{"role": "user", "content": "x" * 10_001}]}, "message"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}, *SAYS]},
        "messages.0.tool_calls.0.function",
    ),
    ({"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
    ({"temperature": 9}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"stop": ["1", "2", "3", "4", "5"]}, "stop"),
    ({"extra_body": {"conspectus": {"filter": {"field": "x"}}}}, "filter"),
    ({"extra_body": {"conspectus": {"other": 1}}}, "conspectus.other"),
]


async def test_what_cannot_be_done_is_refused_by_name(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (site, client):
        for body, field in REFUSED:
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(**{**ANY, **body})
            error: Any = caught.value
            assert (error.param, error.type) == (field, "invalid_request_error"), body
            assert error.code in {"invalid_input", "too_large"}
            assert error.message
    assert site.model.asked == []


async def test_what_changes_nothing_is_ignored(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (_, client):
        completion = await client.chat.completions.create(
            **ANY, user="u", metadata={"a": "b"}, seed=1, store=True, top_p=0.9, n=1, tools=[], stop=None,
            presence_penalty=0.1, response_format={"type": "text"}, tool_choice="auto", logprobs=False,
        )  # fmt: skip
    assert completion.choices[0].message.content == "Backups run at two [1]."


FAULTS: list[tuple[Any, type[openai.APIStatusError], str]] = [
    (ChatAuthFailed("scripted", "hunter2"), openai.InternalServerError, "LLM_AUTH_FAILED"),
    (ChatRateLimited("scripted", "hunter2"), openai.RateLimitError, "LLM_RATE_LIMIT"),
    (ChatUnreachable("scripted", "hunter2"), openai.InternalServerError, "LLM_CONNECTION_ERROR"),
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("fault", "kind", "code"), FAULTS, ids=[code for *_, code in FAULTS])
async def test_what_fails_before_the_first_piece_has_a_status(
    tmp_path: Path, fault: Any, kind: type[openai.APIStatusError], code: str, stream: bool
) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS, fails=fault)) as (site, client):
        with pytest.raises(kind) as caught:
            await client.chat.completions.create(**ANY, stream=stream)
        assert (caught.value.code, "hunter2" in caught.value.response.text) == (code, False)
        await until(lambda: len(site.requests) == 1)
        assert site.requests[0]["status"] == caught.value.status_code


async def test_what_fails_later_is_told_in_the_stream(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, fails=ChatUnreachable("scripted", "hunter2"), after=2)
    async with running_site_with_client(tmp_path, model) as (_, client):
        stream = await client.chat.completions.create(**ANY, stream=True)
        texts = []
        with pytest.raises(openai.APIError) as caught:
            async for chunk in stream:
                texts.append(chunk.choices[0].delta.content)
    assert texts == ["", "Backups", " run"]
    assert (caught.value.code, caught.value.type) == ("LLM_CONNECTION_ERROR", "server_error")


@pytest.mark.parametrize("stream", [True, False])
async def test_without_a_model_it_is_said_once_and_for_all(tmp_path: Path, stream: bool) -> None:
    async with running_site_with_client(tmp_path, None) as (site, client):
        with pytest.raises(openai.InternalServerError) as caught:
            await client.with_options(max_retries=3).chat.completions.create(**ANY, stream=stream)
        assert (caught.value.status_code, caught.value.code) == (503, "LLM_NOT_CONFIGURED")
        assert (await client.models.list()).data == []
        await until(lambda: len(site.requests) == 2)


async def test_models(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (_, client):
        [model] = (await client.models.list()).data
    assert (model.id, model.owned_by, model.object) == ("scripted:model", "scripted", "model")


async def is_refused(site: Chats, key: str, kind: type[openai.APIStatusError]) -> None:
    async with client_of(site, key) as client:
        for call in (client.chat.completions.create(**ANY), client.models.list()):
            with pytest.raises(kind) as caught:
                await call
            assert caught.value.code in {"unauthenticated", "permission_denied"}


async def test_who_may_not_ask_is_told_in_the_same_form(tmp_path: Path) -> None:
    async with running_site_with_client(tmp_path, ScriptedChatModel(WORDS)) as (site, _):
        await site.engine.people.create_user("ann")
        writing = (await site.engine.keys.create("ann", scopes=("write",))).secret
        reading = (await site.engine.keys.create("ann", scopes=("read",))).secret
        await is_refused(site, "invented", openai.AuthenticationError)
        await is_refused(site, writing, openai.PermissionDeniedError)
        async with client_of(site, reading) as client:
            completion = await client.chat.completions.create(**ANY)
        assert (completion.model_extra or {})["conspectus"]["sources"] == []


async def test_a_client_that_goes_away_ends_the_models_call(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, hangs=True, after=1)
    async with running_site_with_client(tmp_path, model, chat_disconnect_grace_seconds=60) as (_, client):
        async with await client.chat.completions.create(**ANY, stream=True) as stream:
            assert (await anext(stream)).choices[0].delta.role == "assistant"
        await until(lambda: model.broken_off == 1)


async def test_what_is_no_json_and_what_is_no_such_method(tmp_path: Path) -> None:
    async with chats(tmp_path, None) as site, site.client() as client:
        for answer in (await client.post("/chat/completions", content="{"), await client.put("/models")):
            assert answer.status_code in {400, 405}
            error = json.loads(answer.text)["error"]
            assert error.keys() == {"message", "type", "param", "code"}


async def test_embeddings_are_those_of_the_servers_model(tmp_path: Path) -> None:
    texts = ["Backups run at two.", "Lunch is at noon."]
    async with running_site_with_client(tmp_path, None) as (site, client):
        plain = await client.embeddings.create(model="x", input=texts, encoding_format="float")
        coded = await client.embeddings.create(model="x", input=texts)
        [one] = (await client.embeddings.create(model="x", input=texts[1])).data
        embedder = site.engine.embedder
        assert embedder is not None
        for answer in (plain, coded):
            for number, vector in enumerate(await embedder.embed_documents(texts)):
                assert answer.data[number].index == number
                assert answer.data[number].embedding == pytest.approx(list(map(float, vector)), abs=1e-6)
        assert one.embedding == coded.data[1].embedding
        assert (plain.model, plain.usage.total_tokens > 5) == (embedder.space.model, True)
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"dimensions": 7}, "dimensions"), ({"input": []}, "input"), ({"input": [[1, 2]]}, "input"),
            ({"input": ["x"] * 2_049}, "input"), ({"encoding_format": "int8"}, "encoding_format"),
        ]  # fmt: skip
        for body, field in wrong:
            with pytest.raises(openai.BadRequestError) as caught:
                await client.embeddings.create(**{"model": "x", "input": "y", **body})
            assert (caught.value.param or "").startswith(field)
