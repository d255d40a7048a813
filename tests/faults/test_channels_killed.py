"""Killed with -9 while messages come in, one by one or by the archive: nothing acknowledged is lost."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.text.hashing import content_hash
from tests.faults.poster import SETTINGS, WORDS

POSTER = Path(__file__).with_name("poster.py")
CHANNEL = "help"


def run_and_kill(store: Path, seconds: float, *arguments: str) -> list[list[str]]:
    """What the program said before it was killed, some time after it was ready."""
    command = [sys.executable, str(POSTER), str(store), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as poster:
        assert poster.stdout is not None
        assert poster.stdout.readline() == "ready\n"
        time.sleep(seconds)
        poster.kill()
        lines = poster.stdout.readlines()
    return [line.rstrip("\n").split(" ", 3) for line in lines if line.endswith("\n")]


def write_archive(path: Path, messages: int) -> Path:
    """One message a line, in two channels; half of them say what they answer."""
    chance = random.Random(messages)
    rows = []
    for number in range(messages):
        answered = {"reply_to": str(chance.randrange(number))} if number and number % 2 else {}
        text = " ".join(chance.choices(WORDS, k=6)) + ("?" if number % 3 else "")
        at = f"2026-03-{1 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
        who = f"author{chance.randrange(5)}"
        channel = "even" if chance.random() < 0.5 else "odd"
        rows.append(
            {"channel": channel, "id": str(number), "text": text, "author": who, "time": at, **answered}
        )
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


async def stored_messages(engine: Engine) -> dict[tuple[str, str], tuple[object, ...]]:
    """All messages with their threads and what they answer."""
    messages: dict[tuple[str, str], tuple[object, ...]] = {}
    after = None
    names = {source.id: source.name for source in await engine.collections.list_sources()}
    while True:
        page = await engine.documents.list(after=after, limit=1_000)
        for document in page.documents:
            key = (names[document.source], document.key)
            assert key not in messages
            messages[key] = (document.thread, document.metadata, document.occurred, document.content_hash)
        after = page.next
        if after is None:
            return messages


async def kill_imports(folder: Path, *, messages: int, times: int) -> None:
    export = write_archive(folder / "log.jsonl", messages)
    async with conspectus.open(folder / "whole", settings=SETTINGS) as engine:
        await engine.channels.import_archive(export)
        complete = await stored_messages(engine)
    assert len(complete) == messages
    chance = random.Random(times)
    for _ in range(times):
        run_and_kill(folder / "cut", chance.uniform(0.0, min(1.2, messages / 2_000)), "import", str(export))
    async with conspectus.open(folder / "cut", settings=SETTINGS) as engine:
        report = await engine.channels.import_archive(export)
        assert report.added + report.unchanged == messages
        assert await stored_messages(engine) == complete
        assert (await engine.maintenance.check()).clean
        again = await engine.channels.import_archive(export)
        assert (again.added, again.replaced, again.unchanged) == (0, 0, messages)


async def kill_posts(folder: Path, times: int) -> None:
    chance = random.Random(times)
    possible: dict[str, set[str | None]] = {}
    for seed in range(times):
        reported = run_and_kill(
            folder / "store", chance.uniform(0.3, 1.5), "post", CHANNEL, str(seed), "100000"
        )
        for state, operation, key, text in reported:
            after = content_hash(text) if operation == "put" else None
            possible[key] = {after} if state == "done" else possible.get(key, {None}) | {after}
        async with conspectus.open(folder / "store", settings=SETTINGS) as engine:
            assert (await engine.maintenance.check()).clean
            hashes = {key: fields[-1] for (_, key), fields in (await stored_messages(engine)).items()}
            assert hashes.keys() <= possible.keys()
            assert all(hashes.get(key) in states for key, states in possible.items())
    assert possible


async def test_an_import_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    await kill_imports(tmp_path, messages=1_000, times=2)


@pytest.mark.slow
async def test_posts_that_were_acknowledged_are_there(tmp_path: Path) -> None:
    await kill_posts(tmp_path, 2)


@pytest.mark.slow
async def test_an_import_that_is_killed_again_and_again(tmp_path: Path) -> None:
    await kill_imports(tmp_path, messages=8_000, times=12)


@pytest.mark.slow
async def test_posts_are_killed_again_and_again(tmp_path: Path) -> None:
    await kill_posts(tmp_path, 25)
