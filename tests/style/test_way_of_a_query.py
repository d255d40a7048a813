"""A warm query passes few modules, so that whoever follows it reads few files."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import FrameType

import pytest

import conspectus
from conspectus import Engine, NewDocument
from conspectus.testing.embedders import HashedEmbedder

PACKAGE = str(Path(conspectus.__file__).parent)
INDEX = f"{PACKAGE}/index/"
QUERY = "when does backup 7 run?"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        texts = [NewDocument(f"the backup number {i} runs every night at {i}") for i in range(50)]
        await opened.add(texts, wait=True)
        yield opened


async def passed(query: Callable[[], Awaitable[object]]) -> list[str]:
    """The package's files outside the index in which the second of two equal queries calls a function."""
    await query()
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE) and not name.startswith(INDEX):
            files[name.removeprefix(PACKAGE)] = None

    sys.setprofile(note)
    try:
        await query()
    finally:
        sys.setprofile(None)
    return list(files)


async def test_a_warm_retrieve_passes_at_most_30_files(engine: Engine) -> None:
    files = await passed(lambda: engine.retrieve(QUERY))
    assert "/engine/search.py" in files
    assert len(files) <= 30, files


async def test_a_warm_window_passes_at_most_45_files(engine: Engine) -> None:
    files = await passed(lambda: engine.window(QUERY, 500))
    assert "/window/packer.py" in files
    assert len(files) <= 45, files
