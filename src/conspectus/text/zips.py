"""What Python raises when it reads a ZIP archive that is damaged, or made to be."""

import zipfile
import zlib
from typing import Final

DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError)
"""Beside errors of the file itself, which may be those of its disk."""
