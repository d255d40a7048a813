"""The page on the architecture names the modules that a query passes, in their order."""

import re
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
PAGE = Path(__file__).parents[2] / "docs/concepts/architecture.md"
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


def named_modules(package: str) -> list[str]:
    """The modules of a package that the page names with their folder, in order."""
    names = re.findall(
        rf"`({package}/\w+\.py)`", PAGE.read_text(encoding="utf-8").split("## How a query is answered")[1]
    )
    return list(dict.fromkeys(names))


async def test_a_query_passes_the_modules_of_the_page_in_their_order(engine: Engine) -> None:
    files = await passed(lambda: engine.retrieve(QUERY))
    assert [file.strip("/") for file in files if file.startswith("/retrieval/")] == named_modules("retrieval")


async def test_a_window_begins_with_the_query(engine: Engine) -> None:
    files = await passed(lambda: engine.window(QUERY, 500))
    assert [file.strip("/") for file in files if file.startswith("/retrieval/")] == named_modules("retrieval")
    assert set(named_modules("window")) <= {file.strip("/") for file in files}
