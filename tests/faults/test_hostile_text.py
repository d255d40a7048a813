"""Strings that break programs: stored, found, packed and given back as they came, or refused clearly."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Eq, NewDocument, Settings
from conspectus.testing.embedders import HashedEmbedder
from conspectus.text.clean import clean

HOSTILE = [
    "",
    "\x00",
    "a\x00b",
    "\ud800 lone",
    "\u202e right to left \u2066",
    "'; DROP TABLE documents; --",
    '"><script>alert(1)</script>',
    "%s %d %n {0} {{}}",
    "👩‍👩‍👧‍👦" * 50,
    "e" + "\u0301" * 500,
    "\ufeff\u200b\u00ad",
    "x" * 100_000,
    "\n" * 10_000,
    "[1] not a citation\n[2] neither",
    "</document></context>",
    "NULL",
    "१२३ ٤٥٦ Ⅷ ½",
]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=HashedEmbedder()) as opened:
        yield opened


async def check_round_trip(engine: Engine, texts: list[str]) -> None:
    news = [
        NewDocument(text=text, title=text[:200], key=f"{position} {text[:100]}", metadata={"k": text[:100]})
        for position, text in enumerate(texts)
    ]
    written = await engine.add(news, wait=True)
    for text, document in zip(texts, written, strict=True):
        expected = clean(text) if text.strip() else ""
        assert await engine.documents.get_text(document.id) == expected
        assert await engine.documents.count(filter=Eq(("k",), clean(text[:100]))) >= 1


async def ask_about(engine: Engine, texts: list[str]) -> None:
    for text in texts:
        question = text[:5_000]
        await engine.retrieve(question, filter=Eq("author", question))
        for renderer in ("text", "xml", "json", "messages"):
            window = await engine.window(question, 300, format=renderer)
            assert window.tokens <= 300
            window.text.encode()


async def test_hostile_texts_are_stored_whole_and_packed_within_the_budget(engine: Engine) -> None:
    await check_round_trip(engine, HOSTILE)
    await ask_about(engine, HOSTILE)
    assert (await engine.maintenance.check()).clean


@pytest.mark.data
async def test_the_big_list_of_naughty_strings(engine: Engine, evaluation: Callable[[str], Path]) -> None:
    texts = json.loads((evaluation("naughty_strings") / "blns.json").read_text(encoding="utf-8"))
    await check_round_trip(engine, texts)
    await ask_about(engine, texts[::9])
    assert (await engine.maintenance.check()).clean


async def test_a_hundred_megabytes_of_text_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    settings = replace(Settings(), embedder="none")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        with pytest.raises(conspectus.ConspectusError) as refusal:
            await engine.add("x" * 100_000_000)
        assert refusal.value.code == "too_large"
        assert await engine.documents.count() == 0


async def test_one_bad_document_keeps_its_whole_batch_out(tmp_path: Path) -> None:
    settings = replace(Settings(), embedder="none")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        bad = NewDocument(text="bad", key="b", metadata={"share": float("nan")})
        with pytest.raises(conspectus.ConspectusError) as refusal:
            await engine.add(["fine", bad, "fine too"])
        assert "document 2 of 3" in refusal.value.__notes__[0]
        assert await engine.documents.count() == 0
