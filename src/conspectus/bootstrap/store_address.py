"""Where a store is: in a folder, or in a database that many processes share."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from conspectus.errors import InvalidInput, NotFound
from conspectus.settings import RECORDS, Settings

if TYPE_CHECKING:
    from conspectus.records.core.database import Database


SERVERS = ("postgresql://", "postgres://")
MISSPELT = ("postgresql:", "postgres:")
"""Nobody means a folder of that name, and a password in it would be shown as the name of the folder."""
CACHE = "~/.cache/conspectus"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where the records of a store are, and the folder for its other files.

    Of a store in a database that folder is of this machine alone: what it holds can be had or built again.
    """

    records: str
    folder: Path
    is_shared: bool


def is_address(path: str | Path) -> bool:
    """Whether a store is named by a URL, perhaps a misspelt one, and not by a folder."""
    return "://" in str(path) or str(path).startswith(MISSPELT)


def absolute(path: str | Path) -> str | Path:
    """The same place, whatever the working folder becomes."""
    return str(path) if is_address(path) else Path(path).expanduser().absolute()


def place_of(path: str | Path, settings: Settings) -> StoreAddress:
    """The place that a path or a `postgresql://` URL names. Raises InvalidInput."""
    if not is_address(path):
        folder = Path(path).expanduser().absolute()
        return StoreAddress(str(folder / RECORDS), folder, is_shared=False)
    address = str(path)
    if not address.startswith(SERVERS):
        raise InvalidInput("path", "must be the path of a folder, or begin with postgresql://")
    open_to_all = _without_user(address).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(open_to_all, digest_size=8).hexdigest()
    cache = Path(settings.cache or CACHE).expanduser().absolute()
    return StoreAddress(address, cache / digest, is_shared=True)


def _without_user(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def database_of(place: StoreAddress, settings: Settings) -> Iterator["Database"]:
    """The database of a place for the block. Raises InvalidInput or MissingExtra."""
    from conspectus.records.core.database import DatabaseAccess, database_at

    opened = database_at(
        place.records, DatabaseAccess(settings.lock_timeout_seconds, settings.database_connections)
    )
    try:
        yield opened
    finally:
        opened.close()


def require_store(path: str | Path, *, settings: Settings) -> None:
    """Raise NotFound where nothing was ever stored; and InvalidInput, StorageBusy or StorageError."""
    place = place_of(path, settings)
    if not place.is_shared:
        if not _may_be_there(Path(place.records)):
            raise NotFound("data folder", str(place.folder))
        return
    from conspectus.records.core.database import transact, version_of

    with database_of(place, settings) as database:
        if transact(database, database.reading, version_of) is None:
            raise NotFound("data in", database.name)


def _may_be_there(records: Path) -> bool:
    """Also where nobody may look, which opening them says better."""
    try:
        return records.exists()
    except OSError:
        return True
