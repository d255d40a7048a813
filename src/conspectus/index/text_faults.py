"""Find the texts that an analyzer cannot handle, in a process of its own."""

import json
import signal
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from typing import Final

from conspectus.errors import TEXT_FAULTS, StorageError
from conspectus.index.bm25 import Analyse

CRASHES: Final = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL})
"""Signals that end a process for what its own code did. SIGKILL, for want of memory, is not one."""


class FaultFinder:
    """Analyzes texts in a fresh process that calls `answer_faults`."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)

    async def __call__(self, language: str | None, texts: Sequence[str]) -> list[str | None]:
        """Return for each text the name of the error that it raises, or of the signal that it ends with.

        Raises StorageError if the process fails for another reason.
        """
        faults: list[str | None] = []
        while len(faults) < len(texts):
            faults += await self._ask(language, texts[len(faults) :])
        return faults

    async def _ask(self, language: str | None, texts: Sequence[str]) -> list[str | None]:
        """Return the faults of the first texts: all of them unless the process crashes."""
        request = json.dumps({"language": language, "texts": texts}).encode() + b"\n"
        child = await create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        try:
            output, _ = await child.communicate(request)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        faults: list[str | None] = [json.loads(line) for line in output.split(b"\n")[:-1]]
        if len(faults) == len(texts):
            return faults
        if -(child.returncode or 0) not in CRASHES:
            raise StorageError(f"texts could not be analyzed: a process ended with {child.returncode}")
        return [*faults, signal.Signals(-(child.returncode or 0)).name]


def answer_faults(analyser: Callable[[str | None], Analyse]) -> None:
    """Answer the request of a `FaultFinder`: a line of JSON for each text."""
    request = json.loads(sys.stdin.buffer.readline())
    analyse = analyser(request["language"])
    for text in request["texts"]:
        sys.stdout.write(json.dumps(_fault(text, analyse)) + "\n")
        sys.stdout.flush()


def _fault(text: str, analyse: Analyse) -> str | None:
    try:
        analyse(text)
    except TEXT_FAULTS as fault:
        return type(fault).__name__
    return None
