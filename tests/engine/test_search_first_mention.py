"""A question for a first mention finds the introduction before later repeats."""

from pathlib import Path

import pytest
from tests.stores import SETTINGS

import conspectus
from conspectus import NewDocument
from conspectus.model.captions import NewCaption
from conspectus.retrieval.first_mention import FIRST_MENTION_PART, FIRST_MENTION_WEIGHT

ASKED = "When does she first mention lighthouses?"
PLAIN = "lighthouses"
CAPTIONS = (
    "welcome to the coast",
    "here you see one of the lighthouses that we visit today, and the old harbour behind it",
    "the ferry is late",
    "lighthouses, lighthouses, lighthouses",
    "lighthouses again",
    "Okay.",
    "lunch was fish",
)
MINUTE = 60.0


async def test_the_first_message_about_a_subject_stands_first(tmp_path: Path) -> None:
    messages = [
        NewDocument(text, key=str(number), kind="message", thread=f"t{number}", sequence=number)
        for number, text in enumerate(CAPTIONS)
    ]
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.add(messages, wait=True)
        first = await engine.retrieve(ASKED)
        plain = await engine.retrieve(PLAIN)
    assert first.hits[0].document.key == "1"
    assert first.hits[0].parts[FIRST_MENTION_PART] == pytest.approx(FIRST_MENTION_WEIGHT)
    assert first.plan[FIRST_MENTION_PART] == "lighthouses"
    assert plain.hits[0].document.key != "1"
    assert FIRST_MENTION_PART not in plain.plan | plain.hits[0].parts


async def test_the_first_part_of_a_document_stands_first(tmp_path: Path) -> None:
    filling = "The road goes on along the coast, and nothing is to be seen for a long time. " * 30
    text = "\n\n".join(f"{caption}. {filling}" for caption in CAPTIONS)
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.add(text, wait=True)
        [best, *_] = (await engine.retrieve("Where are lighthouses first mentioned?")).hits
    assert "here you see one of the lighthouses" in best.chunk.text


async def test_moments_and_windows_of_streams_begin_with_the_first_mention(tmp_path: Path) -> None:
    captions = [
        NewCaption(text, number * MINUTE, (number + 1) * MINUTE, index=number)
        for number, text in enumerate(CAPTIONS)
    ]
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.streams.add_captions(captions, stream="coast", wait=True)
        [best, *_] = (await engine.streams.search(ASKED)).moments
        [plain, *_] = (await engine.streams.search(PLAIN)).moments
        window = await engine.streams.window(ASKED, 40)
    assert best.start == MINUTE
    assert best.parts["first mention"] == pytest.approx(FIRST_MENTION_WEIGHT)
    assert plain.start > MINUTE
    assert window.captions[0].start == MINUTE


async def test_captions_of_one_filler_word_are_in_no_window(tmp_path: Path) -> None:
    captions = [NewCaption(text, number, number + 1, index=number) for number, text in enumerate(CAPTIONS)]
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.streams.add_captions(captions, stream="coast", wait=True)
        about_ferry = (await engine.streams.window("the ferry")).window.text
        about_okay = (await engine.streams.window("okay")).window.text
    assert "Okay." not in about_ferry
    assert "the ferry is late" in about_ferry
    assert "Okay." in about_okay
