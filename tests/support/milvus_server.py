"""A real Milvus server for tests: `milvus-lite server` in a process that can be killed and started again."""

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

_HOST = "127.0.0.1"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


class MilvusProcess:
    """The server over a folder, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where it answers."""
        return f"http://{_HOST}:{self.port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder)]
        command += ["--host", _HOST, "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + _START_SECONDS
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("milvus-lite server did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_SECONDS)
            self._process = None


@contextmanager
def milvus_server(folder: Path) -> Iterator[MilvusProcess]:
    """A server that runs for the block. Skips the test where Milvus Lite is missing, but not under CI."""
    if find_spec("milvus_lite") is None and os.environ.get("CI") != "true":
        pytest.skip("milvus-lite is not installed")
    server = MilvusProcess(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    """Return a port below the ephemeral range: no other program gets it while the server is down."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((_HOST, port))
            return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((_HOST, port)) == 0
