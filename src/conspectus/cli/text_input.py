"""Texts of files and of stdin."""

import sys
from pathlib import Path
from typing import Final

from conspectus.errors import InvalidInput

STDIO: Final = Path("-")
"""Stands for stdin or stdout where a file is named."""


def read_text(file: Path, field: str = "file") -> str:
    """Return the content of a file. Raises InvalidInput about the field, and never quotes the content."""
    try:
        content = sys.stdin.buffer.read() if file == STDIO else file.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(field, f"is not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InvalidInput(field, f"{str(file)!r} cannot be read: {error.strerror}") from None
