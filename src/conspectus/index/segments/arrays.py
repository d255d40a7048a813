"""Arrays in a folder: written once with their checksums, opened by mapping."""

import json
import mmap
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import IndexDamaged
from conspectus.private import make_file

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
    sync(path.iterdir())
    sync([path])


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
    """What `write_text` wrote. Raises IndexDamaged when it is not that."""
    head, _, body = path.read_bytes().partition(b"\n")
    if head != b"%08x" % zlib.crc32(body):
        raise IndexDamaged(str(path), "its checksum is wrong")
    return body.decode()


def sync(paths: Iterable[Path]) -> None:
    """Make files or folders durable."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _header(path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(read_text(path / _HEADER))
    except FileNotFoundError as error:
        raise IndexDamaged(str(path), "the segment is missing") from error
    return header
