"""Readers of the stores of mem0, LangGraph, Chroma and Qdrant."""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

from conspectus.errors import ConspectusError, UnreadableFile
from conspectus.ports.imports import ForeignPlace, ForeignReader, ForeignRecord, LeftOut
from conspectus.sources.foreign_stores.chroma import read_chroma
from conspectus.sources.foreign_stores.langgraph import read_langgraph
from conspectus.sources.foreign_stores.mem0 import read_mem0
from conspectus.sources.foreign_stores.qdrant import read_qdrant

_FAILURES: Final = (ValueError, RuntimeError, OSError, sqlite3.Error)
_LIBRARIES: Final = (
    ("chromadb.errors", "ChromaError"),
    ("qdrant_client.http.exceptions", "ApiException"),
    ("psycopg", "Error"),
)
ReadPlace: TypeAlias = Callable[[ForeignPlace, LeftOut], Iterator[ForeignRecord]]


def foreign_reader(kind: str, at: ForeignPlace) -> ForeignReader:
    """Return the reader of a store of `chroma`, `qdrant`, `mem0` or `langgraph`."""
    return partial(_read_guarded, _READERS[kind], at)


def _read_guarded(read: ReadPlace, at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Raise what the library of a store raises as UnreadableFile, without the password of a URL."""
    try:
        yield from read(at, left)
    except ConspectusError:
        raise
    except _failures() as fault:
        named = "database" if "@" in at.place else at.place
        raise UnreadableFile(named, f"{type(fault).__name__}: {fault}") from fault


def _failures() -> tuple[type[Exception], ...]:
    """Return what the libraries that are loaded raise."""
    loaded = ((sys.modules.get(module), name) for module, name in _LIBRARIES)
    return (*_FAILURES, *(getattr(module, name) for module, name in loaded if module is not None))


_READERS: Final[Mapping[str, ReadPlace]] = {
    "chroma": read_chroma,
    "langgraph": read_langgraph,
    "mem0": read_mem0,
    "qdrant": read_qdrant,
}
