"""What the connector of one connection may use, for tests without an engine."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from conspectus import Settings
from conspectus.connectors import ConnectionSite
from conspectus.sources.connectors.remote_files import RemoteFileReader
from conspectus.sources.web.allowed_hosts import AllowedHosts
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits


@asynccontextmanager
async def open_site() -> AsyncIterator[ConnectionSite]:
    """A site that may ask this machine."""
    fetcher = WebFetcher(FetchLimits(allow=("127.0.0.1",)))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(fetch_allowed_networks="127.0.0.1")
        hosts = AllowedHosts.from_settings(settings)
        yield ConnectionSite(fetcher, Path(folder), settings, RemoteFileReader(settings), hosts)
    await fetcher.close()
