"""New stores of SQLite begin as copies of an empty store, which take a quarter of the time to make."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from conspectus.records import store
from conspectus.records.core.database import Database, DatabaseAccess, database_at, migrate_if_needed
from conspectus.records.core.sqlite import SqliteDatabase


@contextmanager
def copied_tables(folder: Path) -> Iterator[None]:
    """In this process, a store that does not exist gets its tables from an empty one in `folder`."""
    empty = folder / "records.sqlite"
    database = database_at(str(empty), DatabaseAccess())
    migrate_if_needed(database)
    database.close()

    def copy_and_migrate(database: Database) -> None:
        if isinstance(database, SqliteDatabase):
            # What cannot be written is left to the database, whose error is part of a test.
            with suppress(OSError):
                copy_unless_exists(empty, Path(database.name))
        migrate_if_needed(database)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "migrate_if_needed", copy_and_migrate)
        yield


def copy_unless_exists(source: Path, target: Path) -> None:
    """Copy a file in one step: nobody opens a part of it, and what another made meanwhile stays."""
    if target.exists():
        return
    copy = target.with_name(f"{target.name}.{uuid4().hex}")
    try:
        shutil.copy(source, copy)
        os.link(copy, target)
    finally:
        copy.unlink(missing_ok=True)
