"""Whether a folder of another product can have been written by this account alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from conspectus.errors import UnreadableFile

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def require_own_folder(location: str) -> None:
    """Raise UnreadableFile unless only this account, or root, can have written a folder.

    Libraries that keep pickled objects run code of whoever wrote these.
    """
    folder = Path(location).resolve()
    for path in (*reversed(folder.parents), folder, *_content(folder)):
        status = path.lstat()
        is_above = path in folder.parents
        if reason := _foreign_writer(status, is_above=is_above):
            what_to_do = (
                "its objects are pickled and run code when they are read, so it must belong to you and be"
                " writable by nobody else; if you know where it comes from, copy it to a folder of your own:"
                f" cp -r {location} COPY && chmod -R go-w COPY"
            )
            raise UnreadableFile(str(path), f"{reason}; {what_to_do}")


def _content(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, followlinks=False):
        yield from (Path(parent, name) for name in (*folders, *files))


def _foreign_writer(status: os.stat_result, *, is_above: bool) -> str:
    """Return why others may have written a file or folder; an empty string if they cannot have.

    In a folder above with the sticky bit, such as /tmp, others cannot replace what is not theirs.
    """
    if status.st_uid not in {0, os.geteuid()}:
        return f"belongs to the user with the id {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    is_sticky = bool(status.st_mode & stat.S_ISVTX)
    if status.st_mode & WRITABLE_BY_OTHERS and not (is_above and is_sticky):
        return f"can be written by others ({stat.filemode(status.st_mode)})"
    return ""
