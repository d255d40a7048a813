"""The requests of WebDAV (RFC 4918) that a connector sends: a listing of each folder, and files."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit
from xml.etree import ElementTree

from conspectus.connectors import Fetched, Fetcher
from conspectus.errors import FetchFailed, NotFound, TooLarge

DAV: Final = "{DAV:}"
PATH_SIGNS: Final = "-_.~/!$&'()*+,;=:@"
"""Signs that stand in a path as they are (RFC 3986)."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a listing: its path below the folder, and a text that changes with its content."""

    path: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class _Member:
    path: str
    is_folder: bool
    fingerprint: str


class WebDavServer:
    """A folder of a server, asked with these headers. It lists at most `max_files` files and folders."""

    def __init__(self, fetcher: Fetcher, address: str, headers: Mapping[str, str], max_files: int) -> None:
        self._fetcher = fetcher
        self._address = address.rstrip("/")
        self._root = unquote(urlsplit(self._address).path)
        self._headers = headers
        self._max_files = max_files

    async def list_files(self) -> AsyncIterator[StoredFile]:
        """Yield all files below the folder. Raises FetchFailed if any folder cannot be listed.

        Raises TooLarge for more files and folders than allowed.
        """
        folders, listed = [""], {""}
        while folders:
            for member in await self._list_folder(folders.pop()):
                if member.path in listed:
                    continue
                listed.add(member.path)
                if len(listed) > self._max_files:
                    raise TooLarge("folder", size=len(listed), limit=self._max_files, unit="files")
                if member.is_folder:
                    folders.append(member.path)
                else:
                    yield StoredFile(member.path, member.fingerprint)

    async def read_file(self, path: str) -> Fetched:
        """Return a file. Raises NotFound if it is gone, TooLarge and FetchFailed."""
        fetched = await self._fetcher.fetch(self._url(path), headers=self._headers)
        if fetched.status in {404, 410}:
            raise NotFound("file", path)
        return self._check(fetched, 200)

    async def _list_folder(self, folder: str) -> list[_Member]:
        headers = {**self._headers, "Depth": "1"}
        url = self._url(folder) + "/"
        fetched = self._check(await self._fetcher.fetch(url, method="PROPFIND", headers=headers), 207)
        try:
            root = ElementTree.fromstring(fetched.body)
        except ElementTree.ParseError as fault:
            raise FetchFailed(self._address, f"answered with XML that cannot be read: {fault}") from fault
        return list(self._read_members(root, folder))

    def _read_members(self, root: ElementTree.Element, folder: str) -> Iterator[_Member]:
        """Yield what is in the folder. What the server names outside it is left out."""
        start = f"{folder}/" if folder else ""
        for response in root.iter(f"{DAV}response"):
            path = self._path_of(response.findtext(f"{DAV}href", ""))
            if path is None or path == folder or not path.startswith(start):
                continue
            is_folder = response.find(f".//{DAV}resourcetype/{DAV}collection") is not None
            names = (
                ("getetag",)
                if response.findtext(f".//{DAV}getetag")
                else ("getlastmodified", "getcontentlength")
            )
            fingerprint = " ".join(response.findtext(f".//{DAV}{name}", "") for name in names)
            yield _Member(path, is_folder, fingerprint)

    def _path_of(self, href: str) -> str | None:
        """Return the path of an address below the folder; None outside it."""
        path = unquote(urlsplit(href).path).rstrip("/")
        if path == self._root:
            return ""
        below = path.removeprefix(f"{self._root}/")
        is_plain = not any(part in {"", ".", ".."} for part in below.split("/"))
        return below if below != path and is_plain else None

    def _url(self, path: str) -> str:
        return f"{self._address}/{quote(path, safe=PATH_SIGNS)}" if path else self._address

    def _check(self, fetched: Fetched, status: int) -> Fetched:
        if fetched.status == status:
            return fetched
        is_passing = fetched.status in {429, 500, 502, 503, 504}
        raise FetchFailed(
            self._address, f"responded with HTTP {fetched.status}", status=fetched.status, passing=is_passing
        )


def is_folder_address(address: str) -> bool:
    """Whether a text is an http or https address without query and credentials."""
    url = urlsplit(address)
    extra = url.query or url.fragment or url.username or url.password
    return url.scheme in {"http", "https"} and bool(url.hostname) and not extra
