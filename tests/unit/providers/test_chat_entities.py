"""Entity extraction by a chat model."""

import asyncio
from dataclasses import replace

import pytest

from conspectus import bootstrap
from conspectus.errors import ChatBadAnswer, ChatNotConfigured, ChatUnreachable
from conspectus.providers.chat_entities import CHAT_MAX_LENGTH, ChatNames
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.text.name_keys import key_of

SETTINGS = Settings(embedder="none")


def texts_and_types(names):
    return [(name.text, name.type) for name in names]


async def test_a_chat_model_names_names_and_the_text_says_where_they_stand():
    named = '[{"name": "Ann", "type": "person"}, {"name": "art", "type": 7}, {"name": "Zeus"}, {"name": ""}]'
    answer = f"```json\n{named}\n```"
    model = ScriptedChatModel([answer])
    text = "Ann, Joanna and Ann start art."
    extracted = await ChatNames(model, key_of).extract([text, " ", ""])
    assert [texts_and_types(names) for names in extracted] == [
        [("Ann", "person"), ("Ann", "person"), ("art", "7")],
        [],
        [],
    ]
    assert [name.start for name in extracted[0]] == [0, 16, 26]
    assert [request.messages[1].content for request in model.asked] == [text]


async def test_a_long_text_is_asked_about_in_pieces():
    model = ScriptedChatModel(['[{"name": "Ann", "type": "person"}]'])
    text = "so " * CHAT_MAX_LENGTH + "Ann"
    (names,) = await ChatNames(model, key_of).extract([text])
    assert [(name.start, name.text) for name in names] == [(len(text) - 3, "Ann")]
    assert (
        all(len(request.messages[1].content) <= CHAT_MAX_LENGTH for request in model.asked)
        and len(model.asked) > 2
    )


@pytest.mark.parametrize(
    "answer", ["", "no names", "{}", "[1]", '[{"type": "x"}]', "[" * 100_000, '[{"name": 1}]']
)
async def test_an_answer_that_is_no_list_is_asked_for_again_and_then_an_error(answer):
    model = ScriptedChatModel([answer])
    with pytest.raises(ChatBadAnswer, match="not a list of names"):
        await ChatNames(model, key_of).extract(["Ann"])
    assert len(model.asked) == 2 and model.open == 0


async def test_a_better_second_answer_is_taken():
    model = ScriptedChatModel(lambda messages: ["[]" if len(messages) > 2 else "what?"])
    assert await ChatNames(model, key_of).extract(["Ann"]) == [[]]


async def test_a_model_that_breaks_off_fails_all_and_leaves_nothing_open():
    model = ScriptedChatModel(["[", "]"], fails=ChatUnreachable("scripted", "cut"), after=1)
    with pytest.raises(ChatUnreachable):
        await ChatNames(model, key_of).extract(["Ann"] * 20)
    assert model.open == 0


async def test_who_stops_waiting_ends_the_calls():
    model = ScriptedChatModel(["[", "]"], hangs=True, after=1)
    task = asyncio.ensure_future(ChatNames(model, key_of).extract(["Ann"] * 20))
    await model.hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.open == 0


async def test_the_settings_choose_the_chat_model(tmp_path):
    settings = replace(SETTINGS, entity_extractor="chat")
    model = ScriptedChatModel(['[{"name": "ann", "type": "person"}]'])
    async with bootstrap.open(tmp_path, settings=settings, chat_model=model) as engine:
        await engine.graph.get_or_create()
        assert texts_and_types(await engine.graph.extract_entities("so ann said")) == [("ann", "person")]
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        with pytest.raises(ChatNotConfigured):
            await engine.graph.extract_entities("so ann said")
