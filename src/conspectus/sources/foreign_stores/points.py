"""Entries of vector stores, and what readers of several stores share."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, UnreadableFile
from conspectus.sources.json_values import as_mapping, text_in

PAGE_POINTS: Final = 500
TEXT_FIELDS: Final = ("document", "page_content", "text", "content", "memory", "data")
WITHOUT_TEXT: Final = "records without text"
LIST_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"


@dataclass(frozen=True, slots=True)
class Point:
    """An entry of a vector store: its fields, its text if that is not one of them, and one vector."""

    key: str
    fields: Mapping[str, object]
    text: str | None = None
    vector: tuple[float, ...] | None = None


def choose_names(existing: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return these of the known names, or all. Raises InvalidInput for one that is not known."""
    sorted_names = sorted(existing)
    if missing := [name for name in names if name not in sorted_names]:
        raise InvalidInput(
            "name", f"there is no {missing[0]!r}, only: {', '.join(sorted_names) or 'nothing'}"
        )
    return list(names) or sorted_names


def find_text(fields: Mapping[str, object], names: Sequence[str]) -> tuple[str, str, dict[str, object]]:
    """Return the first of these fields with a text, also one level deeper, that text, and other fields."""
    for name in names:
        others = {field: value for field, value in fields.items() if field != name}
        if text := text_in(fields, name):
            return name, text, others
        inner = as_mapping(fields.get(name))
        for deeper in names:
            if text := text_in(inner, deeper):
                rest = {field: value for field, value in inner.items() if field != deeper}
                return f"{name}.{deeper}", text, others | rest
    return "", "", dict(fields)


@contextmanager
def open_sqlite(path: str) -> Iterator[sqlite3.Connection]:
    """Open a database for reading. Raises UnreadableFile if there is none."""
    if not Path(path).is_file():
        raise UnreadableFile(path, "is no file")
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
        yield database
