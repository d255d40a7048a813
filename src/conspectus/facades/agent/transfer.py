"""Files of an agent's memory and graph: JSON and lines of JSON, read with care and written whole."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from conspectus.errors import InvalidInput

_PICKLED: Final = (b"\x80", b"(d", b"(l", b"c__")
_NO_PICKLE: Final = "is a pickle, which can run programs and is never read; only JSON lines are"


def read_json(path: Path) -> object:
    """What a file of JSON holds. Raises InvalidInput, for a pickle too."""
    data = _bytes(path)
    try:
        return json.loads(data)
    except ValueError as fault:
        raise InvalidInput("path", f"{path.name} is no JSON: {fault}") from fault


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


async def write_lines(path: Path, lines: AsyncIterator[str]) -> int:
    """Write a file that is there as a whole or not at all, and say how many lines it has."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            async for line in lines:
                file.write(line + "\n")
                count += 1
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def read_lines(path: Path) -> list[str]:
    """The lines of a file of JSON lines. Raises InvalidInput, for a pickle too."""
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput("path", f"{path.name} is no text in UTF-8") from fault
    return [line for line in text.split("\n") if line.strip()]


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise InvalidInput("path", f"{path} cannot be read: {fault.strerror}") from fault
    if data.startswith(_PICKLED) or path.suffix in {".pkl", ".pickle"}:
        raise InvalidInput("path", f"{path.name} {_NO_PICKLE}")
    return data
