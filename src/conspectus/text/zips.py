"""ZIP archives: the names of their members, and the errors that Python raises for damaged ones."""

import zipfile
import zlib
from typing import Final

DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError)
"""Errors besides OSError, which may be an error of the disk."""
ENCRYPTED: Final = 0x1
UTF8_NAME: Final = 0x800
MAC_RESOURCES: Final = "__MACOSX"


def name_of(entry: zipfile.ZipInfo) -> str:
    """Return the name of an entry. Names in UTF-8 without the flag for it are decoded as UTF-8."""
    name = entry.filename
    if not entry.flag_bits & UTF8_NAME and not name.isascii():
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = entry.filename
    return name.replace("\\", "/").removeprefix("./")


def leads_out(name: str) -> bool:
    """Return whether a name is a path out of the archive: absolute, with `..` or of a drive."""
    return name.startswith("/") or name[1:2] == ":" or ".." in name.split("/")


def is_clutter(name: str) -> bool:
    """Return whether a member is hidden, or a by-product of macOS."""
    folders = name.split("/")
    return folders[0] == MAC_RESOURCES or any(part.startswith(".") for part in folders)
