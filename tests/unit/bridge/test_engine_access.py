"""Access to an engine that is opened in a thread, borrowed from a blocking program, or joined on its loop."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.bridge.engine_access import EngineAccess, access_to
from conspectus.bridge.owned_engine import OwnedEngine
from conspectus.bridge.temporary_engine import temporary_engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, StorageError

SETTINGS = replace(Settings(), embedder="none")
FORKED_PROGRAM = """
import os, signal
from pathlib import Path
from conspectus import Settings
from conspectus.bridge.temporary_engine import temporary_engine
from conspectus.errors import ConspectusError

access = temporary_engine(Settings(embedder="none"))
list_collections = lambda engine: engine.collections.list()
access.wait(list_collections)
child = os.fork()
if not child:
    signal.alarm(60)
    try:
        access.wait(list_collections)
    except ConspectusError as error:
        print(error.code, flush=True)
    access.close()
else:
    os.waitpid(child, 0)
    print(len(list(Path(os.environ["TMPDIR"]).iterdir())), len(access.wait(list_collections)), flush=True)
"""


async def read_loop_and_thread(engine: AnyEngine) -> tuple[asyncio.AbstractEventLoop, int]:
    return asyncio.get_running_loop(), threading.get_ident()


def nested_work_runs_in_place(access: EngineAccess) -> bool:
    async def work(engine: AnyEngine) -> bool:
        return await access.run(read_loop_and_thread) == await read_loop_and_thread(engine)

    return access.wait(work)


def test_work_inside_work_runs_in_place_on_an_owned_engine() -> None:
    access = temporary_engine(SETTINGS)
    assert nested_work_runs_in_place(access)
    access.close()


def test_work_inside_work_runs_in_place_on_a_borrowed_engine(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        assert nested_work_runs_in_place(access_to(engine))


async def test_work_inside_work_runs_in_place_on_a_joined_engine(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        assert await asyncio.to_thread(nested_work_runs_in_place, access_to(engine))


async def test_a_joined_engine_refuses_to_block_its_loop(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        with pytest.raises(InvalidInput, match="use the asynchronous method"):
            access_to(engine).wait(read_loop_and_thread)


def test_an_engine_whose_loop_has_ended_is_refused(tmp_path: Path) -> None:
    async def open_and_leave() -> EngineAccess:
        async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
            return access_to(engine)

    access = asyncio.run(open_and_leave())
    with pytest.raises(InvalidInput, match="event loop that does not run"):
        access.wait(read_loop_and_thread)


def test_a_forked_child_is_refused_and_leaves_the_store_of_its_parent(tmp_path: Path) -> None:
    program = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED_PROGRAM],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (program.stdout.splitlines(), program.stderr) == (["forked_engine", "1 0"], "")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_closed_says_so(tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_and_fail() -> AsyncIterator[Engine]:
        async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
            yield engine
        raise StorageError("the disk is full")

    access = OwnedEngine(open_and_fail)
    access.wait(read_loop_and_thread)
    with pytest.raises(StorageError, match="the disk is full"):
        access.close()


async def test_work_that_nobody_waits_for_is_cancelled() -> None:
    access = temporary_engine(SETTINGS)
    started, cancelled = threading.Event(), threading.Event()

    async def sleep(_engine: AnyEngine) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    sleeping = asyncio.create_task(access.run(sleep))
    assert await asyncio.to_thread(started.wait, 30)
    sleeping.cancel()
    assert await asyncio.to_thread(cancelled.wait, 30)
    await asyncio.to_thread(access.close)


async def test_closing_cancels_what_still_runs() -> None:
    access = temporary_engine(SETTINGS)
    started = threading.Event()

    async def sleep(_engine: AnyEngine) -> None:
        started.set()
        await asyncio.sleep(60)

    sleeping = asyncio.create_task(access.run(sleep))
    assert await asyncio.to_thread(started.wait, 30)
    await asyncio.to_thread(access.close)
    with pytest.raises(asyncio.CancelledError):
        await sleeping
