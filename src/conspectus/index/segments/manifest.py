"""Files of the embedded index: checked arrays, and the manifest that names the segments."""

import base64
import fcntl
import json
import mmap
import os
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import IndexDamaged, StorageTooNew
from conspectus.index.segments.columns import Mask
from conspectus.private import FILE, make_file, make_folder, sync

FORMAT = 2
_MANIFEST = "manifest.json"
_LOCK = "lock"
_UNFINISHED = "unfinished-"
_SEGMENT = "segment-"
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment by the name of its folder; `dead` is `packed` rows, empty if all are alive."""

    name: str
    rows: int
    dead: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The segments hold the records as of `sequence`, read no later than `read_until`.

    `identity` is what rows were made with: another analysis or vector size needs other segments.
    """

    identity: str
    sequence: int = 0
    read_until: int = 0
    entries: tuple[SegmentEntry, ...] = ()


Stamp = tuple[int, int, int]


def packed(dead: Mask | None) -> str:
    """A mask as text."""
    if dead is None or not dead.any():
        return ""
    return base64.b64encode(zlib.compress(np.packbits(dead).tobytes(), 1)).decode()


def unpacked(text: str, rows: int) -> Mask | None:
    """The mask that `packed` made a text of."""
    if not text:
        return None
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.unpackbits(bits, count=rows).astype(np.bool_)


def stamp(directory: Path) -> Stamp | None:
    """A value that changes whenever the manifest is replaced; None while there is none."""
    try:
        status = (directory / _MANIFEST).stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_manifest(directory: Path, identity: str) -> Manifest:
    """The manifest, or an empty one if there is none or it is of another identity.

    Raises IndexDamaged, or StorageTooNew.
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
    """Replace the manifest at once, and for good before returning."""
    fresh = directory / f"{_UNFINISHED}manifest"
    write_text(fresh, json.dumps({"format": FORMAT, **asdict(manifest)}))
    sync(fresh)
    fresh.replace(directory / _MANIFEST)
    sync(directory)


@contextmanager
def locked(directory: Path) -> Iterator[bool]:
    """Whether this is now the only builder of the directory; the lock ends with the process."""
    make_folder(directory)
    descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT, FILE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            # Where the folder was deleted in between, others lock another file of this name.
            yield os.fstat(descriptor).st_nlink > 0
    finally:
        os.close(descriptor)


def unfinished(directory: Path, name: str) -> Path:
    """A new folder to build a segment in."""
    path = directory / f"{_UNFINISHED}{name}"
    make_folder(path)
    return path


def finish(folder: Path) -> str:
    """Give a complete folder its final name."""
    name = folder.name.replace(_UNFINISHED, _SEGMENT)
    folder.rename(folder.with_name(name))
    sync(folder.parent)
    return name


def remove_unnamed(directory: Path, manifest: Manifest) -> None:
    """Delete what a killed builder left and what the manifest no longer names; only under the lock."""
    named = {entry.name for entry in manifest.entries}
    for path in directory.iterdir():
        if path.name.startswith((_UNFINISHED, _SEGMENT)) and path.name not in named:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def remove(directory: Path, *, wait_seconds: float = 0.0) -> bool:
    """Delete an index; false if a process builds it and may leave files.

    The manifest is deleted first, so that readers find an empty index, not a damaged one.
    """
    give_up = time.monotonic() + wait_seconds
    while directory.is_dir():
        with locked(directory) as mine:
            if mine or time.monotonic() >= give_up:
                _empty(directory, with_lock=mine)
                return mine
        time.sleep(_PAUSE_SECONDS)
    return True


def _empty(directory: Path, *, with_lock: bool) -> None:
    forget(directory)
    for path in directory.iterdir():
        if path.name != _LOCK:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if with_lock:
        shutil.rmtree(directory, ignore_errors=True)


def forget(directory: Path) -> None:
    """Delete the manifest, so that the next opening finds an empty index and the next build replaces all.

    For a directory that raised IndexDamaged. Raises nothing when it is empty or missing.
    """
    (directory / _MANIFEST).unlink(missing_ok=True)


ARRAYS = "arrays.bin"
_HEADER = "segment.json"
_ALIGNMENT = 64
_BLOCK = 1 << 22
_VERIFIED = 32 << 20
_FAULTS = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Folder:
    """An opened folder: its arrays, and the facts that were stored with them."""

    path: Path
    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]


def write_folder(path: Path, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write the arrays and then the header, which names every file with its size; all is on disk after."""
    places = {}
    make_file(path / ARRAYS)
    with (path / ARRAYS).open("wb") as file:
        for name, values in arrays.items():
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            places[name] = [values.dtype.str, list(values.shape), file.tell()]
            file.write(np.ascontiguousarray(values).data.cast("B") if values.size else b"")
    files = {entry.name: [entry.stat().st_size, checksum(entry)] for entry in sorted(path.iterdir())}
    header = json.dumps({"arrays": places, "facts": dict(facts), "files": files})
    write_text(path / _HEADER, header)
    sync(*path.iterdir(), path)


def open_folder(path: Path) -> Folder:
    """Map the arrays. Compares files of up to 32 MiB with their checksums, larger ones with their size only.

    Raises IndexDamaged.
    """
    header = _header(path)
    for name, (size, expected) in header["files"].items():
        file = path / name
        if not file.is_file() or file.stat().st_size != size:
            raise IndexDamaged(str(file), "the file is missing or cut short")
        if size <= _VERIFIED and checksum(file) != expected:
            raise IndexDamaged(str(file), "its checksum is wrong")
    content = map_file(path / ARRAYS)
    arrays = {
        name: np.frombuffer(content, dtype, int(np.prod(shape)), offset).reshape(shape)
        for name, (dtype, shape, offset) in header["arrays"].items()
    }
    return Folder(path, arrays, header["facts"])


def damaged_files(path: Path) -> list[str]:
    """The names of files whose content is not what was written."""
    files = _header(path)["files"]
    return [name for name, (_, expected) in files.items() if checksum(path / name) != expected]


@contextmanager
def decoding(paths: Iterable[Path]) -> Iterator[None]:
    """Raise IndexDamaged for an error inside if a file of these folders is not what was written."""
    try:
        yield
    except _FAULTS as error:
        for path in paths:
            for name in damaged_files(path):
                raise IndexDamaged(str(path / name), "its checksum is wrong") from error
        raise


def map_file(path: Path) -> mmap.mmap | bytes:
    """A file's content, shared with every process that maps it."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
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
