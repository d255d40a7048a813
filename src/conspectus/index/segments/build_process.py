"""Build segments in a child process."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TypeAlias

from conspectus.errors import IndexReplaced, StorageError, UnindexableText
from conspectus.index.bm25 import Analyse
from conspectus.index.segments.build import CLOSED, BuildRequest, BuildResult, build_segment
from conspectus.index.segments.postings import MakePostings
from conspectus.model.ids import CollectionId
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Progress, Reader, Records

NICENESS = 10
"""Priority of a build in another process, as for `nice`."""


class SubprocessBuilder:
    """Builds in a child process that reads the request as a line from standard input and calls `answer`.

    `first` is a line that the child reads before the request, for secrets that must not be in its command
    line. `postings` makes those of many texts in another child.
    """

    def __init__(
        self, command: Sequence[str], *, first: str | None = None, postings: MakePostings = lambda *_: None
    ) -> None:
        self._command = tuple(command)
        self.postings = postings
        self._first = "" if first is None else f"{first}\n"
        self._children: set[Process] = set()
        self._closed = False

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        """Build in a child process, which is killed when the call is cancelled.

        Raises StorageError, or IndexReplaced if the index is closed or deleted.
        """
        if self._closed:
            raise IndexReplaced(CLOSED)
        child = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        self._children.add(child)
        try:
            if self._closed:
                # It was closed while the child started, and has not killed it.
                raise IndexReplaced(CLOSED)
            return await _converse(child, f"{self._first}{request.to_json()}\n", progress)
        except StorageError as fault:
            if self._closed:
                raise IndexReplaced(CLOSED) from fault
            raise
        finally:
            self._children.discard(child)
            await _stop(child)

    async def close(self) -> None:
        """Kill every child process and wait for it."""
        self._closed = True
        for child in list(self._children):
            await _stop(child)


OpenRecords: TypeAlias = Callable[..., Awaitable[Records]]
AnalyzerOf: TypeAlias = Callable[[str | None], Analyse]


async def answer_for_collection(collection: str, open_records: OpenRecords, analyzer_of: AnalyzerOf) -> None:
    """Process one request on standard input in the child of a SubprocessBuilder.

    `collection` is its id, the time when it was created, its language and its embedding space, as JSON. The
    first line of the input is the address of the records.
    """

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    collection_id, created, language, space = json.loads(collection)
    records = await open_records(json.loads(sys.stdin.readline()), connections=2)
    try:
        reader = records.reader(
            CollectionId(collection_id), space and EmbeddingSpace(**space), datetime.fromisoformat(created)
        )
        await answer(reader, analyzer_of(language), sys.stdin.readline(), write=write)
    finally:
        await records.close()


async def answer(reader: Reader, analyse: Analyse, request: str, *, write: Callable[[str], object]) -> None:
    """Process one request in the child: build at low priority, and write steps and result as JSON lines."""
    os.nice(NICENESS)
    parsed = BuildRequest.from_json(request)

    def progress(_: str, done: int, total: int) -> None:
        write(json.dumps({"done": done, "total": total}) + "\n")

    try:
        result = await build_segment(reader, parsed, analyse, progress=progress)
    except IndexReplaced as fault:
        write(json.dumps({"gone": str(fault)}) + "\n")
    except UnindexableText as fault:
        write(json.dumps({"unindexable": fault.fault}) + "\n")
    else:
        write(json.dumps(asdict(result)) + "\n")


async def _converse(child: Process, output: str, progress: Progress | None) -> BuildResult:
    if child.stdin is None or child.stdout is None or child.stderr is None:
        raise StorageError("the builder has no pipes")
    complaints = asyncio.create_task(child.stderr.read())
    result = None
    try:
        child.stdin.write(output.encode())
        child.stdin.close()
        async for line in child.stdout:
            message = json.loads(line)
            if "sequence" in message:
                result = BuildResult(**message)
            elif "gone" in message:
                raise IndexReplaced(message["gone"])
            elif "unindexable" in message:
                raise UnindexableText(message["unindexable"])
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
