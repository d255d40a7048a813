"""Running the application: where it listens, who may come in, and how it ends."""

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from conspectus import bootstrap
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.engine.background_work import run_background_work, start_work, watch_work
from conspectus.errors import InvalidInput
from conspectus.mcp.tool import ToolOptions
from conspectus.model.query import EVERYWHERE
from conspectus.settings import Settings
from conspectus.web.app import application
from conspectus.web.auth import is_loopback
from conspectus.web.connections import Connection, Connections
from conspectus.web.health import Readiness
from conspectus.web.logs import fault_facts, forward_library_logs, logger
from conspectus.web.warmup import short_waits

BACKLOG = 2_048
IDLE_SECONDS = 15
POLL_SECONDS = 0.05
CLOSE = (b"connection", b"close")


@dataclass(frozen=True, slots=True)
class Opened:
    """A server that takes requests: its address, and the owner's key if it was made just now."""

    address: str
    key: str | None


async def serve(
    settings: Settings,
    *,
    path: str | Path | None = None,
    keyless: bool | None = False,
    announce: Callable[[Opened], None],
    mcp_only: ToolOptions | None = None,
) -> None:
    """Serve the store at `path` until the process is asked to stop, then finish what is being answered.

    The first start makes the owner account, whose key is announced once. `keyless` makes none: without
    accounts, requests from this machine are the owner's. None makes none either, and requires a key if there
    are accounts. With `mcp_only` nothing is served but the Model Context Protocol. Raises InvalidInput for
    a place where it cannot listen, or may not because other machines could reach it without a key.
    """
    log = logger(settings.log_level)
    with forward_library_logs(log), closing(bound(settings.host, settings.port)) as listener:
        async with bootstrap.open(path, settings=settings) as engine:
            key = await first_key(engine, settings, keyless=keyless)
            app = application(engine, settings, log=log, mcp_only=mcp_only)
            async with run_work(engine, settings, log):
                listener.listen()
                announce(Opened(address_of(listener, settings.host), key))
                await Server(app, settings).serve(sockets=[listener])


@asynccontextmanager
async def run_work(engine: Engine, settings: Settings, log: FilteringBoundLogger) -> AsyncIterator[None]:
    """Run background work during the block, if the settings say so; an error that ends it is logged.

    The block continues: a server keeps serving without background work.
    """
    await start_work(engine, settings)
    works: list[Coroutine[object, object, None]] = [watch_work(engine, settings)]
    if settings.run_background_jobs == "on":
        works.append(run_background_work(engine))
    tasks = {asyncio.create_task(work) for work in works}
    for task in tasks:
        task.add_done_callback(partial(_tell_end, log))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _tell_end(log: FilteringBoundLogger, watching: asyncio.Task[None]) -> None:
    fault = None if watching.cancelled() else watching.exception()
    if fault is not None:
        log.error("background_failed", **fault_facts(fault))


async def first_key(engine: Engine, settings: Settings, *, keyless: bool | None) -> str | None:
    """Return the owner's key if it had to be made. Raises InvalidInput where a key is needed but missing."""
    if keyless is None:
        return None
    local = is_loopback(settings.host)
    if keyless:
        if not local:
            raise InvalidInput(
                "keyless",
                f"{settings.host} can be reached from other machines; listen on 127.0.0.1 or use keys",
            )
        if await engine.people.list_users():
            raise InvalidInput(
                "keyless", "the store has accounts, so every request needs a key; remove --no-auth"
            )
        return None
    owner_key = await engine.keys.create_first()
    if not local and not await _can_be_entered(engine):
        reason = f"{settings.host} can be reached from other machines; no key is valid; create one first"
        raise InvalidInput("host", reason)
    return owner_key.secret if owner_key is not None else None


async def _can_be_entered(engine: Engine) -> bool:
    """Return whether any key is valid now."""
    active = {user.id for user in await engine.people.list_users() if not user.disabled}
    now = bootstrap.now()
    return any(key.user in active and key.valid(now) for key in await engine.keys.list(EVERYWHERE))


class Listening(socket.socket):
    """A socket with a long queue: asyncio asks for one no longer than what it accepts at once."""

    def listen(self, _backlog: int = BACKLOG, /) -> None:
        """Let connections come, and many of them wait."""
        super().listen(BACKLOG)


def bound(host: str, port: int) -> Listening:
    """Return a socket that has its address but does not listen yet. Raises InvalidInput."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # With its protocol named, asyncio sends small answers at once instead of waiting for the last ACK.
        listener = Listening(*addresses[0][:3])
    except (OSError, OverflowError, UnicodeError) as fault:
        raise InvalidInput("host", f"{host} port {port} is not an address of this machine") from fault
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(addresses[0][4])
    except (OSError, OverflowError) as fault:
        listener.close()
        raise InvalidInput("port", f"cannot listen on {host} port {port}: {fault}") from fault
    return listener


def address_of(listener: socket.socket, host: str) -> str:
    """Return the address of the server as a URL."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def configure(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return the settings of the HTTP server: how connections are treated.

    One connection is accepted at a time, so that processes at one address share them evenly.
    """
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=Connection,
        timeout_keep_alive=settings.header_seconds or IDLE_SECONDS,
        ws="none",
        lifespan="on",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        backlog=1,
        timeout_graceful_shutdown=settings.job_grace_seconds,
    )


class Leaving:
    """Has every answer close its connection once the server is about to stop."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._readiness: Readiness = app.state.readiness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def send_with_close(message: Message) -> None:
            if message["type"] == "http.response.start" and self._readiness.state == "stopping":
                message["headers"] = [*message.get("headers", ()), CLOSE]
            await send(message)

        await self._app(scope, receive, send_with_close)


class Server(uvicorn.Server):
    """A server that ends well when it is asked to, and at once when it is interrupted a second time."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(configure(Leaving(app), settings))
        self.server_state = self._connections = Connections(settings)
        self._readiness: Readiness = app.state.readiness
        self._drain = settings.drain_seconds
        self._idle_seconds = settings.header_seconds or IDLE_SECONDS
        self._begun = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests until the server is stopped."""
        with short_waits():
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._begun.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections, and those that are accepted meanwhile."""
        self._connections.is_ending = True
        await super().shutdown(sockets)

    async def wait_until_answering(self) -> None:
        """Wait until it answers."""
        await self._begun.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT end the server, where this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, self.stop)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            if not self.should_exit:
                loop.remove_signal_handler(signal.SIGINT)

    def stop(self) -> None:
        """Say that nothing new should come, and finish what comes for a while and what is being answered.

        From now on, an interrupt ends the process.
        """
        loop = asyncio.get_running_loop()
        self._readiness.covered = False
        self._readiness.stop()
        loop.call_later(self._drain, self._end)
        if loop.remove_signal_handler(signal.SIGINT):
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def leave(self) -> None:
        """Accept no new connections, and end when the existing ones are closed."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave())

    async def _leave(self) -> None:
        self._readiness.covered = True
        self._readiness.stop()
        for server in self.servers:
            server.close()
        for _ in range(round(self._idle_seconds / POLL_SECONDS)):
            if not self.server_state.connections:
                break
            await asyncio.sleep(POLL_SECONDS)
        self._end()

    def _end(self) -> None:
        self.should_exit = True
