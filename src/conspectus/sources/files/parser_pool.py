"""Files of binary formats, read in a child process that cannot harm this one.

A child is kept for the next file, because starting one takes longer than reading most files; it goes when
nothing comes for a while. One that dies, takes too long or says nonsense costs the file it was reading.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.records import TextPosition
from conspectus.sources.files.markdown_blocks import Extract

MODULE = "conspectus.sources.files.parser_process"
READY = b"ready\n"
STARTING_SECONDS = 60
MOST_KEPT = 2
COMPLAINT = 5_000
ANSWER_PER_BYTE = 12
OUT_OF_MEMORY = (b"MemoryError", b"memory allocation", b"allocate memory", b"out of memory")

Answer: TypeAlias = Mapping[str, Any]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """What reading one file may cost, and how many bytes it may unpack to."""

    seconds: int
    memory_bytes: int
    unpacked_bytes: int


@dataclass(slots=True, weakref_slot=True)
class Children:
    """Children that wait for files. They end with this object, or with the program."""

    limits: ParserLimits
    _idle: "list[_Child]" = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, _end_all, self._idle)

    def read(self, kind: str, data: bytes, name: str) -> Extract:
        """The text of a file of a kind that the child's program knows. Raises UnreadableFile or TooLarge."""
        reason = ""
        for child in self._candidates():
            answer = child.ask(kind, data)
            if answer is not None:
                self._keep(child)
                return _understood(answer, name)
            reason = child.end()
            if child.expired:
                break
        raise UnreadableFile(name, reason)

    def close(self) -> None:
        """End the children that wait."""
        _end_all(self._idle)

    def _candidates(self) -> "Iterator[_Child]":
        """A child that waits, if there is one, then a new one: only what a new one says is final."""
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            yield kept
        yield _Child(self.limits)

    def _keep(self, child: "_Child") -> None:
        with self._lock:
            if len(self._idle) < MOST_KEPT:
                self._idle.append(child)
                return
        child.end()


class _Child:
    """One process, in a session of its own, with no more of this one's environment than it needs."""

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._complaints, path = tempfile.mkstemp()
        Path(path).unlink()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,
        )
        self.expired = False
        self._ready = False

    def ask(self, kind: str, data: bytes) -> Answer | None:
        """The answer for one file; None if there is none in time, whatever the reason."""
        limits = self._limits
        request = {"kind": kind, "size": len(data), "seconds": limits.seconds}
        request |= {"memory_bytes": limits.memory_bytes, "unpacked": limits.unpacked_bytes}
        try:
            self._ready = self._ready or self._within(STARTING_SECONDS, self._is_ready)
            head = json.dumps(request).encode() + b"\n"
            return self._within(limits.seconds, lambda: self._exchange(head, data)) if self._ready else None
        except (OSError, ValueError):
            return None

    def end(self) -> str:
        """Kill it with all that it started; why it gave no answer, if it gave none."""
        self._kill()
        code = self._process.wait()
        written = os.fstat(self._complaints).st_size
        complaints = os.pread(self._complaints, COMPLAINT, max(0, written - COMPLAINT))
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        os.close(self._complaints)
        return self._reason(code, complaints)

    def _within(self, seconds: int, act: Callable[[], Result]) -> Result:
        """What the act gives; if it takes longer, the child is killed, and with it what the act waits for."""
        timer = threading.Timer(seconds, self._expire)
        timer.start()
        try:
            return act()
        finally:
            timer.cancel()
            timer.join()

    def _is_ready(self) -> bool:
        source = self._process.stdout
        return source is not None and source.readline(len(READY)) == READY

    def _exchange(self, head: bytes, data: bytes) -> Answer | None:
        source, target = self._process.stdout, self._process.stdin
        if source is None or target is None:
            return None
        for part in (head, data):
            target.write(part)
        target.flush()
        line = source.readline(ANSWER_PER_BYTE * self._limits.unpacked_bytes)
        answer = json.loads(line)
        return answer if isinstance(answer, dict) else None

    def _expire(self) -> None:
        self.expired = True
        self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _reason(self, code: int, complaints: bytes) -> str:
        limits = self._limits
        last = complaints.decode(errors="replace").strip().rsplit("\n", 1)[-1][:200]
        stopped = signal.Signals(-code).name if code < 0 else str(code)
        if not self._ready:
            return f"its reader could not be started ({stopped}): {last}"
        if self.expired or code == -signal.SIGXCPU:
            return f"takes more than {limits.seconds} seconds to read"
        if any(words in complaints for words in OUT_OF_MEMORY):
            return f"takes more than {limits.memory_bytes} bytes of memory to read"
        if code < 0:
            return f"its reader crashed ({stopped}): damaged, or over {limits.memory_bytes} bytes of memory"
        return f"its reader failed: {last}"


def _end_all(children: list[_Child]) -> None:
    while children:
        children.pop().end()


def _understood(answer: Answer, name: str) -> Extract:
    match answer:
        case {"extract": fields}:
            places = tuple(
                TextPosition(p["start"], p["page"], tuple(p["headings"])) for p in fields["places"]
            )
            return Extract(**{**fields, "places": places})
        case {"size": int(size), "limit": int(limit)}:
            raise TooLarge(f"{name}, unpacked,", size=size, limit=limit)
        case {"unsupported": str(reason)}:
            raise UnsupportedContent(name, reason)
        case _:
            raise UnreadableFile(name, str(answer.get("refused")))
