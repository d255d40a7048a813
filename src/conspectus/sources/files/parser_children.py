"""Child processes in which files of binary formats are read, so that a crash ends only one reading."""

import json
import signal
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.records import TextPosition
from conspectus.settings import Settings
from conspectus.sources.child_process import ChildProcess, ProcessEnd
from conspectus.sources.files.extract import Extract, Member
from conspectus.sources.files.ocr import recognition_problem

PARSER_MODULE = "conspectus.sources.files.parser_process"
READY = b"ready\n"
START_SECONDS = 60
MAX_IDLE = 2
MAY_BE_RECOGNIZED = frozenset({"pdf", "picture"})
ANSWER_BYTES_PER_BYTE = 12

Answer: TypeAlias = Mapping[str, Any]


@dataclass(slots=True, weakref_slot=True)
class Children:
    """Child processes that read files of binary formats. They end with this object, or with the program.

    A child is reused for the next file, because starting one takes longer than reading most files, and ends
    when it was idle for a while. If one crashes, times out or returns invalid output, only its current file
    is lost.
    """

    limits: Settings
    _idle: "list[_Child]" = field(default_factory=list)
    _recognizing: "list[_Child]" = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, _end_all, self._idle)
        weakref.finalize(self, _end_all, self._recognizing)

    def read(self, kind: str, data: bytes, name: str) -> Extract:
        """Return the text of a file of a binary format. Raises UnreadableFile or TooLarge."""
        problem = ""
        if kind in MAY_BE_RECOGNIZED:
            problem = recognition_problem(self.limits.ocr_languages, self.limits.ocr_data)
        if kind == "picture" and problem:
            raise UnreadableFile(name, problem)
        answer = self._ask(kind, data, name, problem=problem, recognizes=kind == "picture")
        if "recognizer_needed" in answer:
            answer = self._ask(kind, data, name, problem="", recognizes=True)
        return _extract_from(answer, name)

    def close(self) -> None:
        """Stop the idle children."""
        _end_all(self._idle)
        _end_all(self._recognizing)

    def _ask(self, kind: str, data: bytes, name: str, *, problem: str, recognizes: bool) -> Answer:
        """Return the answer of a child, one that has Tesseract loaded if it `recognizes` pages."""
        idle = self._recognizing if recognizes else self._idle
        reason = ""
        for child in self._candidates(idle, recognizes=recognizes):
            answer = child.ask(kind, data, problem)
            if answer is not None:
                self._keep(child, idle)
                return answer
            reason = child.end()
            if child.expired:
                break
        raise UnreadableFile(name, reason)

    def _candidates(self, idle: "list[_Child]", *, recognizes: bool) -> "Iterator[_Child]":
        """Yield an idle child, if there is one, then a new one: only the failure of a new one is final."""
        with self._lock:
            child = idle.pop() if idle else None
        if child is not None:
            yield child
        yield _Child(self.limits, recognizes=recognizes)

    def _keep(self, child: "_Child", idle: "list[_Child]") -> None:
        with self._lock:
            if len(idle) < MAX_IDLE:
                idle.append(child)
                return
        child.end()


class _Child:
    """One process that reads files."""

    def __init__(self, limits: Settings, *, recognizes: bool) -> None:
        self._limits = limits
        languages = (limits.ocr_languages, limits.ocr_data) if recognizes else ()
        self._process = ChildProcess(PARSER_MODULE, languages, environment={"OPENBLAS_NUM_THREADS": "1"})
        self._ready = False

    @property
    def expired(self) -> bool:
        """Whether it took too long."""
        return self._process.expired

    def ask(self, kind: str, data: bytes, problem: str = "") -> Answer | None:
        """Return the result for one file; None if it fails or times out.

        `problem` says why its pages cannot be recognized.
        """
        limits = self._limits
        seconds, memory = limits.parse_timeout_seconds, limits.parse_max_memory_bytes
        request = {"kind": kind, "size": len(data), "seconds": seconds, "problem": problem}
        request |= {"memory_bytes": memory, "unpacked": limits.max_unpacked_bytes}
        request |= {"members": limits.max_archive_members, "ratio": limits.max_archive_ratio}
        run_within = self._process.run_within
        try:
            self._ready = self._ready or run_within(START_SECONDS, self._is_ready)
            head = json.dumps(request).encode() + b"\n"
            return run_within(seconds, lambda: self._exchange(head, data)) if self._ready else None
        except (OSError, ValueError):
            return None

    def end(self) -> str:
        """Kill the process. Returns the reason of the failure, if there was one."""
        return self._reason(self._process.end())

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
        line = source.readline(ANSWER_BYTES_PER_BYTE * self._limits.max_unpacked_bytes)
        answer = json.loads(line)
        if not isinstance(answer, dict):
            return None
        sizes = list(_sizes_of(answer.get("extract", {})))
        if sum(sizes) > self._limits.max_unpacked_bytes:
            return None
        contents = [source.read(size) for size in sizes]
        return {**answer, "contents": contents} if sizes == [*map(len, contents)] else None

    def _reason(self, end: ProcessEnd) -> str:
        limits = self._limits
        if not self._ready:
            return f"its reader could not be started ({end.stopped_by}): {end.last_complaint}"
        if self.expired or end.code == -signal.SIGXCPU:
            return f"takes more than {limits.parse_timeout_seconds} seconds to read"
        memory = f"{limits.parse_max_memory_bytes} bytes of memory"
        if end.lacked_memory:
            return f"takes more than {memory} to read"
        if end.code < 0:
            return f"its reader crashed ({end.stopped_by}): damaged, or over {memory}"
        return f"its reader failed: {end.last_complaint}"


def _end_all(children: list[_Child]) -> None:
    while children:
        children.pop().end()


def _sizes_of(fields: Mapping[str, Any]) -> Iterator[int]:
    """Yield the sizes of the files inside a file, in the order in which their bytes follow."""
    for _, size, _, _, inner in fields.get("members", ()):
        yield size
        yield from _sizes_of(inner or {})


def _extract_of(fields: Mapping[str, Any], contents: Iterator[bytes]) -> Extract:
    """Return an extract from its fields, with the bytes of the files inside it."""
    members = []
    for name, _, skipped, refused, inner in fields["members"]:
        content = next(contents)
        extract = None if inner is None else _extract_of(inner, contents)
        members.append(Member(name, content, skipped, refused, extract))
    places = tuple(
        TextPosition(p["start"], p["page"], tuple(p["headings"]), p["box"] and tuple(p["box"]))
        for p in fields["places"]
    )
    return Extract(**{**fields, "places": places, "members": tuple(members)})


def _extract_from(answer: Answer, name: str) -> Extract:
    match answer:
        case {"extract": fields, "contents": contents}:
            return _extract_of(fields, iter(contents))
        case {"size": int(size), "limit": int(limit)}:
            raise TooLarge(f"{name}, unpacked,", size=size, limit=limit)
        case {"unsupported": str(reason)}:
            raise UnsupportedContent(name, reason)
        case _:
            raise UnreadableFile(name, str(answer.get("refused")))
