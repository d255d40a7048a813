"""A command line on a store of its own, with real files to take in."""

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from conspectus.cli.main import build_app


@dataclass(frozen=True)
class Outcome:
    """What one command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


@cache
def program() -> Any:
    """All commands; reading their signatures takes longer than most of them."""
    return get_command(build_app())


@dataclass(frozen=True)
class Shell:
    """Runs commands in one folder."""

    folder: Path

    def __call__(self, *arguments: str | Path, typed: str | bytes | None = None, **settings: str) -> Outcome:
        environment = {"CONSPECTUS_PATH": str(self.folder / "data"), "CONSPECTUS_EMBEDDER": "none"}
        runner = CliRunner(env={**environment, "COLUMNS": "160", **settings})
        with runner.isolation(input=typed) as (out, err, _):
            with pytest.raises(SystemExit) as ended:
                program().main(list(map(str, arguments)))
            sys.stdout.flush()
            sys.stderr.flush()
            return Outcome(ended.value.code, out.getvalue().decode(), err.getvalue().decode())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "backups.md").write_text("# Backups\n\nThe backup runs every night at two.\n", encoding="utf-8")
    (folder / "releases.md").write_text("# Releases\n\nWe deploy on Tuesdays.\n", encoding="utf-8")
    rows = [
        {"id": n, "text": f"ticket {n} about printers", "state": "open" if n % 2 else "done"}
        for n in range(4)
    ]
    (folder / "tickets.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


@pytest.fixture
def filled(shell: Shell, notes: Path) -> Shell:
    assert shell("add", notes).code == 0
    return shell
