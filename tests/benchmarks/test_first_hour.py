"""The first hour is measured by a program of its own, which starts from any folder."""

import subprocess
import sys
from pathlib import Path

from scripts.follow_readme import BLOCK, ROOT

PROGRAM = ROOT / "benchmarks" / "first_hour.py"
COUNT_STEPS = "import sys; sys.path.insert(0, sys.argv[1]); import first_hour; print(len(first_hour.STEPS))"


def run_python(folder: Path, *arguments: str | Path) -> str:
    """What Python prints, started in a folder outside of the checkout."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    ).stdout


def test_the_program_starts_outside_of_the_checkout(tmp_path: Path) -> None:
    assert "--wheel" in run_python(tmp_path, PROGRAM, "--help")


def test_each_block_of_the_readme_is_a_step(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert int(run_python(tmp_path, "-c", COUNT_STEPS, PROGRAM.parent)) == len(blocks)
