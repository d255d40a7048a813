"""Ctrl-C while the program loads, while it works and when it is done."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, os, signal, sys

moment = sys.argv.pop(1)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            interrupt()

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
if moment == "exit":
    atexit.register(interrupt)
from conspectus.cli.entry import main
main()
"""
LOADING = ["typer", "numpy.linalg"]
WORKING = [pytest.param("conspectus.records.store", marks=pytest.mark.slow), "onnxruntime"]


@pytest.mark.parametrize("moment", [*LOADING, *WORKING, "exit"])
def test_an_interrupt_ends_the_program_quietly(moment: str, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text("A release is deployed on Tuesdays.", encoding="utf-8")
    arguments = [moment, "--data-dir", "data", "add", "page.txt"]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 130, ran.stderr


SLOW_MODEL = """
import os, signal, sys, threading
from conspectus.ingest.embedding_backfill import Backfill
from conspectus.cli.entry import main


async def interrupt(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    await __import__("asyncio").sleep(60)


Backfill.wait_until_done = interrupt
main()
"""


def test_an_interrupt_while_it_embeds_says_what_is_stored_and_how_to_go_on(tmp_path: Path) -> None:
    for number in range(40):
        text = f"Ship {number} enters the harbour. " * 100
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", SLOW_MODEL, "--data-dir", "data", "add", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 130, ran.stderr
    assert "stored in 'default': 40 documents, pending: " in ran.stderr
    assert " vectors; what is stored is not added twice; " in ran.stderr
    assert ran.stderr.rstrip().splitlines()[-1].endswith("go on: conspectus --data-dir data add .")


SLOW_FILES = """
import os, signal
from conspectus.ingest.files import Intake
from conspectus.cli.entry import main

take = Intake.take


async def take_two(intake: Intake, root: object, file: object) -> None:
    if len(root.names) == 2:
        await intake.flush(root)
        os.kill(os.getpid(), signal.SIGINT)
        await __import__("asyncio").sleep(60)
    await take(intake, root, file)


Intake.take = take_two
main()
"""


SLOW_SUBTITLES = """
import os, signal
from conspectus.engine.streams import StreamService
from conspectus.cli.entry import main

import_file = StreamService._import_file


async def import_two(service: StreamService, counts: object, *arguments: object, **options: object) -> None:
    if len(counts.streams) == 2:
        os.kill(os.getpid(), signal.SIGINT)
        await __import__("asyncio").sleep(60)
    await import_file(service, counts, *arguments, **options)


StreamService._import_file = import_two
main()
"""


def test_an_interrupted_import_of_streams_says_how_many_files_were_not_read(tmp_path: Path) -> None:
    names = [f"{number}.srt" for number in range(5)]
    for name in names:
        text = f"1\n00:00:01,000 --> 00:00:03,000\nShip {name} enters.\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", SLOW_SUBTITLES, "--data-dir", "data", "streams", "import", *names]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 130, ran.stderr
    last = ran.stderr.rstrip().splitlines()[-1]
    assert "; 3 of 5 files were not read; go on: conspectus --data-dir data streams import 0.srt" in last


def test_an_interrupt_while_it_reads_says_how_many_files_were_not_read(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text(f"Ship {number} enters.", encoding="utf-8")
    command = [sys.executable, "-c", SLOW_FILES, "--data-dir", "data", "add", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 130, ran.stderr
    last = ran.stderr.rstrip().splitlines()[-1]
    assert "stored in 'default': 2 documents, pending: " in last
    assert last.endswith("; 3 of 5 files were not read; go on: conspectus --data-dir data add .")
