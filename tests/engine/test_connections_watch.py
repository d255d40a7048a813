"""A folder that is watched: what is saved is found, without anybody who asks for it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import until

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.jobs import Job

SETTINGS = replace(Settings(), embedder="none")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nA heron stands in the reeds.")
    return folder


async def is_found(engine: Engine, words: str) -> bool:
    return bool((await engine.retrieve(words)).hits)


async def test_what_is_saved_is_found(engine: Engine, wiki: Path) -> None:
    await engine.connections.create("notes", "markdown", {"path": str(wiki)})
    ended: list[Job] = []
    following = asyncio.create_task(engine.connections.watch("notes", on_job=ended.append))
    await until(lambda: is_found(engine, "heron"))
    (wiki / "two.md").write_text("# Two\n\nA crane flies over.")
    await until(lambda: is_found(engine, "crane"))
    (wiki / "one.md").unlink()

    async def gone() -> bool:
        return not await is_found(engine, "heron")

    await until(gone)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert {job.state for job in ended} <= {"succeeded"}
    assert len(ended) >= 2


async def test_a_server_follows_what_it_is_told_to_watch(engine: Engine, wiki: Path) -> None:
    await engine.connections.start()
    await engine.connections.create("notes", "markdown", {"path": str(wiki), "watch": True})
    await until(lambda: is_found(engine, "heron"))
    (wiki / "two.md").write_text("A crane flies over.")
    await until(lambda: is_found(engine, "crane"))
    assert (await engine.connections.list())[0].state in {"complete", "running"}


async def test_only_what_can_be_watched_is(engine: Engine, wiki: Path) -> None:
    await engine.connections.create("code", "git", {"address": str(wiki)})
    with pytest.raises(InvalidInput, match="cannot be watched"):
        await engine.connections.watch("code")
    with pytest.raises(NotFound):
        await engine.connections.watch("nothing")
    with pytest.raises(InvalidInput, match="watch"):
        await engine.connections.create("notes", "markdown", {"path": str(wiki), "watch": "maybe"})
