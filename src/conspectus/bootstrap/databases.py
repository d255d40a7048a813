"""The database of a place, asked without opening a store there, as that makes one where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from conspectus.bootstrap.store_address import StoreAddress, place_of
from conspectus.errors import NotFound
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.records.core.database import Database


@contextmanager
def database_of(place: StoreAddress, settings: Settings) -> Iterator["Database"]:
    """The database of a place for the block. Raises InvalidInput or MissingExtra."""
    from conspectus.records.core.connect import DatabaseAccess, database_at

    opened = database_at(
        place.records, DatabaseAccess(settings.lock_timeout_seconds, settings.database_connections)
    )
    try:
        yield opened
    finally:
        opened.reading.dispose()


def require_store(path: str | Path, *, settings: Settings) -> None:
    """Raise NotFound where nothing was ever stored; and InvalidInput, StorageBusy or StorageError."""
    place = place_of(path, settings)
    if not place.is_shared:
        if not _may_be_there(Path(place.records)):
            raise NotFound("data folder", str(place.folder))
        return
    from conspectus.records.core.connect import version_of
    from conspectus.records.core.database import transact

    with database_of(place, settings) as database:
        if transact(database, database.reading, version_of) is None:
            raise NotFound("data in", database.name)


def _may_be_there(records: Path) -> bool:
    """Also where nobody may look, which opening them says better."""
    try:
        return records.exists()
    except OSError:
        return True
