"""Files of the embedded index: checksummed arrays, and the manifest that lists the segments."""

import base64
import fcntl
import json
import mmap
import os
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import IndexDamaged, StorageTooNew
from conspectus.index.segments.columns import Mask
from conspectus.private import make_file, make_folder, open_lock, sync

FORMAT = 3
_MANIFEST = "manifest.json"
_LOCK = "lock"
_UNFINISHED = "unfinished-"
_SEGMENT = "segment-"
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment by the name of its folder. `dead` is a mask of `encode_mask`, empty if all rows are alive."""

    name: str
    rows: int
    dead: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest: its segments contain the records as of `sequence`, read no later than `read_until`.

    `identity` is the configuration of the rows; another analyzer or vector size needs a rebuild.
    """

    identity: str
    sequence: int = 0
    read_until: int = 0
    entries: tuple[SegmentEntry, ...] = ()


Stamp = tuple[int, int, int]


def encode_mask(dead: Mask | None) -> str:
    """Encode a mask as text."""
    if dead is None or not dead.any():
        return ""
    return base64.b64encode(zlib.compress(np.packbits(dead).tobytes(), 1)).decode()


def decode_mask(text: str, rows: int) -> Mask | None:
    """Return the mask that `encode_mask` encoded; None for no mask."""
    if not text:
        return None
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.unpackbits(bits, count=rows).astype(np.bool_)


def stamp(directory: Path) -> Stamp | None:
    """Return a value that changes whenever the manifest is replaced; None if there is no manifest."""
    try:
        status = (directory / _MANIFEST).stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_manifest(directory: Path, identity: str) -> Manifest:
    """Return the manifest; an empty one if there is none or its identity differs.

    Raises IndexDamaged or StorageTooNew.
    """
    path = directory / _MANIFEST
    try:
        content = json.loads(read_text(path))
    except FileNotFoundError:
        return Manifest(identity)
    if content["format"] > FORMAT:
        raise StorageTooNew(str(path), str(content["format"]))
    if content["format"] < FORMAT or content["identity"] != identity:
        return Manifest(identity)
    entries = tuple(SegmentEntry(**entry) for entry in content["entries"])
    return Manifest(identity, content["sequence"], content["read_until"], entries)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically and durably."""
    fresh = directory / f"{_UNFINISHED}manifest"
    write_text(fresh, json.dumps({"format": FORMAT, **asdict(manifest)}))
    sync(fresh)
    fresh.replace(directory / _MANIFEST)
    sync(directory)


@contextmanager
def lock_folder(directory: Path) -> Iterator[bool]:
    """Yield whether this process is now the directory's only builder. The lock ends with the process."""
    make_folder(directory)
    with _lock(directory) as is_held:
        yield is_held


@contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    descriptor = open_lock(directory / _LOCK)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            # If the folder was deleted meanwhile, other processes lock another file of this name.
            yield os.fstat(descriptor).st_nlink > 0
    finally:
        os.close(descriptor)


def create_unfinished_folder(directory: Path, name: str) -> Path:
    """Create a folder for an unfinished segment."""
    path = directory / f"{_UNFINISHED}{name}"
    make_folder(path)
    return path


def finish(folder: Path) -> str:
    """Rename a complete folder to its final name."""
    name = folder.name.replace(_UNFINISHED, _SEGMENT)
    folder.rename(folder.with_name(name))
    sync(folder.parent)
    return name


def remove_unnamed(directory: Path, manifest: Manifest) -> None:
    """Delete unfinished folders, and segments that the manifest does not list. Requires the lock."""
    named = {entry.name for entry in manifest.entries}
    for path in directory.iterdir():
        if path.name.startswith((_UNFINISHED, _SEGMENT)) and path.name not in named:
            # Another process may delete the same without the lock.
            with suppress(FileNotFoundError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def remove(directory: Path, *, wait_seconds: float = 0.0) -> bool:
    """Delete an index. Returns false if a process is building it and may leave files.

    The manifest is deleted first, so that readers find an empty index, not a damaged one.
    """
    deadline = time.monotonic() + wait_seconds
    while directory.is_dir():
        # Another process may delete the folder first.
        with suppress(FileNotFoundError), _lock(directory) as is_held:
            if is_held or time.monotonic() >= deadline:
                _empty(directory, with_lock=is_held)
                return is_held
        time.sleep(_PAUSE_SECONDS)
    return True


def _empty(directory: Path, *, with_lock: bool) -> None:
    forget(directory)
    for path in list_folder(directory):
        if path.name != _LOCK:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if with_lock:
        shutil.rmtree(directory, ignore_errors=True)


def list_folder(directory: Path) -> list[Path]:
    """Return the content of a folder that another process may delete; empty if it is gone, or is a file."""
    try:
        return list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def forget(directory: Path) -> None:
    """Delete the manifest: the next opening finds an empty index, and the next build replaces everything.

    For a directory that raised IndexDamaged. Has no effect if it is empty or missing.
    """
    (directory / _MANIFEST).unlink(missing_ok=True)


ARRAYS = "arrays.bin"
_HEADER = "segment.json"
_ALIGNMENT_BYTES = 64
_BLOCK_BYTES = 1 << 22
_MAX_VERIFIED_BYTES = 32 << 20
_FAULTS = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Folder:
    """An opened folder of a segment: its arrays, and the `facts` about them in its header."""

    path: Path
    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]


def write_folder(path: Path, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write the arrays, then the header with every file's size, and sync them to disk."""
    layout = {}
    make_file(path / ARRAYS)
    with (path / ARRAYS).open("wb") as file:
        for name, values in arrays.items():
            file.write(b"\0" * (-file.tell() % _ALIGNMENT_BYTES))
            layout[name] = [values.dtype.str, list(values.shape), file.tell()]
            file.write(np.ascontiguousarray(values).data.cast("B") if values.size else b"")
    files = {entry.name: [entry.stat().st_size, checksum(entry)] for entry in sorted(path.iterdir())}
    header = json.dumps({"arrays": layout, "facts": dict(facts), "files": files})
    write_text(path / _HEADER, header)
    sync(*path.iterdir(), path)


def open_folder(path: Path) -> Folder:
    """Map the arrays. Files up to 32 MiB are compared by checksum, larger ones by size.

    Raises IndexDamaged.
    """
    header = _header(path)
    for name, (size, expected) in header["files"].items():
        file = path / name
        if not file.is_file() or file.stat().st_size != size:
            raise IndexDamaged(str(file), "the file is missing or cut short")
        if size <= _MAX_VERIFIED_BYTES and checksum(file) != expected:
            raise IndexDamaged(str(file), "its checksum is wrong")
    content = map_file(path / ARRAYS)
    arrays = {
        name: np.frombuffer(content, dtype, int(np.prod(shape)), offset).reshape(shape)
        for name, (dtype, shape, offset) in header["arrays"].items()
    }
    return Folder(path, arrays, header["facts"])


def find_damaged_files(path: Path) -> list[str]:
    """Return the names of files whose checksum is wrong."""
    files = _header(path)["files"]
    return [name for name, (_, expected) in files.items() if checksum(path / name) != expected]


@contextmanager
def convert_decoding_errors(paths: Iterable[Path]) -> Iterator[None]:
    """Convert an error in the block to IndexDamaged if a file of these folders is damaged or missing.

    A file is missing if another query has found the damage, and the folder was replaced.
    """
    try:
        yield
    except _FAULTS as error:
        try:
            damaged = [path / name for path in paths for name in find_damaged_files(path)]
        except FileNotFoundError as gone:
            raise IndexDamaged(str(gone.filename), "the file is missing") from error
        if damaged:
            raise IndexDamaged(str(damaged[0]), "its checksum is wrong") from error
        raise


def map_file(path: Path) -> mmap.mmap | bytes:
    """Map the content of a file, shared with other processes."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            value = zlib.crc32(block, value)
    return value


def write_text(path: Path, text: str) -> None:
    """Write a checksum line and the text."""
    body = text.encode()
    make_file(path)
    path.write_bytes(b"%08x\n" % zlib.crc32(body) + body)


def read_text(path: Path) -> str:
    """Read a file of `write_text`. Raises IndexDamaged if its checksum is wrong."""
    head, _, body = path.read_bytes().partition(b"\n")
    if head != b"%08x" % zlib.crc32(body):
        raise IndexDamaged(str(path), "its checksum is wrong")
    return body.decode()


def _header(path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(read_text(path / _HEADER))
    except FileNotFoundError as error:
        raise IndexDamaged(str(path), "the segment is missing") from error
    return header
