"""Errors that Python raises for damaged or manipulated ZIP archives."""

import zipfile
import zlib
from typing import Final

DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError)
"""Errors besides OSError, which may be an error of the disk."""
