"""Files of memories and graphs: JSON and JSON Lines, never a pickle."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.private import open_for_writing

_PICKLED: Final = (b"\x80", b"(d", b"(l", b"c__")
_NO_PICKLE: Final = "is a pickle, which can run programs and is never read; only JSON lines are"


def read_json(path: Path) -> object:
    """Read a JSON file. Raises InvalidInput, also for a pickle."""
    content = _bytes(path)
    try:
        return json.loads(content)
    except ValueError as fault:
        raise InvalidInput("path", f"{path.name} is not JSON: {fault}") from fault


async def write_lines(path: Path, lines: AsyncIterator[str]) -> int:
    """Write lines to a file atomically and return their number."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with open_for_writing(beside, new=False) as file:
            async for line in lines:
                file.write(f"{line}\n".encode())
                count += 1
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def read_lines(path: Path) -> list[str]:
    """Read the lines of a JSON Lines file. Raises InvalidInput, also for a pickle."""
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput("path", f"{path.name} is not UTF-8") from fault
    return [line for line in text.split("\n") if line.strip()]


def _bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise InvalidInput("path", f"{path} cannot be read: {fault.strerror}") from fault
    if content.startswith(_PICKLED) or path.suffix in {".pkl", ".pickle"}:
        raise InvalidInput("path", f"{path.name} {_NO_PICKLE}")
    return content
