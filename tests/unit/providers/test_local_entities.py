"""Entity extraction by models on this machine: spaCy and GLiNER."""

import importlib.util
from dataclasses import replace
from functools import partial

import pytest
import spacy

from conspectus import bootstrap
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.providers.local_entities import LocalNames, by_gliner, gliner_names, spacy_names
from conspectus.settings import Settings
from conspectus.text.name_keys import key_of

SETTINGS = Settings(embedder="none")


def texts_and_types(names):
    return [(name.text, name.type) for name in names]


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
