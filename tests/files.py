"""What lies in the files of a store, also while it is open."""

from pathlib import Path


def holding(folder: Path, text: str | bytes, pattern: str = "*") -> list[Path]:
    """The files below a folder that hold these bytes; one that goes away meanwhile holds nothing."""
    sought = text.encode() if isinstance(text, str) else text
    paths = list(folder.rglob(pattern))
    assert paths, f"no file lies in {folder}"
    return [path for path in paths if sought in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return b""
