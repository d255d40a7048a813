"""How a text was read, and where a recognized one stands on its page, is stored, shown and cited."""

from pathlib import Path

import pytest

import conspectus
from conspectus.model.captions import NewCaption
from conspectus.model.records import NewDocument, TextPosition
from conspectus.settings import Settings

FIRST = "The lamp is lit at dusk. "
SECOND = "The bell rings in fog. "
SCAN = NewDocument(
    FIRST + SECOND,
    title="Log",
    key="log",
    read_by="ocr",
    places=(
        TextPosition(0, 3, box=(100, 80, 900, 120)),
        TextPosition(len(FIRST), 3, box=(90, 140, 700, 180)),
    ),
)


async def test_a_recognized_text_is_marked_and_cited_with_its_box(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        await engine.add(SCAN)
        [hit] = (await engine.search("bell fog")).hits
        assert (hit.document.read_by, hit.chunk.box) == ("ocr", (90, 80, 900, 180))
        window = await engine.window("bell fog", 200)
        assert window.text.startswith("[1] Log (log), p. 3, OCR\n")
        assert (window.citations[0].read_by, window.citations[0].box) == ("ocr", (90, 80, 900, 180))
        marked = await engine.window("bell fog", 200, format="xml")
        assert 'read_by="ocr"' in marked.text


async def test_a_caption_and_a_message_from_speech_are_marked_in_windows_as_text(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        spoken = NewCaption("The bell rings in fog.", start=12.0, end=14.0, read_by="speech")
        await engine.streams.add_captions([spoken], stream="call", wait=True)
        typed = NewCaption("The bell is polished.", start=15.0, end=16.0)
        await engine.streams.add_captions([typed], stream="call", wait=True)
        await engine.add(NewDocument("A bell for the voice.", kind="message", key="m", read_by="speech"))
        lines = (await engine.window("bell", 200)).text.splitlines()
        spoken_line, typed_line, message_line = (
            next(line for line in lines if word in line) for word in ("fog", "polished", "voice")
        )
        assert "] (speech) " in spoken_line and "] (speech) " in message_line
        assert "speech" not in typed_line


async def test_the_box_of_a_chunk_is_that_of_its_own_paragraphs(tmp_path: Path) -> None:
    settings = Settings(embedder="none", chunk_size=30, chunk_overlap=0)
    async with conspectus.open(tmp_path, settings=settings) as engine:
        await engine.add(SCAN)
        [hit] = (await engine.search("bell")).hits
        assert hit.chunk.box == (90, 140, 700, 180)
        [written] = await engine.add(SCAN)
        assert written.outcome == "unchanged"


async def test_an_update_and_an_export_keep_how_a_text_was_read(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        [written] = await engine.add(SCAN)
        await engine.documents.update(written.id, title="Logbook")
        [hit] = (await engine.search("bell")).hits
        assert (hit.document.title, hit.document.read_by) == ("Logbook", "ocr")
        assert hit.chunk.box == (90, 80, 900, 180)
        exported = await engine.documents.export()
    async with conspectus.open(tmp_path / "second", settings=Settings(embedder="none")) as second:
        await second.documents.import_lines(exported.lines)
        [hit] = (await second.search("bell")).hits
        assert (hit.document.read_by, hit.chunk.box) == ("ocr", (90, 80, 900, 180))


@pytest.mark.parametrize("box", [None, (0, 0, 1_000, 1_000)])
async def test_a_text_that_was_not_recognized_has_no_mark(
    tmp_path: Path, box: tuple[int, int, int, int] | None
) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        await engine.add(NewDocument("The bell rings.", title="Log", places=(TextPosition(0, 1, box=box),)))
        window = await engine.window("bell", 200)
        assert "OCR" not in window.text
        assert window.citations[0].box == box
