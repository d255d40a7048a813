"""Files and folders: which files are added, and their text.

Below a folder that the caller names, these are skipped: hidden files and folders, files ignored by
`.gitignore` and `.git/info/exclude`, data directories of Conspectus, `node_modules`, `__pycache__`, virtual
environments, and links that lead out of the folder. A folder is visited once, however many links lead to it.
Pipes, sockets and devices are never opened. An unreadable folder is returned by `discover` like a file and
fails in `parse`, so that it is reported.
"""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias, TypeVar

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.records import TextPosition
from conspectus.ports import FoundFile, ParsedFile
from conspectus.settings import RECORDS, Settings
from conspectus.sources.encoding import plain_text, refuse_unsupported
from conspectus.sources.files.parsers import extracted, is_known, parse_text
from conspectus.sources.files.zip_xml import Extract

MODULE = "conspectus.sources.files.parser_process"
READY = b"ready\n"
STARTING_SECONDS = 60
MAX_IDLE = 2
COMPLAINT = 5_000
ANSWER_PER_BYTE = 12
OUT_OF_MEMORY = (b"MemoryError", b"memory allocation", b"allocate memory", b"out of memory")

Answer: TypeAlias = Mapping[str, Any]
Result = TypeVar("Result")


@dataclass(slots=True, weakref_slot=True)
class Children:
    """Child processes that read files of binary formats. They end with this object, or with the program.

    A child is reused for the next file, because starting one takes longer than reading most files, and ends
    when it was idle for a while. If one crashes, times out or returns invalid output, only its current file
    is lost.
    """

    limits: Settings
    _idle: "list[_Child]" = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, _end_all, self._idle)

    def read(self, kind: str, data: bytes, name: str) -> Extract:
        """Return the text of a file of a binary format. Raises UnreadableFile or TooLarge."""
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
        """Stop the idle children."""
        _end_all(self._idle)

    def _candidates(self) -> "Iterator[_Child]":
        """Yield an idle child, if there is one, then a new one: only the failure of a new one is final."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            yield idle
        yield _Child(self.limits)

    def _keep(self, child: "_Child") -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(child)
                return
        child.end()


class _Child:
    """One process in its own session, with a minimal environment."""

    def __init__(self, limits: Settings) -> None:
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
        """Return the result for one file; None if it fails or times out."""
        limits = self._limits
        seconds, memory = limits.parse_timeout_seconds, limits.parse_max_memory_bytes
        request = {"kind": kind, "size": len(data), "seconds": seconds}
        request |= {"memory_bytes": memory, "unpacked": limits.max_unpacked_bytes}
        try:
            self._ready = self._ready or self._within(STARTING_SECONDS, self._is_ready)
            head = json.dumps(request).encode() + b"\n"
            return self._within(seconds, lambda: self._exchange(head, data)) if self._ready else None
        except (OSError, ValueError):
            return None

    def end(self) -> str:
        """Kill the process group. Returns the reason of the failure, if there was one."""
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
        """Return the result of the call. On a timeout the child is killed, which ends the call."""
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
        line = source.readline(ANSWER_PER_BYTE * self._limits.max_unpacked_bytes)
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
            return f"takes more than {limits.parse_timeout_seconds} seconds to read"
        memory = f"{limits.parse_max_memory_bytes} bytes of memory"
        if any(words in complaints for words in OUT_OF_MEMORY):
            return f"takes more than {memory} to read"
        if code < 0:
            return f"its reader crashed ({stopped}): damaged, or over {memory}"
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


REPOSITORY = ".git"
SOURCES = (".git/info/exclude", ".gitignore")
NEGATED: Final = re.compile(r"(?<!\[)\[\^")


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of one folder, and of its parent folders."""

    folder: Path
    patterns: GitIgnoreSpec
    above: "IgnoreRules | None"

    def ignore(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a path below the folder is ignored."""
        rules: IgnoreRules | None = self
        while rules is not None:
            name = os.fsencode(path.relative_to(rules.folder)).decode("utf-8", "replace")
            decided = rules.patterns.check_file(f"{name}/" if is_folder else name).include
            if decided is not None:
                return decided
            rules = rules.above
        return False


def spec_of(lines: Sequence[str]) -> GitIgnoreSpec:
    """Compile patterns for RE2, in which no pattern takes long. Raises GitIgnorePatternError."""
    usual = GitIgnoreSpec.from_lines(lines, backend="simple").patterns
    # The library lets a class such as `[!a]` match a slash, other than Git.
    strict = [
        GitIgnoreSpecPattern(re.compile(NEGATED.sub("[^/", pattern.regex.pattern)), pattern.include)
        for pattern in usual
        if pattern.regex is not None
    ]
    return GitIgnoreSpec(strict, backend="re2")


def rules_in(folder: Path, above: IgnoreRules | None) -> IgnoreRules | None:
    """Return the rules for the content of a folder, given those of its parent."""
    lines = [line for source in SOURCES for line in _lines(folder / source)]
    return IgnoreRules(folder, spec_of(lines), above) if lines else above


def rules_above(folder: Path) -> IgnoreRules | None:
    """Return the rules of the repository that contains a folder; None if they ignore the folder itself."""
    parents = [parent for parent in (folder, *folder.parents) if (parent / REPOSITORY).exists()][:1]
    rules: IgnoreRules | None = None
    for root in parents:
        for part in reversed([parent for parent in folder.parents if parent.is_relative_to(root)]):
            rules = rules_in(part, rules)
            inside = part / folder.relative_to(part).parts[0]
            if rules is not None and rules.ignore(inside, is_folder=True):
                return None
    return rules


def _lines(path: Path) -> Iterator[str]:
    """Return the patterns in a file; empty if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            spec_of([line])
        except (GitIgnorePatternError, re.error):
            continue
        yield line


SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "CVS", "_darcs"})
VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
SQLITE = b"SQLite format 3\x00"
BINARY = (
    (b"%PDF-", "pdf"), (b"PK\x03\x04", "zip"), (b"PK\x05\x06", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "compound"),
)  # fmt: skip
NAMED = {
    ".pdf": "pdf", ".docx": "zip", ".docm": "zip", ".pptx": "zip", ".pptm": "zip", ".xlsx": "zip",
    ".xlsm": "zip", ".xlsb": "zip", ".ods": "zip", ".epub": "zip", ".xls": "workbook", ".eml": "mail",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The `Files` port for the local file system, within the limits of the settings.

    Binary formats are read in a child process.
    """

    settings: Settings = field(default_factory=Settings)
    _children: Children = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_children", Children(self.settings))

    def discover(self, paths: Sequence[Path]) -> Iterator[FoundFile]:
        """Yield every file below the paths, by name relative to the folder that the caller named.

        If two folders contain the same relative name, the later file is named by its full path. Raises
        UnreadableFile at once for a path that does not exist or is a data directory, and TooLarge over a
        limit.
        """
        for path in paths:
            if not path.exists():
                raise UnreadableFile(str(path), "does not exist")
            if _is_data_directory(path):
                raise UnreadableFile(str(path), "is a data directory; name the folder of the documents")
        return self._discover(paths)

    def parse(self, file: FoundFile) -> ParsedFile:
        """Return the file's documents. Raises UnreadableFile or TooLarge."""
        return self._parsed(self._read(file), file.name, path=str(file.path))

    def parse_bytes(self, data: bytes, name: str, *, charset: str | None = None) -> ParsedFile:
        """Return the documents of a file in memory.

        `charset` is the encoding that its sender declares. Raises UnreadableFile or TooLarge.
        """
        self._hold_to_limit(len(data))
        return self._parsed(data, name, path=name, charset=charset)

    def _parsed(self, data: bytes, name: str, *, path: str, charset: str | None = None) -> ParsedFile:
        marked = next((kind for mark, kind in BINARY if data.startswith(mark)), None)
        named = NAMED.get(PurePath(name).suffix.lower()) if data else None
        kind = named if marked is None or (marked, named) == ("compound", "workbook") else marked
        if kind is None:
            plain = plain_text(data, name, is_text=is_known(name), charset=charset)
            documents, notice = parse_text(plain.text, name=name, path=path)
            notices = "; ".join([*plain.doubts, *([notice] if notice else [])])
            return ParsedFile(documents, plain.encoding, notices or None)
        documents, notice = extracted(self._children.read(kind, data, name), name=name, path=path)
        return ParsedFile(documents, notice=notice)

    def _discover(self, paths: Sequence[Path]) -> Iterator[FoundFile]:
        names: set[str] = set()
        for path in paths:
            walk = _Walk(path.resolve(), self.settings.max_folder_depth)
            alone = FoundFile(path, path.name, _size(path), is_named=True)
            for file in walk.files(path, 0) if path.is_dir() else [alone]:
                full_path = file.path.absolute().as_posix()
                unique = replace(file, name=full_path) if file.name in names else file
                if unique.name in names:
                    continue
                names.add(unique.name)
                if len(names) > self.settings.max_files:
                    raise TooLarge("files", size=len(names), limit=self.settings.max_files, unit="files")
                yield unique

    def _read(self, file: FoundFile) -> bytes:
        """Return the bytes of a regular file. The size limit is checked before and during reading."""
        try:
            state = file.path.stat()
            if not stat.S_ISREG(state.st_mode):
                return _refuse_special(file, state.st_mode)
            with file.path.open("rb") as stream:
                refuse_unsupported(file.name, stream.peek())
                self._hold_to_limit(state.st_size)
                data = stream.read(self.settings.max_file_bytes + 1)
        except OSError as error:
            raise UnreadableFile(file.name, error.strerror or str(error)) from error
        self._hold_to_limit(len(data))
        return data

    def _hold_to_limit(self, size: int) -> None:
        if size > self.settings.max_file_bytes:
            raise TooLarge("file", size=size, limit=self.settings.max_file_bytes)


@dataclass(frozen=True, slots=True)
class _Walk:
    """One named folder: its real path, and the real paths of the folders visited so far."""

    root: Path
    max_depth: int
    entered: set[Path] = field(default_factory=set)

    def files(
        self, folder: Path, depth: int, prefix: str = "", rules: IgnoreRules | None = None
    ) -> Iterator[FoundFile]:
        if depth > self.max_depth:
            raise TooLarge("folder", size=depth, limit=self.max_depth, unit="levels")
        real = folder.resolve()
        if real in self.entered:
            return
        self.entered.add(real)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield FoundFile(folder, prefix.rstrip("/") or folder.name, 0)
            return
        if depth and (
            any(entry.name == VIRTUAL_ENVIRONMENT for entry in entries) or _is_data_directory(real)
        ):
            return
        rules = rules_in(real, rules if depth else rules_above(real))
        for entry in entries:
            if not entry.name.startswith("."):
                yield from self._entry(entry, depth, f"{prefix}{entry.name}", rules)

    def _entry(
        self, entry: os.DirEntry[str], depth: int, name: str, rules: IgnoreRules | None
    ) -> Iterator[FoundFile]:
        path = Path(entry.path)
        linked, is_folder = entry.is_symlink(), path.is_dir()
        if linked and not self._inside(path):
            return
        if rules is not None and rules.ignore(path.parent.resolve() / entry.name, is_folder=is_folder):
            return
        if is_folder:
            if entry.name not in SKIPPED_FOLDERS:
                yield from self.files(path, depth + 1, f"{name}/", rules)
        elif linked or entry.is_file():
            yield FoundFile(path, name, _size(path))

    def _inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):
            return True


def _is_data_directory(folder: Path) -> bool:
    """Return whether a folder is a data directory of Conspectus, whatever its name."""
    try:
        with (folder / RECORDS).open("rb") as stream:
            return stream.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _refuse_special(file: FoundFile, mode: int) -> bytes:
    kinds = (
        (stat.S_ISDIR, "a folder that cannot be listed"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    what = next((what for test, what in kinds if test(mode)), "a device")
    raise UnreadableFile(file.name, f"{what}, not a file")
