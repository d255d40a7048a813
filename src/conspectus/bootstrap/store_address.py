"""The address of a store, a folder or a database that many processes share, and the names of its indexes."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.files import expand_home
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.settings import RECORDS, Settings

if TYPE_CHECKING:
    from conspectus.records.core.database import Database


SERVERS = ("postgresql://", "postgres://")
MISSPELT = ("postgresql:", "postgres:")
"""A folder is never meant by these prefixes, and a password in one would be shown as a folder name."""
MAKE_STORE = "`conspectus add PATH` makes one, and --data-dir names another"
CACHE = "~/.cache/conspectus"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The address of the records of a store, and the folder for its other files.

    For a store in a database, the folder is local to the machine: its content can be rebuilt.
    """

    records: str
    folder: Path
    is_shared: bool


def is_address(path: str | Path) -> bool:
    """Return whether a store is named by a URL, even a misspelled one, and not by a folder."""
    return "://" in str(path) or str(path).startswith(MISSPELT)


def absolute(path: str | Path) -> str | Path:
    """Return the same address, independent of the working directory."""
    return str(path) if is_address(path) else expand_home(path).absolute()


def address_of(path: str | Path, settings: Settings) -> StoreAddress:
    """Return the address of a path or a `postgresql://` URL. Raises InvalidInput."""
    if not is_address(path):
        folder = expand_home(path).absolute()
        return StoreAddress(str(folder / RECORDS), folder, is_shared=False)
    address = str(path)
    if not address.startswith(SERVERS):
        raise InvalidInput("path", "must be the path of a folder, or begin with postgresql://")
    parts = urlsplit(address)
    open_to_all = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    digest = hashlib.blake2b(open_to_all.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    cache = expand_home(settings.cache or CACHE).absolute()
    return StoreAddress(address, cache / digest, is_shared=True)


@contextmanager
def database_of(address: StoreAddress, settings: Settings) -> Iterator["Database"]:
    """Open the database of an address for the block. Raises InvalidInput or MissingExtra."""
    from conspectus.records.core.database import DatabaseAccess, database_at

    opened = database_at(
        address.records, DatabaseAccess(settings.lock_timeout_seconds, settings.database_connections)
    )
    try:
        yield opened
    finally:
        opened.close()


def require_store(path: str | Path, *, settings: Settings) -> None:
    """Raise NotFound if there is no store; and InvalidInput, StorageBusy or StorageError."""
    address = address_of(path, settings)
    if not address.is_shared:
        if not _may_exist(Path(address.records)):
            raise NotFound("data folder", str(address.folder), MAKE_STORE)
        return
    from conspectus.records.core.database import transact
    from conspectus.records.core.schema import version_of

    with database_of(address, settings) as database:
        if transact(database, database.reading, version_of) is None:
            raise NotFound("data in", database.name, MAKE_STORE)


def _may_exist(records: Path) -> bool:
    """Return true also if access is denied: opening the store reports that better."""
    try:
        return records.exists()
    except OSError:
        return True


def space_name(space: EmbeddingSpace | None) -> str:
    """Return the name of an embedding model in names of indexes."""
    return "words" if space is None else space.name


def index_name(prefix: str, collection: Collection, space: str) -> str:
    """Return a name of an index that is unique among stores, and differs from that of a deleted namesake."""
    parts = (collection.id, collection.created.isoformat(), space)
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{prefix}_{digest.hexdigest()}"
