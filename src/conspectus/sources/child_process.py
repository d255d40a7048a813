"""Modules of ours in processes of their own, which a timeout ends, and whose crash ends nothing else."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

from conspectus.deferred import dataclass

MAX_COMPLAINT_BYTES = 5_000
MEMORY_COMPLAINTS = (b"MemoryError", b"memory allocation", b"allocate memory", b"out of memory", b"bad_alloc")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a child ended: its exit code (negative for a signal), and the end of what it wrote to stderr."""

    code: int
    complaints: bytes

    @property
    def stopped_by(self) -> str:
        """The name of the signal that ended it, or its exit code."""
        return signal.Signals(-self.code).name if self.code < 0 else str(self.code)

    @property
    def last_complaint(self) -> str:
        """The last line that it wrote to stderr, cut to 200 characters."""
        return self.complaints.decode(errors="replace").strip().rsplit("\n", 1)[-1][:200]

    @property
    def lacked_memory(self) -> bool:
        """Whether it complained about too little memory."""
        return any(words in self.complaints for words in MEMORY_COMPLAINTS)


class ChildProcess:
    """A module of this package in a session of its own, with a minimal environment."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        stdin: IO[bytes] | int = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._complaints, path = tempfile.mkstemp()
        Path(path).unlink()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(environment or {})},
            start_new_session=True,
        )
        self.stdin = self._process.stdin
        self.stdout = self._process.stdout
        self.expired = False

    def run_within(self, seconds: float, act: Callable[[], Result]) -> Result:
        """Return the result of the call. On a timeout the child is killed, which ends the call."""
        timer = threading.Timer(seconds, self._expire)
        timer.start()
        try:
            return act()
        finally:
            timer.cancel()
            timer.join()

    def kill(self) -> None:
        """Kill the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> ProcessEnd:
        """Kill the process, if it runs, and return how it ended."""
        self.kill()
        code = self._process.wait()
        written = os.fstat(self._complaints).st_size
        complaints = os.pread(self._complaints, MAX_COMPLAINT_BYTES, max(0, written - MAX_COMPLAINT_BYTES))
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        os.close(self._complaints)
        return ProcessEnd(code, complaints)

    def _expire(self) -> None:
        self.expired = True
        self.kill()
