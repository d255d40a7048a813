"""Every command that a screen shows can be run as it stands, with a file or folder in place of its name."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.console.conftest import ROOT

SCREENS = ROOT / "console" / "src" / "screens"
BEFORE = r"(?:<(?:p|code|span)[^<>]*>|\")"
VARIABLES = r"(?:[A-Z_]+=\S+ )*"
WORDS = r"[a-z][^<\"`$]*(?:(?<= )\"[^\"<]*\")?"
SHOWN = re.compile(f"{BEFORE}({VARIABLES}conspectus {WORDS})")
EDGES = '{"source": "ann", "target": "team", "type": "leads"}\n'
CAPTIONS = "1\n00:00:01,000 --> 00:00:02,000\nA red car stops.\n"
ARCHIVE = '[{"type": "message", "user": "U1", "text": "When does the backup run?", "ts": "1717243200.0"}]'
PAGE = "# Backups\n\n" + "The nightly backup of the wiki runs at three and is kept for thirty days.\n" * 3
FILES = {
    "edges.jsonl": EDGES,
    "gate.srt": CAPTIONS,
    "slack/general/2024-06-01.json": ARCHIVE,
    "docs/a.md": PAGE,
}
PLACES = {
    "graph add-edges FILE": "edges.jsonl",
    "streams import FILE": "gate.srt",
    "messages import ARCHIVE": "slack",
    "add FOLDER": "docs",
}
"""Commands with a place for a file, and the file that stands there."""


def list_commands() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(SCREENS.rglob("*.tsx"))]
    commands = {command.strip() for text in texts for command in SHOWN.findall(text)}
    return sorted(command for command in commands if "eval evidence" not in command)


def test_the_commands_of_all_screens_are_found() -> None:
    commands = list_commands()
    assert {f"conspectus {ending}" for ending in PLACES} < {*commands}
    assert len(commands) >= 8


@pytest.mark.parametrize("command", list_commands())
def test_a_shown_command_runs(tmp_path: Path, command: str) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for ending, file in PLACES.items():
        if command.endswith(ending):
            command = command.replace(ending.split()[-1], file)
    words = shlex.split(command)
    begin = words.index("conspectus")
    variables = dict(word.split("=", 1) for word in words[:begin])
    environment = {
        **os.environ,
        **variables,
        "CONSPECTUS_PATH": str(tmp_path / "store"),
        "CONSPECTUS_EMBEDDER": "none",
    }
    if command.endswith("graph add-edges edges.jsonl"):
        nodes = ["conspectus", "graph", "add-node"]
        for node in ("ann", "team"):
            subprocess.run([*nodes, node], cwd=tmp_path, env=environment, check=True, capture_output=True)
    arguments = words[begin + 1 :]
    if arguments[0] == "eval":
        add = ["conspectus", "add", "docs"]
        subprocess.run(add, cwd=tmp_path, env=environment, check=True, capture_output=True)
    if arguments[-1] == "serve":
        arguments.append("--help")
    done = subprocess.run(
        ["conspectus", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
