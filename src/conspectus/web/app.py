"""The application: an engine behind HTTP."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.errors import ConspectusError, optional
from conspectus.mcp.tool import HTTP_PATH as MODELS
from conspectus.mcp.tool import ToolOptions, listed_names
from conspectus.settings import Settings
from conspectus.web.auth import Authentication, origins
from conspectus.web.body_limits import BodyLimits
from conspectus.web.chat_handover import ChatHandover, ChatStreams
from conspectus.web.health import Readiness
from conspectus.web.idempotency import HEADER, Idempotency, IdempotencyOutbox
from conspectus.web.limits import AnonymousTurns, ConcurrencyLimits, Shares
from conspectus.web.logs import REQUEST_ID, RequestLog, fault_facts, logger
from conspectus.web.metrics import Metrics
from conspectus.web.openapi import Application, operation
from conspectus.web.problem_details import (
    Problem,
    Refused,
    answer_error,
    answer_problem,
    internal_problem,
    problem_of,
)
from conspectus.web.questions import Questions
from conspectus.web.rate_limits import Rates
from conspectus.web.route_table import ReadOnlyRoute, RouteTable
from conspectus.web.routes import (
    chat,
    collections,
    documents,
    graph_export,
    jobs,
    memories,
    pages,
    people,
    search,
    server,
    streams,
    tasks,
)
from conspectus.web.sse import STREAM
from conspectus.web.subscriptions import Listeners

MCP_ENDPOINT: Final = "conspectus.mcp.endpoint"
FORGET_SECONDS = 3_600.0
work = logging.getLogger(__name__)

if TYPE_CHECKING:
    from conspectus.mcp.endpoint import Endpoint
MAX_FIELDS = 20
WITHOUT: dict[str, Any] = {
    "openapi_url": None,
    "docs_url": None,
    "redoc_url": None,
    "redirect_slashes": False,
    "telemetry": {"logs": False, "operation_spans": False},
}
"""What FastAPI would do by itself; records of its telemetry have messages, and so texts."""
GROUPS = (
    people, jobs, documents, search,
    chat, tasks, memories, graph_export,
    streams, collections,
)  # fmt: skip
"""Graphs, streams and collections come last: names may hold a slash, so their routes match all below."""
HANDLED = (ConspectusError, Refused, RequestValidationError, HTTPException)


def application(
    engine: Engine,
    settings: Settings,
    *,
    log: FilteringBoundLogger | None = None,
    only_models: ToolOptions | None = None,
    counted: Path | None = None,
) -> FastAPI:
    """An application that serves this engine, which must be that of the store's owner account.

    It neither closes the engine nor starts its queued jobs. With `only_models` it serves MCP with these
    options, health and metrics, and no API. `counted` is the folder for the metrics of several processes that
    serve one address.
    """
    chosen_log = log or logger(settings.log_level)
    readiness = Readiness(engine, chosen_log)
    installed = version("conspectus")
    metrics = Metrics(installed, counted)
    sharing = None if engine.chat_registry is None else ChatHandover(engine.chat_registry, chosen_log)
    chats = ChatStreams(settings, chosen_log, report=metrics.chats.set, sharing=sharing)
    listeners, endings = Listeners(settings, chosen_log), IdempotencyOutbox(engine.idempotency)
    added = listed_names(settings.mcp_operations)
    options = ToolOptions(settings.mcp_max_tokens, operations=added) if only_models is None else only_models
    models = ModelsEndpoint(options, max_bytes=settings.max_request_bytes)
    for stop in (chats.stop, listeners.stop, engine.stop_long_work):
        readiness.when_stopping(stop)
    app = Application(
        title="Conspectus",
        version=installed,
        description="The context engine for language models: find, rank, pack and explain context.",
        **WITHOUT,
        generate_unique_id_function=operation,
        form_limits={"max_files": settings.max_upload_files, "max_fields": MAX_FIELDS},
        lifespan=partial(_lifespan, Running(engine, readiness, chats, settings, models, endings)),
    )
    app.state.readiness = readiness
    app.state.body_limits = BodyLimits(settings.max_body_values)
    app.state.metrics = metrics
    app.state.sessions = engine.sessions
    app.state.streams = chats
    app.state.listeners = listeners
    app.state.endings = endings
    for kind in HANDLED:
        app.add_exception_handler(kind, answer_error)
    _include(app, models, api=only_models is None)
    _surround(app, engine, settings, chosen_log)
    return app


def _surround(app: Application, engine: Engine, settings: Settings, log: FilteringBoundLogger) -> None:
    """The middleware of each request, the innermost first."""
    metrics, table = app.state.metrics, RouteTable(app.router.routes)
    app.add_middleware(Questions, routes=app.router.routes)
    app.add_middleware(
        Idempotency,
        idempotency=engine.idempotency,
        endings=app.state.endings,
        routes=app.router.routes,
        table=table,
        clock=now,
    )
    app.add_middleware(Rates, rate_counters=engine.rate_counters, maximum=settings.key_requests_per_minute)
    app.add_middleware(Shares, settings=settings, metrics=metrics)
    app.add_middleware(Authentication, engine=engine, settings=settings, readiness=app.state.readiness)
    app.add_middleware(ConcurrencyLimits, settings=settings, table=table, readiness=app.state.readiness)
    app.add_middleware(ErrorMiddleware, log=log)
    _allow_origins(app, settings)
    app.add_middleware(AnonymousTurns)
    app.add_middleware(RequestLog, log=log, metrics=metrics)


@dataclass(frozen=True, slots=True)
class Running:
    """The background tasks of the server."""

    engine: Engine
    readiness: Readiness
    streams: ChatStreams
    settings: Settings
    models: "ModelsEndpoint"
    endings: IdempotencyOutbox

    async def begin(self) -> None:
        """Free the keys of writes that a process which ended left unanswered."""
        await self._tidy()

    async def run_cleanup(self) -> None:
        """Delete kept answers when their time has come, and give back keys that died with other processes."""
        while True:
            await asyncio.sleep(FORGET_SECONDS)
            await self._tidy()

    async def _tidy(self) -> None:
        """Work that fails because the store is unavailable is done the next time."""
        try:
            await self.engine.idempotency.give_back()
            await self.engine.idempotency.forget(now() - timedelta(hours=self.settings.idempotency_hours))
            if self.engine.chat_registry is not None:
                await self.engine.chat_registry.forget(older=FORGET_SECONDS)
        except ConspectusError as fault:
            work.warning("idempotency_cleanup_failed code=%(code)s", {"code": fault.code})


@asynccontextmanager
async def _lifespan(running: Running, _app: FastAPI) -> AsyncIterator[None]:
    await running.begin()
    tasks = [
        asyncio.create_task(running.readiness.replay()),
        asyncio.create_task(running.run_cleanup()),
        asyncio.create_task(running.endings.store_results()),
        asyncio.create_task(running.endings.renew_claims()),
    ]
    try:
        async with running.models.running():
            yield
    finally:
        running.readiness.stop()
        await running.streams.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _include(app: FastAPI, models: "ModelsEndpoint", *, api: bool) -> None:
    app.state.console = pages.folder_of(pages.BUILT) if api else None
    app.state.docs = pages.folder_of(pages.SITE) if api else None
    app.state.description = pages.description_of(app.title, app.version)
    public_groups = (server, pages)
    for group in (*GROUPS, *public_groups) if api else public_groups:
        app.router.routes.extend(group.router.routes)
    app.router.routes.append(ReadOnlyRoute(MODELS, models))


def _allow_origins(app: FastAPI, settings: Settings) -> None:
    """Let web pages of these origins ask, if there are any."""
    allowed = origins(settings)
    if allowed:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=allowed,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                *("Authorization", "Content-Type", "If-Match", "If-None-Match", "Last-Event-ID"),
                *(HEADER, REQUEST_ID),
            ],
            expose_headers=["ETag", "Location", "Retry-After", "Idempotent-Replayed", REQUEST_ID, STREAM],
        )


def now() -> datetime:
    """The current instant."""
    return datetime.now(UTC)


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class ErrorMiddleware:
    """Answers for errors before a response began, and puts the headers on every response."""

    def __init__(self, app: ASGIApp, log: FilteringBoundLogger) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer for errors."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def out(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, out)
        except Exception as error:
            log = self._log.bind(request_id=scope["state"]["request_id"])
            problem = self._problem_of(error, log, scope["state"]["request_id"])
            if begun:
                raise
            await answer_problem(problem, scope["path"])(scope, receive, out)

    def _problem_of(self, error: Exception, log: FilteringBoundLogger, request_id: str) -> Problem:
        match error:
            case Refused():
                problem = error.problem
            case ConspectusError():
                problem = problem_of(error)
            case _:
                problem = internal_problem(request_id)
        if problem.status == 500:
            log.error("request_failed", **fault_facts(error))
        return problem


class ModelsEndpoint:
    """Answers messages of the Model Context Protocol; its library is loaded at the first one."""

    path = MODELS

    def __init__(self, options: ToolOptions, *, max_bytes: int) -> None:
        self._options = options
        self._max_bytes = max_bytes
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._endpoint: Endpoint | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which it answers; there is only one."""
        async with self._opened:
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message."""
        async with self._opening:
            if self._endpoint is None:
                self._endpoint = await self._loaded()
        await self._endpoint(scope, receive, send)

    async def _loaded(self) -> "Endpoint":
        module = await asyncio.to_thread(optional, MCP_ENDPOINT, "mcp", "mcp")
        endpoint: Endpoint = module.Endpoint(self._options, max_bytes=self._max_bytes)
        await self._opened.enter_async_context(endpoint.running())
        return endpoint
