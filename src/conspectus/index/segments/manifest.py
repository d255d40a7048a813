"""The manifest: which segments there are, which of their rows are dead, and what sequence they reach."""

import base64
import fcntl
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from conspectus.errors import StorageTooNew
from conspectus.index.segments.arrays import read_text, sync, write_text
from conspectus.index.segments.columns import Mask
from conspectus.private import FILE, make_folder

FORMAT = 1
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
    """What changes whenever the manifest is replaced; None while there is none."""
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
    sync([fresh])
    fresh.replace(directory / _MANIFEST)
    sync([directory])


@contextmanager
def locked(directory: Path) -> Iterator[bool]:
    """Whether this is now the only builder of the directory; the lock goes with the process."""
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
    sync([folder.parent])
    return name


def remove_unnamed(directory: Path, manifest: Manifest) -> None:
    """Delete what a killed builder left and what the manifest no longer names; only under the lock."""
    named = {entry.name for entry in manifest.entries}
    for path in directory.iterdir():
        if path.name.startswith((_UNFINISHED, _SEGMENT)) and path.name not in named:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def remove(directory: Path, *, wait_seconds: float = 0.0) -> bool:
    """Delete an index; whether that is done, or somebody builds it and may leave files of it.

    The manifest goes first: who reads it finds an empty index, and none that is damaged.
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
