"""Where segments are built: in this process, or in a child that shares neither lock nor interpreter."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Protocol

from conspectus.errors import CollectionGone, StorageError
from conspectus.index.bm25 import Analyse
from conspectus.index.segments.build import BuildRequest, BuildResult, build_segment
from conspectus.ports import Progress, Reader

_NICENESS = 10
CLOSED = "the index was closed: its collection is deleted, or has another index by now"


class Builder(Protocol):
    """Runs `build_segment` somewhere."""

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        """Build and replace the manifest. Raises StorageError, or CollectionGone where it is deleted."""
        ...

    async def close(self) -> None:
        """Stop what is being built."""
        ...


class LocalBuilder:
    """Builds in this process, in threads: for tests and small collections."""

    def __init__(self, reader: Reader, analyse: Analyse) -> None:
        self._reader = reader
        self._analyse = analyse

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        """Build here."""
        return await build_segment(self._reader, request, self._analyse, progress=progress)

    async def close(self) -> None:
        """Nothing to stop that cancelling does not stop."""


class SubprocessBuilder:
    """Builds in a child that reads the request as a line from its input and calls `answer`.

    `first` is a line that the child reads before the request: what others must not see in its command.
    """

    def __init__(self, command: Sequence[str], *, first: str | None = None) -> None:
        self._command = tuple(command)
        self._first = "" if first is None else f"{first}\n"
        self._children: set[Process] = set()
        self._closed = False

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        """Build in a child, which dies with this call when it is cancelled.

        Raises StorageError, or CollectionGone where the index is closed or deleted.
        """
        if self._closed:
            raise CollectionGone(CLOSED)
        child = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        self._children.add(child)
        try:
            return await _converse(child, f"{self._first}{request.to_json()}\n", progress)
        except StorageError as fault:
            if self._closed:
                raise CollectionGone(CLOSED) from fault
            raise
        finally:
            self._children.discard(child)
            await _stop(child)

    async def close(self) -> None:
        """Kill every child and wait for it."""
        self._closed = True
        for child in list(self._children):
            await _stop(child)


async def answer(reader: Reader, analyse: Analyse, request: str, *, write: Callable[[str], object]) -> None:
    """The child's side, giving way to queries: build, write steps and the result as lines of JSON."""
    os.nice(_NICENESS)
    parsed = BuildRequest.from_json(request)

    def progress(_: str, done: int, total: int) -> None:
        write(json.dumps({"done": done, "total": total}) + "\n")

    try:
        result = await build_segment(reader, parsed, analyse, progress=progress)
    except CollectionGone as fault:
        write(json.dumps({"gone": str(fault)}) + "\n")
    else:
        write(json.dumps(asdict(result)) + "\n")


async def _converse(child: Process, said: str, progress: Progress | None) -> BuildResult:
    if child.stdin is None or child.stdout is None or child.stderr is None:
        raise StorageError("the builder has no pipes")
    complaints = asyncio.create_task(child.stderr.read())
    result = None
    try:
        child.stdin.write(said.encode())
        child.stdin.close()
        async for line in child.stdout:
            message = json.loads(line)
            if "sequence" in message:
                result = BuildResult(**message)
            elif "gone" in message:
                raise CollectionGone(message["gone"])
            elif progress:
                progress("index", message["done"], message["total"])
        code = await child.wait()
        text = (await complaints).decode(errors="replace").strip()
    finally:
        complaints.cancel()
    if code or result is None:
        raise StorageError(f"building the index failed with status {code}: {text[-2000:]}")
    return result


async def _stop(child: Process) -> None:
    if child.returncode is None:
        child.kill()
        await child.wait()
