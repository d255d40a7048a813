"""The benchmark of a fleet, run for some seconds: nobody is shown what is not theirs, and nothing is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

FLEET = Path(__file__).resolve().parents[2] / "benchmarks" / "fleet.py"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--one-port"]])
def test_a_fleet_under_load_leaks_nothing_and_loses_nothing(arguments: list[str]) -> None:
    command = [sys.executable, str(FLEET), "--quick", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "leaks and losses: 0; faults: 0" in done.stdout
