"""Small windows show what matched, and without a match what is nearest."""

import pytest
from tests.unit.window.test_focus import FACTS, PAGE
from tests.unit.window.test_packer import SENTENCE, count

import conspectus
from conspectus.model.records import NewDocument
from conspectus.settings import Settings


@pytest.mark.parametrize(("tokens", "least"), [(60, 5), (100, 6), (200, 6)])
async def test_a_page_of_six_sections_answers_in_small_windows(tmp_path, tokens, least):
    new = NewDocument(PAGE, title="The town library", key="library.md", syntax="markdown")
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        await engine.add(new)
        windows = [(await engine.window(query, tokens), fact) for query, fact in FACTS.values()]
    assert sum(fact in window.text for window, fact in windows) >= least
    for window, _ in windows:
        assert window.tokens == count(window.text) <= tokens
        assert all(PAGE[citation.start : citation.end] in window.text for citation in window.citations)


async def test_without_a_common_word_the_nearest_sentence_is_shown(tmp_path):
    text = f"{SENTENCE * 6}Physicians recommend sleeping eight hours. {SENTENCE * 6}"
    async with conspectus.open(tmp_path) as engine:
        await engine.add(NewDocument(text, title="Notes"), wait=True)
        window = await engine.window("doctor's advice about rest at night", 60)
        [citation] = window.citations
    assert "Physicians recommend sleeping eight hours." in text[citation.start : citation.end]
    assert window.tokens <= 60
