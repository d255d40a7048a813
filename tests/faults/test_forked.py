"""An engine in a child that was forked: an error that says what to do, and the parent goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

BLOCKING = """
import os, signal, sys
from conspectus import Settings, sync
from conspectus.errors import ConspectusError

def tried(work):
    signal.alarm(60)
    try:
        work()
    except ConspectusError as error:
        print(error.code, flush=True)

with {opened} as engine:
    child = os.fork()
    if not child:
        tried(lambda: engine.collections.list())
        tried(lambda: next(engine.streams.subscribe(stream="s")))
    else:
        os.waitpid(child, 0)
        {after}
print("child ended" if not child else "parent ended", flush=True)
"""
ASYNC = """
import asyncio, os, signal, sys
import conspectus
from conspectus import Settings
from conspectus.errors import ConspectusError

async def main():
    opened = {opened}
    engine = await opened.__aenter__()
    return opened, engine

loop = asyncio.new_event_loop()
opened, engine = loop.run_until_complete(main())
child = os.fork()
if not child:
    signal.alarm(60)
    try:
        asyncio.run(engine.collections.list())
    except ConspectusError as error:
        print(error.code, flush=True)
    os._exit(0)
os.waitpid(child, 0)
{after}
loop.run_until_complete(opened.__aexit__(None, None, None))
print("parent ended", flush=True)
"""
SETTINGS = "settings=Settings(embedder='none')"
REMOTE = "connect('http://127.0.0.1:9', api_key='k')"


def run_program(program: str, folder: Path) -> list[str]:
    """What a program prints, line by line."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    ("opened", "after"),
    [
        (f"sync.open('data', {SETTINGS})", "print(len(engine.collections.list()))"),
        (f"sync.{REMOTE}", "print(0)"),
    ],
    ids=["here", "remote"],
)
def test_a_blocking_engine_refuses_to_work_in_a_forked_child(opened: str, after: str, tmp_path: Path) -> None:
    lines = run_program(BLOCKING.format(opened=opened, after=after), tmp_path)
    assert lines == ["forked_engine", "forked_engine", "child ended", "0", "parent ended"]


@pytest.mark.parametrize(
    ("opened", "after"),
    [
        (
            f"conspectus.open('data', {SETTINGS})",
            "print(len(loop.run_until_complete(engine.collections.list())))",
        ),
        (f"conspectus.{REMOTE}", "print(0)"),
    ],
    ids=["here", "remote"],
)
def test_an_engine_refuses_to_work_in_a_forked_child(opened: str, after: str, tmp_path: Path) -> None:
    lines = run_program(ASYNC.format(opened=opened, after=after), tmp_path)
    assert lines == ["forked_engine", "0", "parent ended"]
