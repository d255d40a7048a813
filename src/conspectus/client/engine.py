"""The engine on a server, and the connection to it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache

import httpx

from conspectus import bootstrap
from conspectus.client.channels import RemoteChannels
from conspectus.client.chat import RemoteChat
from conspectus.client.collections import RemoteCollections
from conspectus.client.documents import RemoteDocuments
from conspectus.client.memory import RemoteMemory, RemoteRetention
from conspectus.client.services import (
    RemoteAlerts,
    RemoteConnections,
    RemoteFiles,
    RemoteGraph,
    RemoteJobs,
    RemoteMaintenance,
    RemotePeople,
    RemoteSearch,
)
from conspectus.client.streams import RemoteEvents, RemoteStreams, RemoteSummaries
from conspectus.client.transport import Transport, TransportLimits
from conspectus.engine.context import short
from conspectus.engine.documents import DocumentService
from conspectus.engine.search import SearchService
from conspectus.engine.tasks import TaskService
from conspectus.errors import InvalidInput
from conspectus.model.trust import Origin
from conspectus.model.validation import checked_arguments
from conspectus.ports import Archives, CountTokens, Files
from conspectus.settings import Settings


class RemoteEngine:
    """The services of Engine on a server. Opened with `conspectus.connect`; safe to use from many tasks.

    Results and errors are those of Engine. Raises PermissionDenied if the key does not permit an operation,
    and ServerUnavailable if the server cannot be reached.
    """

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        given = self._given = (channel, files, archives)
        self.collections = RemoteCollections(*given)
        self.documents = RemoteDocuments(*given)
        self.search = RemoteSearch(*given)
        self.channels = RemoteChannels(*given)
        self.chat = RemoteChat(*given)
        self.tasks = TaskService(self)
        self.streams = RemoteStreams(*given)
        self.events = RemoteEvents(*given)
        self.summaries = RemoteSummaries(*given)
        self.alerts = RemoteAlerts(*given)
        self.memory = RemoteMemory(*given)
        self.retention = RemoteRetention(*given)
        self.graph = RemoteGraph(*given)
        self.people = RemotePeople(*given)
        self.jobs = RemoteJobs(*given)
        self.connections = RemoteConnections(*given)
        self.files = RemoteFiles(*given)
        self.maintenance = RemoteMaintenance(*given)

    add = short("documents", DocumentService.add)
    retrieve = short("search", SearchService.retrieve)
    window = short("search", SearchService.window)
    explain = short("search", SearchService.explain)

    def with_origin(self, origin: Origin) -> "RemoteEngine":
        """Return an engine whose writes have at most the level of texts of an origin, as `agent`."""
        channel, files, archives = self._given
        return RemoteEngine(channel.with_origin(origin), files, archives)

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the local function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return bootstrap.local_counter(name)


@asynccontextmanager
@checked_arguments
async def open(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> AsyncIterator[RemoteEngine]:
    """Use the server at `url` with an API key, and disconnect at the end of the block.

    Defaults come from the settings and the environment (CONSPECTUS_URL and CONSPECTUS_API_KEY). No request is
    sent yet. Raises InvalidInput for an invalid address or key.
    """
    chosen = Settings.from_environment() if settings is None else settings
    address = checked(url or chosen.url)
    limits = TransportLimits(seconds=chosen.client_timeout_seconds, answer_bytes=chosen.max_response_bytes)
    headers = authorization(chosen.api_key if api_key is None else api_key)
    hooks = {"request": [_traced(current)] if (current := bootstrap.start_telemetry(chosen)) else []}
    async with httpx.AsyncClient(
        headers=headers, timeout=chosen.client_timeout_seconds, verify=_trusted(), event_hooks=hooks
    ) as http:
        channel = Transport(http, address, limits)
        yield RemoteEngine(channel, bootstrap.local_files(chosen), bootstrap.local_archives(chosen))


def _traced(current: Callable[[], dict[str, str]]) -> Callable[[httpx.Request], Awaitable[None]]:
    """Have a request continue the trace of the caller."""

    async def carry(request: httpx.Request) -> None:
        request.headers.update(current())

    return carry


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificate authorities of this machine, loaded once for all clients."""
    return httpx.create_ssl_context()


def checked(url: str) -> str:
    """Return the base address. Raises InvalidInput."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as fault:
        raise InvalidInput("url", f"{url!r:.200} is not a valid address: {fault}") from fault
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise InvalidInput("url", f"{url!r:.200} does not begin with http:// or https:// and a name")
    if parts.userinfo or parts.query or parts.fragment:
        raise InvalidInput("url", "must be a server and a path only; pass the key as `api_key`")
    return str(parts).rstrip("/")


def authorization(api_key: str) -> dict[str, str]:
    """Return the Authorization header, if there is a key. Raises InvalidInput."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise InvalidInput("api_key", "contains characters that are not allowed in a key")
    return {"Authorization": f"Bearer {api_key}"}
