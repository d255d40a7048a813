"""Folders and files that no other account can read, whatever the umask, and that outlast a crash.

No file is opened for writing through a symbolic link.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

UMASK = 0o077
"""For programs that this one starts."""
FOLDER = 0o700
FILE = 0o600


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where they are missing. Raises OSError."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=FOLDER, exist_ok=True)


def can_write(folder: Path) -> bool:
    """Whether files may be made in a folder, or in the one above that it would be made in."""
    return os.access(next(path for path in (folder, *folder.parents) if path.exists()), os.W_OK)


def make_file(path: Path) -> None:
    """Make an empty file where there is none, to be opened for writing. Raises OSError."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock file, which is made if it is missing.

    Raises OSError, for a symbolic link too.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE)


@contextmanager
def open_for_writing(path: Path, *, new: bool = True) -> Iterator[IO[bytes]]:
    """A file to write, on disk after the block.

    Raises OSError, also for a symbolic link, and with `new` for a file that exists.
    """
    how = os.O_EXCL if new else os.O_TRUNC
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | how, FILE), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync(*paths: Path) -> None:
    """Put files or folders on disk: of a folder the names in it. Raises OSError."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
