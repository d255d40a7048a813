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


def test_an_interrupt_while_it_reads_says_how_many_files_were_not_read(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text(f"Ship {number} enters.", encoding="utf-8")
    command = [sys.executable, "-c", SLOW_FILES, "--data-dir", "data", "add", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 130, ran.stderr
    last = ran.stderr.rstrip().splitlines()[-1]
    assert "stored in 'default': 2 documents, pending: " in last
    assert last.endswith("; 3 of 5 files were not read; go on: conspectus --data-dir data add .")
