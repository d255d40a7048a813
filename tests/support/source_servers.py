"""Servers of Debian, started in the folder that `scripts/source_servers.sh` has built. They need root."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

ROOT: Final = Path(os.environ.get("SOURCE_SERVERS", "/nonexistent"))
"""The root of the small Debian; `make test-sources` sets it."""
MAX_START_SECONDS: Final = 60
STOP_SECONDS: Final = 20


def require_source_servers() -> None:
    """Skip a test where the servers are not built."""
    if not (ROOT / "etc/debian_version").exists():
        pytest.skip("run `make test-sources`, which builds the servers")


@contextmanager
def open_folder(name: str) -> Iterator[Path]:
    """A folder below the root for the files of one server."""
    folder = ROOT / "srv" / f"{name}-{uuid4().hex[:12]}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def path_inside(path: Path) -> str:
    """The path as programs see it that run there."""
    return f"/{path.relative_to(ROOT)}"


def run_inside(*command: str, **environment: str) -> str:
    """Run a program there to its end, and return what it prints."""
    finished = subprocess.run(
        _isolate(command), capture_output=True, text=True, env=_environment(environment), check=False
    )
    assert finished.returncode == 0, (command, finished.stdout, finished.stderr)
    return finished.stdout


@contextmanager
def run_server(
    *command: str, folder: Path, is_ready: Callable[[], bool], environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A running program. It ends with all that it has started, and `folder` has its log."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            _isolate(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_environment(environment or {}),
        )
    try:
        end = time.monotonic() + MAX_START_SECONDS
        while not is_ready():
            is_late = time.monotonic() > end
            assert not is_late and process.poll() is None, (folder / "log").read_text()[-3000:]
            time.sleep(0.1)
        yield
    finally:
        process.kill()  # What it has started is killed with it.
        process.wait(STOP_SECONDS)


def choose_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _isolate(command: tuple[str, ...]) -> list[str]:
    """Return a command that runs below the root, with processes of its own that end with it."""
    proc = f"--mount-proc={ROOT / 'proc'}"
    return [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
        proc,
        "chroot",
        str(ROOT),
        *command,
    ]


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp", **extra}
