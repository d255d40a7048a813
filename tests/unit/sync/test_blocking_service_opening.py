"""The object that `conspectus.open` and `conspectus.connect` return."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.served import served

import conspectus
from conspectus import Settings
from conspectus.errors import InvalidInput, StoreClosed
from conspectus.sync import BlockingEngine
from conspectus.web.app import application

SETTINGS = replace(Settings(), embedder="none")
CALLS: list[Callable[[BlockingEngine], object]] = [
    lambda engine: engine.add("Late."),
    lambda engine: engine.retrieve("meeting"),
    lambda engine: engine.search("meeting"),
    lambda engine: engine.memory.count(scope=conspectus.Scope("ann")),
    lambda engine: engine.tokenizer(),
    lambda engine: engine.tasks.list(),
]


def test_it_works_at_once_until_it_is_closed(tmp_path: Path) -> None:
    engine = conspectus.open(tmp_path, settings=SETTINGS)
    engine.add("The meeting moved to Thursday.")
    used = engine.memory
    engine.close()
    engine.close()
    for call in CALLS:
        with pytest.raises(StoreClosed, match=r"^the store is closed; open it again"):
            call(engine)
    with pytest.raises(StoreClosed):
        used.count(scope=conspectus.Scope("ann"))
    with pytest.raises(StoreClosed), engine:
        pass
    with conspectus.open(tmp_path, settings=SETTINGS) as again:
        assert again.documents.count() == 1


@pytest.mark.parametrize("call", CALLS)
def test_after_its_block_every_call_says_that_it_is_closed(tmp_path: Path, call: Any) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        engine.add("The meeting moved to Thursday.")
        engine.memory.add("Prefers tea.", user="ann")
        call(engine)
    with pytest.raises(StoreClosed, match="the store is closed"):
        call(engine)


async def test_an_asynchronous_engine_says_it_too(tmp_path: Path) -> None:
    opening = conspectus.open(tmp_path, settings=SETTINGS)
    async with opening as engine:
        await engine.add("The meeting moved to Thursday.")
        assert (await engine.search("meeting")).hits == (await engine.retrieve("meeting")).hits
        with pytest.raises(InvalidInput, match="use the engine that `as` names"):
            opening.add("x")
    with pytest.raises(StoreClosed, match="the store is closed"):
        await engine.add("x")
    with pytest.raises(StoreClosed, match="the store is closed"):
        opening.add("x")
    with pytest.raises(StoreClosed):
        async with opening:
            pass


async def test_a_coroutine_is_told_what_to_write(tmp_path: Path) -> None:
    engine = conspectus.open(tmp_path / "new", settings=SETTINGS)
    with pytest.raises(InvalidInput, match=r"write `async with conspectus\.open\(\.\.\.\) as engine:`"):
        engine.add("x")
    with pytest.raises(InvalidInput, match="async with"):
        engine.memory.count(scope=conspectus.Scope("ann"))
    assert not (tmp_path / "new").exists()
    with engine:
        engine.add("A block says that blocking is meant.")
        with pytest.raises(InvalidInput, match="open for blocking calls"):
            async with engine:
                pass


async def test_a_server_is_used_in_the_same_way(tmp_path: Path) -> None:
    async with (
        conspectus.open(tmp_path, settings=SETTINGS) as engine,
        served(application(engine, SETTINGS)) as url,
    ):
        await asyncio.to_thread(use_a_server, url)
        async with conspectus.connect(url, settings=SETTINGS) as remote:
            assert len((await remote.search("meeting")).hits) == 1
        with pytest.raises(StoreClosed):
            await remote.search("meeting")


def use_a_server(url: str) -> None:
    remote = conspectus.connect(url, settings=SETTINGS)
    remote.add("The meeting moved to Thursday.")
    assert [hit.chunk.text for hit in remote.search("meeting").hits] == ["The meeting moved to Thursday."]
    assert remote.window("meeting").max_tokens == 2_000
    remote.close()
    for call in CALLS:
        with pytest.raises(StoreClosed):
            call(remote)


def test_arguments_are_refused_before_the_first_use(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^path: "):
        conspectus.open(17)  # type: ignore[arg-type]


def test_the_folder_is_the_one_of_the_time_of_the_call(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    engine = conspectus.open("notes", settings=SETTINGS)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    engine.add("The meeting moved to Thursday.")
    engine.close()
    assert (tmp_path / "notes").is_dir() and not (tmp_path / "elsewhere" / "notes").exists()


def test_a_failed_opening_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a folder")
    engine = conspectus.open(tmp_path / "notes", settings=SETTINGS)
    for _ in range(2):
        with pytest.raises(conspectus.ConspectusError):
            engine.add("x")
    (tmp_path / "notes").unlink()
    engine.add("x")
    engine.close()


def test_a_service_keeps_its_engine_open(tmp_path: Path) -> None:
    documents = conspectus.open(tmp_path, settings=SETTINGS).documents
    gc.collect()
    documents.add("The meeting moved to Thursday.")
    assert documents.count() == 1


def test_an_engine_that_nobody_refers_to_is_closed(tmp_path: Path) -> None:
    before = threading.active_count()
    conspectus.open(tmp_path, settings=SETTINGS).add("x")
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "conspectus event loop":
            thread.join(timeout=10)
    assert threading.active_count() <= before


PROGRAM = """
import sys, conspectus
engine = conspectus.open(sys.argv[1])
engine.add([f"Text {number} is about harbour {number}." for number in range(300)])
engine.memory.add("Prefers tea.", user="ann")
print(len(engine.search("harbour 7").hits))
"""


def test_a_program_that_closes_nothing_ends_and_loses_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "10\n", "")
    with conspectus.open(tmp_path) as engine:
        assert engine.documents.count() == 300
        assert engine.memory.count(user="ann") == 1
        engine.documents.wait_until_embedded()


def test_a_call_that_runs_while_the_engine_is_closed_ends_with_the_reason(tmp_path: Path) -> None:
    engine = conspectus.open(tmp_path, settings=SETTINGS)
    engine.add("x")
    faults: list[BaseException] = []
    begun = threading.Event()

    async def wait_forever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            engine.run(wait_forever())
        except conspectus.ConspectusError as fault:
            faults.append(fault)

    thread = threading.Thread(target=call)
    thread.start()
    begun.wait(10)
    engine.close()
    thread.join(10)
    assert [type(fault) for fault in faults] == [StoreClosed]
