"""The memory service for Google ADK, in the environment of products that need other versions."""

import json
import subprocess
from pathlib import Path

from tests.support.foreign_environment import stores_python

PROGRAM = Path(__file__).resolve().parents[2] / "support" / "google_adk_program.py"


def test_an_agent_remembers_the_sessions_of_its_user(tmp_path: Path) -> None:
    command = [stores_python(), PROGRAM, tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    done = json.loads(ran.stdout.splitlines()[-1])
    assert "Backups run at two." in done.pop("said")
    assert done == {
        "nothing": [],
        "texts": ["Backups run at two.", "When do backups run?"],
        "answer": ["model", "2026-09-21T14:13:20+00:00"],
        "others": [[], []],
        "kept": 2,
        "note": ["Ann likes coffee.", {"m": 2, "n": 1}],
        "still": True,
        "gone": True,
    }
