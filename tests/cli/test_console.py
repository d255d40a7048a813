"""`conspectus console`: a server for this machine, and the browser that it opens."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from conspectus import sync
from conspectus.settings import Settings
from tests.waiting import PATIENCE

PROGRAM = [sys.executable, "-c", "from conspectus.cli.entry import main; main()", "console"]


@contextmanager
def running_console(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The command on a data directory, which is interrupted at the end."""
    with subprocess.Popen(
        [*PROGRAM, "--data-dir", str(folder), *arguments],
        env={**os.environ, "CONSPECTUS_EMBEDDER": "none", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def install_browser(folder: Path, opened: Path) -> dict[str, str]:
    """A browser that writes down what it is to open."""
    program = folder / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    program.chmod(0o755)
    return {"BROWSER": f"{program} %s"}


def test_a_browser_opens_the_console_and_needs_no_key(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    with running_console(tmp_path / "data", **install_browser(tmp_path, opened)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.fullmatch(
            r"The console is at (http://127\.0\.0\.1:\d+)/console; Ctrl\+C ends it\.\n", line
        )
        assert match, line
        assert opened.read_text() == f"{match[1]}/console\n"
        me = httpx.get(f"{match[1]}/api/v1/me", timeout=PATIENCE)
        assert me.json()["owner"] is True
        page = httpx.get(f"{match[1]}/console", timeout=PATIENCE)
        assert page.headers["content-type"].startswith("text/html")
        assert (
            httpx.get(f"{match[1]}/api/v1/me", headers={"Origin": "http://evil.example"}).status_code == 403
        )
    assert process.returncode == 0


def test_with_accounts_the_console_asks_for_a_key_and_opens_no_browser_if_told_so(tmp_path: Path) -> None:
    with sync.open(tmp_path / "data", settings=Settings(embedder="none")) as engine:
        key = engine.keys.create_first()
    assert key is not None
    opened = tmp_path / "opened"
    with running_console(
        tmp_path / "data", "--no-open", "--json", **install_browser(tmp_path, opened)
    ) as process:
        assert process.stdout is not None
        announcement = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        assert announcement["key"] is None
        with httpx.Client(base_url=f"{announcement['address']}/api/v1", timeout=PATIENCE) as client:
            assert client.get("/me").status_code == 401
            assert client.post("/session", json={"key": key.secret}).json()["owner"] is True
            assert client.get("/me").json()["owner"] is True
    assert (process.returncode, opened.exists()) == (0, False)
