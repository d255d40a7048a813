"""A command line on a store of its own, with real files to take in."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from conspectus.cli.main import build_app

PROGRAM = [sys.executable, "-c", "from conspectus.cli.entry import main; main()"]


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


@dataclass(frozen=True)
class Server:
    """A server that runs, with the key of its owner."""

    url: str
    key: str

    def settings(self, **others: str) -> dict[str, str]:
        return {"CONSPECTUS_URL": self.url, "CONSPECTUS_API_KEY": self.key, **others}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of this process, with accounts; each test has a collection of its own."""
    folder = tmp_path_factory.mktemp("server")
    environment = {**os.environ, "CONSPECTUS_EMBEDDER": "none", "CONSPECTUS_LOG_LEVEL": "critical"}
    command = [*PROGRAM, "serve", "--data-dir", str(folder / "data"), "--port", "0", "--json"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        lines = ""
        while not lines.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "the server ended"
            lines += line
        opened = json.loads(lines)
        yield Server(opened["address"], opened["key"])
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    assert process.returncode == 0


@dataclass(frozen=True)
class Remote:
    """Runs commands that ask the server, in a collection of their own."""

    shell: Shell
    server: Server
    collection: str

    def __call__(self, *arguments: str | Path, typed: str | None = None, **others: str) -> Outcome:
        settings = self.server.settings(CONSPECTUS_DEFAULT_COLLECTION=self.collection, **others)
        return self.shell(*arguments, typed=typed, **settings)


@pytest.fixture
def remote(shell: Shell, server: Server, request: pytest.FixtureRequest) -> Remote:
    return Remote(shell, server, f"{request.module.__name__}.{request.node.name}")
