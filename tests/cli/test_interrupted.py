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
