"""The application: an engine behind HTTP."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
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

from conspectus.access.scim_tokens import ScimTokens
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.errors import ConspectusError, InvalidToken, Unauthenticated, optional
from conspectus.mcp.tool import HTTP_PATH as MCP_PATH
from conspectus.mcp.tool import SEARCH_PATH, ToolOptions, split_names
from conspectus.settings import Settings
from conspectus.web.auth import Authentication, FailureDelays, origins
from conspectus.web.body_limits import BodyLimits
from conspectus.web.chat_handover import ChatHandover, ChatStreams
from conspectus.web.health import Readiness
from conspectus.web.idempotency import HEADER, Idempotency, IdempotencyOutbox
from conspectus.web.limits import AnonymousTurns, Precedence, RequestLimits
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
from conspectus.web.protected_resource import METADATA_PATH, RESOURCES, challenge_of, metadata_of
from conspectus.web.questions import Questions
from conspectus.web.rate_limits import Rates
from conspectus.web.request_slots import RequestSlots
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
    sign_in,
    streams,
    tasks,
    well_known,
)
from conspectus.web.sse import STREAM
from conspectus.web.subscriptions import Listeners

if TYPE_CHECKING:
    from conspectus.mcp.endpoint import Endpoint

MCP_MODULE: Final = "conspectus.mcp.endpoint"
CLEANUP_SECONDS = 3_600.0
MAX_FORM_FIELDS = 20
FASTAPI_OPTIONS: dict[str, Any] = {
    "openapi_url": None,
    "docs_url": None,
    "redoc_url": None,
    "redirect_slashes": False,
    "telemetry": {"logs": False, "operation_spans": False},
}
"""Switches off pages of FastAPI, and its telemetry: records of that have messages, which may have texts."""
ROUTE_GROUPS = (
    people, jobs, documents, search,
    chat, tasks, memories, graph_export,
    streams, collections,
)  # fmt: skip
"""Graphs, streams and collections come last: their names may have slashes, so they match all paths below."""
HANDLED_ERRORS = (ConspectusError, Refused, RequestValidationError, HTTPException)
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}

module_logger = logging.getLogger(__name__)


def application(
    engine: Engine,
    settings: Settings,
    *,
    log: FilteringBoundLogger | None = None,
    mcp_only: ToolOptions | None = None,
    metrics_folder: Path | None = None,
) -> FastAPI:
    """Return an application that serves this engine, which must be that of the store's owner account.

    It neither closes the engine nor starts its queued jobs. With `mcp_only` it serves MCP with these options,
    health and metrics, and no API. `metrics_folder` is shared by several processes that serve one address.
    """
    log = log or logger(settings.log_level)
    readiness = Readiness(engine, log)
    installed = version("conspectus")
    metrics = Metrics(installed, metrics_folder)
    handover = None if engine.chat_registry is None else ChatHandover(engine.chat_registry, log)
    chats = ChatStreams(settings, log, report=metrics.chats.set, sharing=handover)
    listeners, outbox = Listeners(settings, log), IdempotencyOutbox(engine.idempotency)
    tool_options = mcp_only
    if tool_options is None:
        operations = split_names(settings.mcp_operations)
        tool_options = ToolOptions(settings.mcp_max_tokens, operations=operations)
    search_options = replace(tool_options, toolset="search_and_fetch", address=settings.own_address)
    mcp = [
        LazyMcpEndpoint(path, options, max_bytes=settings.max_request_bytes)
        for path, options in ((MCP_PATH, tool_options), (SEARCH_PATH, search_options))
    ]
    for stop in (chats.stop, listeners.stop, engine.stop_long_work):
        readiness.call_when_stopping(stop)
    app = Application(
        title="Conspectus",
        version=installed,
        description="The context engine for language models: find, rank, pack and explain context.",
        **FASTAPI_OPTIONS,
        generate_unique_id_function=operation,
        form_limits={"max_files": settings.max_upload_files, "max_fields": MAX_FORM_FIELDS},
        lifespan=partial(_lifespan, ServerTasks(engine, readiness, chats, settings, mcp, outbox)),
    )
    app.state.readiness = readiness
    app.state.body_limits = BodyLimits(settings.max_body_values)
    app.state.metrics = metrics
    _set_sign_in_state(app, engine, settings)
    app.state.streams = chats
    app.state.listeners = listeners
    for kind in HANDLED_ERRORS:
        app.add_exception_handler(kind, answer_error)
    _add_routes(app, mcp, has_api=mcp_only is None)
    if settings.scim_token and mcp_only is None:
        scim = optional("conspectus.web.scim.routes", "scim", "scim2_models")
        app.router.routes.extend(scim.scim_router(engine.make_provisioning(), settings).routes)
    _add_middleware(app, engine, settings, outbox, log)
    return app


def _add_middleware(
    app: Application,
    engine: Engine,
    settings: Settings,
    outbox: IdempotencyOutbox,
    log: FilteringBoundLogger,
) -> None:
    """Add the middleware of all requests, the innermost first."""
    metrics, table = app.state.metrics, RouteTable(app.router.routes)
    app.add_middleware(Questions, routes=app.router.routes)
    app.add_middleware(
        Idempotency,
        idempotency=engine.idempotency,
        outbox=outbox,
        routes=app.router.routes,
        table=table,
        clock=now,
    )
    app.add_middleware(Rates, rate_counters=engine.rate_counters, maximum=settings.key_requests_per_minute)
    app.add_middleware(RequestSlots, settings=settings, metrics=metrics)
    app.add_middleware(
        Authentication,
        engine=engine,
        settings=settings,
        failures=app.state.failures,
        scim_tokens=ScimTokens(settings),
    )
    app.add_middleware(RequestLimits, settings=settings, table=table, readiness=app.state.readiness)
    app.add_middleware(ErrorMiddleware, log=log, settings=settings)
    _allow_origins(app, settings)
    precedence = Precedence()
    engine.let_long_work_wait(precedence.is_held)
    app.add_middleware(AnonymousTurns, precedence=precedence)
    app.add_middleware(RequestLog, log=log, metrics=metrics)


@dataclass(frozen=True, slots=True)
class ServerTasks:
    """The background tasks of an application, and the parts that end with it."""

    engine: Engine
    readiness: Readiness
    chats: ChatStreams
    settings: Settings
    mcp: "Sequence[LazyMcpEndpoint]"
    outbox: IdempotencyOutbox

    async def run_cleanup(self) -> None:
        """Clean up every CLEANUP_SECONDS, until this is cancelled."""
        while True:
            await asyncio.sleep(CLEANUP_SECONDS)
            await self.clean_up()

    async def clean_up(self) -> None:
        """Delete expired responses and chats, and release idempotency keys of processes that ended.

        If the store is unavailable, the next call does it.
        """
        try:
            await self.engine.idempotency.give_back()
            await self.engine.idempotency.forget(now() - timedelta(hours=self.settings.idempotency_hours))
            if self.engine.chat_registry is not None:
                await self.engine.chat_registry.forget(older=CLEANUP_SECONDS)
        except ConspectusError as fault:
            module_logger.warning("idempotency_cleanup_failed code=%(code)s", {"code": fault.code})


@asynccontextmanager
async def _lifespan(server: ServerTasks, _app: FastAPI) -> AsyncIterator[None]:
    if server.engine.sign_ins is not None:
        await server.engine.sign_ins.prepare()
    await server.clean_up()
    tasks = [
        asyncio.create_task(server.readiness.replay()),
        asyncio.create_task(server.run_cleanup()),
        asyncio.create_task(server.outbox.store_results()),
        asyncio.create_task(server.outbox.renew_claims()),
    ]
    try:
        async with AsyncExitStack() as endpoints:
            for endpoint in server.mcp:
                await endpoints.enter_async_context(endpoint.run())
            yield
    finally:
        server.readiness.stop()
        await server.chats.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _set_sign_in_state(app: Application, engine: Engine, settings: Settings) -> None:
    """Give the application what sign-in needs: sessions, the provider, and delays of failures."""
    app.state.sessions = engine.sessions
    app.state.browser_sign_ins = engine.browser_sign_ins
    app.state.own_address = settings.own_address
    name = None if engine.browser_sign_ins is None else settings.oidc_name
    app.state.sign_in_provider = sign_in.describe_provider(name, settings.own_address)
    app.state.failures = FailureDelays(settings)
    app.state.readiness.call_when_stopping(app.state.failures.end_delays)
    app.state.protected_resources = _describe_protected_resources(engine, settings)


def _describe_protected_resources(engine: Engine, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the metadata of each resource by its path; none if the server takes no tokens of an issuer."""
    if engine.sign_ins is None:
        return {}
    rules = engine.sign_ins.rules
    return {f"{METADATA_PATH}{resource}": metadata_of(resource, rules, settings) for resource in RESOURCES}


def _add_routes(app: FastAPI, mcp: "Sequence[LazyMcpEndpoint]", *, has_api: bool) -> None:
    app.state.console = pages.folder_of(pages.BUILT) if has_api else None
    app.state.docs = pages.folder_of(pages.SITE) if has_api else None
    app.state.description = pages.description_of(app.title, app.version)
    public_groups = (server, pages, well_known)
    for group in (*ROUTE_GROUPS, sign_in, *public_groups) if has_api else public_groups:
        app.router.routes.extend(group.router.routes)
    app.router.routes.extend(ReadOnlyRoute(endpoint.path, endpoint) for endpoint in mcp)


def _allow_origins(app: FastAPI, settings: Settings) -> None:
    """Allow requests from web pages of the origins in the settings, if there are any."""
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
    """Return the current instant."""
    return datetime.now(UTC)


class ErrorMiddleware:
    """Turns errors into responses, unless one has begun, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, log: FilteringBoundLogger, settings: Settings) -> None:
        self._app = app
        self._log = log
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and respond to errors."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            log = self._log.bind(request_id=scope["state"]["request_id"])
            problem = self._problem_of(error, log, scope["state"]["request_id"])
            if isinstance(error, Unauthenticated) and self._settings.oidc_issuer:
                had_token = isinstance(error, InvalidToken)
                challenge = challenge_of(scope["path"], self._settings, had_token=had_token)
                problem = replace(problem, headers={**problem.headers, "WWW-Authenticate": challenge})
            if has_begun:
                raise
            await answer_problem(problem, scope["path"])(scope, receive, send_with_headers)

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


class LazyMcpEndpoint:
    """Answers messages of the Model Context Protocol; its library is loaded at the first one."""

    def __init__(self, path: str, options: ToolOptions, *, max_bytes: int) -> None:
        self.path = path
        self._options = options
        self._max_bytes = max_bytes
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._endpoint: Endpoint | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer messages during the block, which can be entered once."""
        async with self._opened:
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message."""
        async with self._opening:
            if self._endpoint is None:
                self._endpoint = await self._load()
        await self._endpoint(scope, receive, send)

    async def _load(self) -> "Endpoint":
        module = await asyncio.to_thread(optional, MCP_MODULE, "mcp", "mcp")
        endpoint: Endpoint = module.Endpoint(self._options, max_bytes=self._max_bytes)
        await self._opened.enter_async_context(endpoint.run())
        return endpoint
