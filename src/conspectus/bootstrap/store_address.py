"""Where a store is: in a folder, or in a database that many processes share."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from conspectus.errors import InvalidInput
from conspectus.settings import RECORDS, Settings

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
