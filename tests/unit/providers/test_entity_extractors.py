import asyncio
import importlib.util
from dataclasses import replace
from functools import partial

import pytest
import spacy

from conspectus import bootstrap
from conspectus.errors import ChatBadAnswer, ChatNotConfigured, ChatUnreachable, InvalidInput, MissingExtra
from conspectus.graph.name_keys import key_of
from conspectus.providers.chat_entities import CHAT_MAX_LENGTH, ChatNames
from conspectus.providers.entity_spans import Labelled, found_in, pieces
from conspectus.providers.local_entities import LocalNames, by_gliner, gliner_names, spacy_names
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel

SETTINGS = Settings(embedder="none")


def texts_and_types(names):
    return [(name.text, name.type) for name in names]


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_pieces_are_the_whole_text_in_order(size):
    text = "One two\nthree " + "x" * 50 + " \u2028 end"
    cut = list(pieces(text, size))
    assert "".join(piece for _, piece in cut) == text
    assert all(text[at : at + len(piece)] == piece and 0 < len(piece) <= size for at, piece in cut)
    assert list(pieces("", size)) == []


def test_spans_outside_of_the_text_and_those_inside_longer_ones_are_left_out():
    spans = [Labelled(0, 3, "PER"), Labelled(0, 9, "PERSON"), Labelled(4, 9, "X"), Labelled(-1, 2, "X"),
             Labelled(8, 99, "X"), Labelled(5, 5, "X"), Labelled(9, 14, " ORG ", 7.0),
             Labelled(14, 15, "X")]  # fmt: skip
    names = found_in("Ann Smith Acme!", spans, key_of)
    assert [(name.text, name.type, name.score) for name in names] == [
        ("Ann Smith", "person", 1.0), ("Acme", "organisation", 1.0), ("!", "x", 1.0),
    ]  # fmt: skip


@pytest.fixture
def pipeline(tmp_path):
    language = spacy.blank("en")
    ruler = language.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Ann Smith"}, {"label": "GPE", "pattern": "Paris"}])
    language.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


async def test_a_spacy_pipeline_finds_its_entities(pipeline):
    extractor = spacy_names(pipeline, key_of)
    texts = ["Ann Smith left Paris.", "", "x " * 60_000 + "to Paris"]
    extracted = await extractor.extract(texts)
    assert [texts_and_types(names) for names in extracted] == [
        [("Ann Smith", "person"), ("Paris", "place")], [], [("Paris", "place")],
    ]  # fmt: skip
    assert all(
        text[name.start : name.end] == name.text
        for text, names in zip(texts, extracted, strict=True)
        for name in names
    )
    assert extractor.name == f"spacy:{pipeline}"
    await extractor.close()


async def test_the_settings_choose_a_spacy_pipeline(pipeline, tmp_path):
    settings = replace(SETTINGS, entity_extractor=f"spacy:{pipeline}")
    async with bootstrap.open(tmp_path / "store", settings=settings) as engine:
        await engine.graph.get_or_create()
        assert texts_and_types(await engine.graph.extract_entities("Ann Smith met Bob in Paris")) == [
            ("Ann Smith", "person"), ("Paris", "place"),
        ]  # fmt: skip


@pytest.mark.parametrize("content", [None, "", "[nlp]\nlang = 7", "\0"])
def test_a_folder_without_a_pipeline_is_said(tmp_path, content):
    if content is not None:
        (tmp_path / "config.cfg").write_text(content)
    with pytest.raises(InvalidInput, match="pipeline"):
        spacy_names(tmp_path, key_of)


class LabelsCapitals:
    """Labels words with a capital, as a GLiNER model answers; it reads so many characters at most."""

    def __init__(self):
        self.longest = 0

    def predict_entities(self, text, labels, *, threshold):
        self.longest = max(self.longest, len(text))
        words, at = [], 0
        for word in text.split(" "):
            if word[:1].isupper():
                words.append({"start": at, "end": at + len(word), "label": labels[0], "score": threshold})
            at += len(word) + 1
        return words


async def test_what_a_gliner_model_says_becomes_names_in_the_whole_text():
    model = LabelsCapitals()
    text = "so " * 1_000 + "Ann met Bob"
    (names,) = await LocalNames("gliner:x", partial(by_gliner, model), key_of).extract([text])
    assert texts_and_types(names) == [("Ann", "person"), ("Bob", "person")]
    assert [text[name.start : name.end] for name in names] == ["Ann", "Bob"] and model.longest <= 1_000


@pytest.mark.skipif(importlib.util.find_spec("gliner") is not None, reason="gliner is installed")
async def test_without_gliner_the_line_that_installs_it_is_said(tmp_path):
    with pytest.raises(MissingExtra, match=r"conspectus\[gliner\]"):
        gliner_names(tmp_path, key_of)
    settings = replace(SETTINGS, entity_extractor=f"gliner:{tmp_path}")
    async with bootstrap.open(tmp_path / "store", settings=settings) as engine:
        await engine.graph.get_or_create()
        with pytest.raises(MissingExtra):
            await engine.graph.extract_entities("Ann")


@pytest.mark.parametrize("names", ["", "spacy", "spacy:", "gliner:", "bert:x", "Rules"])
async def test_a_name_of_no_known_form_is_refused_when_the_store_is_opened(tmp_path, names):
    with pytest.raises(InvalidInput, match="names"):
        async with bootstrap.open(tmp_path, settings=replace(SETTINGS, entity_extractor=names)):
            pass


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
