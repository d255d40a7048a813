"""The connector with folders of WebDAV, held to the kit on a real server: WsgiDAV."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cheroot.wsgi import Server
from tests.support.connection_sites import open_site
from tests.support.gated_office import GatedOffice
from wsgidav.wsgidav_app import WsgiDAVApp

from conspectus.errors import InvalidInput, TooLarge
from conspectus.testing.connectors import ConnectorProperties, open_gate
from conspectus_connectors.webdav import WebDavConnector, WebDavFolders, WebDavOptions
from conspectus_connectors.webdav_api import WebDavServer

USER, PASSWORD = "reader", "hunter2-correct-horse"


@contextmanager
def run_wsgidav(folder: Path) -> Iterator[int]:
    """A server of a folder; its port."""
    application = WsgiDAVApp({
        "provider_mapping": {"/dav": str(folder)},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
        "dir_browser": {"enable": False},
        "property_manager": True,
        "verbose": 0,
        "logging": {"enable": False},
    })  # fmt: skip
    server = Server(("127.0.0.1", 0), application)
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server.bind_addr[1]
    finally:
        server.stop()
        thread.join()


@dataclass
class Cloud(GatedOffice):
    """A folder on the server, as its users change it. Pages are files `SPACE/NAME.md`."""

    root: Path
    kind: str = "webdav"

    @property
    def options(self) -> dict[str, Any]:
        return {"address": f"{self.gate.address}/dav", "user": USER}

    @property
    def credentials(self) -> dict[str, str]:
        return {"password": PASSWORD}

    def connect(self) -> WebDavConnector:
        connector = WebDavFolders().create(WebDavOptions(**self.options, **self.credentials), self.site)
        connector._batch = 2
        return connector

    async def put(self, space: str, name: str, text: str) -> None:
        path = self.root / space / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        former = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        while int(path.stat().st_mtime) <= former // 1_000_000_000:  # Its tags have seconds.
            await asyncio.sleep(0.1)
            path.touch()

    async def delete(self, space: str, name: str) -> None:
        (self.root / space / f"{name}.md").unlink()

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        (self.root / to_space).mkdir(exist_ok=True)
        (self.root / space / f"{name}.md").rename(self.root / to_space / f"{to_name}.md")

    async def remove_space(self, space: str) -> None:
        shutil.rmtree(self.root / space)


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[Cloud]:
    folder = tmp_path / "cloud"
    folder.mkdir()
    with run_wsgidav(folder) as port:
        async with open_gate(port) as gate, open_site() as site:
            yield Cloud(gate, site, folder)


class TestWebDavFolders(ConnectorProperties):
    server = "cloud"
    follows_moves = False


@pytest.mark.parametrize("address", ["ftp://a/b", "https://me:pin@a/b", "https://a/b?token=1"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="address: must be an http or https address"):
        WebDavOptions(address)


async def test_folders_in_folders_are_listed_up_to_a_limit(cloud: Cloud) -> None:
    deep = cloud.root / "One" / "Two" / "Three"
    deep.mkdir(parents=True)
    (deep / "page.md").write_text("deep words")
    (deep / "film.mp4").write_bytes(b"\x00\x00\x00\x18ftypmp42")
    [listing] = [listing async for listing in cloud.connect().changes(None)]
    assert [(page.key, page.space) for page in listing.entries] == [("One/Two/Three/page.md", "One")]
    assert listing.not_pages == ("One/Two/Three/film.mp4",)
    headers = cloud.connect()._server._headers
    server = WebDavServer(cloud.site.fetcher, f"{cloud.gate.address}/dav", headers, max_files=3)
    with pytest.raises(TooLarge):
        _ = [stored async for stored in server.list_files()]
