"""Folders of WebDAV servers, such as Nextcloud, ownCloud and Seafile."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from conspectus.connectors import (
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    FileReader,
    Length,
    Listing,
    NewDocument,
    PacedFetcher,
    Range,
    Secret,
)
from conspectus.errors import InvalidInput
from conspectus_connectors.path_listing import RemoteFile, list_changes
from conspectus_connectors.webdav_api import WebDavServer, is_folder_address

BATCH: Final = 500


@dataclass(frozen=True)
class WebDavOptions(Checked):
    """How to reach a folder, and as whom."""

    address: Annotated[
        str,
        Length(1, 2_000),
        "Address of the folder.",
        Example("https://cloud.example.org/remote.php/dav/files/reader/Handbook"),
    ]
    user: Annotated[str, Length(0, 200), "Name of the user who reads; empty: nobody signs in."] = ""
    password: Annotated[str, Length(0, 500), "Password of that user, best one for this alone.", Secret] = (
        field(default="", repr=False)
    )
    max_files: Annotated[int, Range(1, 1_000_000), "Most files that are listed."] = 100_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_folder_address(self.address):
            raise InvalidInput("address", "must be an http or https address without query and credentials")
        if ":" in self.user:
            raise InvalidInput("user", "has no colon")


class WebDavFolders:
    """Creates connectors with folders of WebDAV."""

    title: ClassVar[str] = "Folder of WebDAV (Nextcloud, ownCloud, Seafile)"
    options: ClassVar[type[WebDavOptions]] = WebDavOptions

    def is_local(self, options: WebDavOptions) -> bool:
        """Return False: the fetcher reaches nothing inside without the settings' leave."""
        return False

    def create(self, options: WebDavOptions, site: ConnectionSite) -> "WebDavConnector":
        """Return the connector of a folder."""
        headers: dict[str, str] = {}
        if options.user:
            pair = f"{options.user}:{options.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        server = WebDavServer(PacedFetcher(site.fetcher), options.address, headers, options.max_files)
        return WebDavConnector(server, site.files)


class WebDavConnector:
    """Reads a folder. Keys are paths: a renamed file is another one."""

    def __init__(self, server: WebDavServer, files: FileReader, *, batch: int = BATCH) -> None:
        self._server = server
        self._files = files
        self._batch = batch

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield what changed since the cursor, by tags, or by time and size where there are none."""
        fingerprints = {stored.path: stored.fingerprint async for stored in self._server.list_files()}
        files = {
            path: RemoteFile(path, fingerprint)
            for path, fingerprint in sorted(fingerprints.items())
            if self._files.reads(path)
        }
        not_pages = sorted(fingerprints.keys() - files.keys())
        for listing in list_changes(files, cursor, size=self._batch, not_pages=not_pages):
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return a file as a document."""
        fetched = await self._server.read_file(entry.key)
        return await self._files.read(fetched.body, entry.key, charset=fetched.charset)

    async def close(self) -> None:
        """Hold nothing."""
