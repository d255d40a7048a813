"""SQLite reads on the event loop, cached until any process commits.

Checking for commits takes 5 microseconds, reading in a thread 100 to 250.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from sys import getsizeof
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from conspectus.errors import ConspectusError
from conspectus.model.records import StoredChunk
from conspectus.records.core.sqlite_driver import sqlite_driver

Version: TypeAlias = int
Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

INLINE: Final = "conspectus_inline"
"""The execution option of a connection whose statements are transactions of their own."""
MAX_INLINE_ROWS: Final = 64
"""Maximum number of rows read at once: those of a window of 2,048 tokens."""
MAX_CACHE_BYTES: Final = 8 << 20
REPEATED_ERRORS: Final = (
    ConspectusError,
    SQLAlchemyError,
    sqlite3.Error,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
)
"""Errors after which a thread repeats the read, and raises the error for the caller."""
CHUNK_OVERHEAD_BYTES: Final = 1_500
"""A chunk with its document, without its text."""


class InlineReads:
    """A separate connection to a file that never waits, and a cache for one version of the file.

    Cached values were read at a version, and are returned only while the version is the same. The version
    changes with commits of any process and thread. It is None if it cannot be read at once, or if the file
    was replaced.
    """

    def __init__(self, path: Path, make_engine: Callable[[], Engine]) -> None:
        self._path = path
        self._make_engine = make_engine
        self._lock = Lock()
        self._connection: Connection | None = None
        self._driver: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._closed = False
        self._version: Version | None = None
        self._cache: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def version(self) -> Version | None:
        """Return a number that changes with each commit; None if it cannot be read at once."""
        with self._lock:
            return self._read_version()

    def find_cached(self, version: Version, keys: Iterable[Key]) -> dict[Key, Any]:
        """Return the cached values of the keys at a version that was just read."""
        hits: dict[Key, Any] = {}
        with self._lock:
            if version != self._version:
                self._version, self._bytes = version, 0
                self._cache.clear()
            for key in keys:
                if key in self._cache:
                    self._cache.move_to_end(key)
                    hits[key] = self._cache[key][0]
        return hits

    def cache(self, version: Version, values_by_key: Mapping[Any, object]) -> None:
        """Cache values that were read at a version, until the version changes."""
        with self._lock:
            if version != self._version:
                return
            for key, value in values_by_key.items():
                size = _approximate_bytes(value)
                _, former_size = self._cache.pop(key, (None, 0))
                self._cache[key] = (value, size)
                self._bytes += size - former_size
            while self._bytes > MAX_CACHE_BYTES:
                _, (_, size) = self._cache.popitem(last=False)
                self._bytes -= size

    def read(self, version: Version, work: Callable[[Connection], Result]) -> tuple[Result] | None:
        """Return the result of a read at a version; None if it fails, would wait, or the version has changed.

        Each statement is its own transaction, so that no lock outlives it; the version shows whether all of
        them saw the same data.
        """
        with self._lock, suppress(*REPEATED_ERRORS):
            if self._connection is not None:
                result = work(self._connection)
                return (result,) if self._read_version() == version else None
        return None

    def read_now(self, work: Callable[[Connection], Result]) -> tuple[Result] | None:
        """Return the result of a read; None if it fails, or would wait, or the version changes meanwhile."""
        version = self.version()
        return None if version is None else self.read(version, work)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._cache.clear()
            if self._connection is not None:
                self._connection.close()
                self._connection.engine.dispose()
                self._connection = self._driver = None

    def _read_version(self) -> Version | None:
        with suppress(OSError, *REPEATED_ERRORS):
            status = self._path.stat()
            if self._driver is None and not self._closed:
                self._connection = self._make_engine().execution_options(**{INLINE: True}).connect()
                self._driver = sqlite_driver(self._connection)
                self._file = (status.st_dev, status.st_ino)
            if self._driver is not None and (status.st_dev, status.st_ino) == self._file:
                version: Version = self._driver.execute("PRAGMA data_version").fetchone()[0]
                return version
        return None


def _approximate_bytes(cached: object) -> int:
    """Return the approximate size of a cached value in memory."""
    rows = len(cached) if isinstance(cached, list | tuple) else 1
    text_bytes = getsizeof(cached.chunk.text) if isinstance(cached, StoredChunk) else 0
    return CHUNK_OVERHEAD_BYTES * max(rows, 1) + text_bytes
