"""Killed with -9 while it writes and deletes: nothing acknowledged is lost, nothing is half there."""

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus.settings import Settings
from tests.faults.writer import KEYS, subject, text_of

WRITER = Path(__file__).with_name("writer.py")
SETTINGS = replace(Settings(), embedder="none", chunk_size=200, chunk_overlap=0, tail_chunks=40)


def run_and_kill(path: Path, seed: int, seconds: float) -> list[list[str]]:
    """What the writer said before it was killed, some time after its first acknowledged write."""
    command = [sys.executable, str(WRITER), str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(2)]
        time.sleep(seconds)
        writer.kill()
        lines += writer.stdout.readlines()
    return [line.split() for line in lines if line.endswith("\n")]


def note_possible_states(expected: dict[int, set[int | None]], reported: list[list[str]]) -> None:
    """Take in what was said: an acknowledged state is certain, one that was only tried is possible."""
    for state, operation, key, version in reported:
        after = int(version) if operation == "put" else None
        if state == "done":
            expected[int(key)] = {after}
        else:
            expected[int(key)] = expected[int(key)] | {after}


async def verify(path: Path, expected: dict[int, set[int | None]]) -> None:
    async with conspectus.open(path, settings=SETTINGS) as engine:
        report = await engine.maintenance.check()
        assert report.clean, report
        documents = {
            document.key: document for document in (await engine.documents.list(limit=1000)).documents
        }
        for key, possible in expected.items():
            stored = documents.get(str(key))
            results = await engine.retrieve(subject(key), limit=100)
            texts = [hit.chunk.text for hit in results.hits]
            if stored is None:
                assert None in possible
                assert texts == []
                continue
            version = int((await engine.documents.get_text(stored.id)).split("x", 1)[1].split(" ", 1)[0])
            assert version in possible
            assert await engine.documents.get_text(stored.id) == text_of(key, version)
            assert len(texts) == stored.chunks
            assert all(f"edition{key}x{version} " in text for text in texts)


async def kill_repeatedly(path: Path, times: int) -> None:
    chance = random.Random(times)
    expected: dict[int, set[int | None]] = {key: {None} for key in range(KEYS)}
    for seed in range(times):
        reported = run_and_kill(path, seed, chance.uniform(0.0, 1.5))
        assert reported, "the writer acknowledged nothing before it was killed"
        note_possible_states(expected, reported)
        await verify(path, expected)


async def test_nothing_acknowledged_is_lost_at_two_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 2)


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_at_fifty_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 50)
