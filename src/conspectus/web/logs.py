"""One line of JSON for every request, without content and without secrets."""

import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TextIO
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from conspectus.errors import ConspectusError
from conspectus.web.metrics import Metrics

REQUEST_ID = "X-Request-Id"
GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
API = "/api/v1"
UNMATCHED = "unmatched"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def logger(level: str, stream: TextIO | None = None) -> FilteringBoundLogger:
    """Return a logger that writes lines of JSON to a stream, by default standard error."""
    log: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    return log


class Forwarding(logging.Handler):
    """Writes log records of libraries in our format, without their values: those may have content."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line. For our own events, the values are fields."""
        is_ours, text = record.name.startswith("conspectus"), str(record.msg)
        facts = record.args if is_ours and isinstance(record.args, Mapping) else {}
        event = text
        if facts:
            event = text.split()[0]
        elif is_ours:
            event = record.getMessage()
        self._log.log(record.levelno, event, logger=record.name, **facts)


@contextmanager
def forward_library_logs(log: FilteringBoundLogger) -> Iterator[None]:
    """Write the warnings and log records of libraries to the log."""
    handler = Forwarding(log)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def fault_facts(error: BaseException) -> dict[str, Any]:
    """Return the log fields of an error: where it happened, and its message only if that has no content."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    details = {"message": str(error)} if isinstance(error, ConspectusError | OSError) else {}
    cause = error.__cause__
    because = {"cause": type(cause).__qualname__} if cause is not None else {}
    return {"error": type(error).__qualname__, **details, **because, "traceback": where}


def route_of(scope: Scope) -> str:
    """Return the template of the request's route, without the values of its parameters."""
    path: str = getattr(scope.get("route") or scope.get("endpoint"), "path", UNMATCHED)
    return path


class RequestLog:
    """Names each request, measures it, and writes its line when it is over."""

    def __init__(self, app: ASGIApp, log: FilteringBoundLogger, metrics: Metrics) -> None:
        self._app = app
        self._log = log
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = RequestRecord(scope, receive, send)
        start = perf_counter()
        try:
            with self._metrics.in_flight.track_inprogress():
                await self._app(scope, record.receive, record.send)
        finally:
            self._note(scope, record, perf_counter() - start)

    def _note(self, scope: Scope, record: "RequestRecord", seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = route_of(scope)
        person = scope["state"].get("person")
        self._metrics.observe(method, route, record.status, seconds)
        self._log.info(
            "request",
            request_id=record.id,
            method=method,
            route=route,
            status=record.status,
            milliseconds=round(seconds * 1_000, 1),
            person=person.id if person is not None else None,
            received=record.received,
            sent=record.sent,
        )


class RequestRecord:
    """The log data of a request: its id, its status (0: none was sent), and the bytes received and sent."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = Headers(scope=scope).get(REQUEST_ID, "")
        self.id = request_id if GOOD_ID.fullmatch(request_id) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = self.id
        self.status = self.received = self.sent = 0
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """Return the next part of the request."""
        message = await self._receive()
        self.received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        """Send the next part of the answer, with the request's id in its head."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID] = self.id
        self.sent += len(message.get("body", b""))
        await self._send(message)
