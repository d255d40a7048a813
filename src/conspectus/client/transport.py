"""HTTP requests to one server, and the interpretation of responses and errors."""

import inspect
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any, Final, TypeVar
from uuid import uuid4

import httpx

from conspectus.client.decode import Misread, decode, decode_list, decode_member
from conspectus.client.request import Request, body_of
from conspectus.deferred import dataclass
from conspectus.errors import (
    ChatError,
    Conflict,
    ConspectusError,
    ForkedEngine,
    InvalidInput,
    Overloaded,
    ServerUnavailable,
    StorageBusy,
    StoreClosed,
    TooLarge,
)
from conspectus.model.retries import BUSY, RetryPolicy
from conspectus.model.trust import ORIGIN_HEADER, Origin, least_trusted
from conspectus.ports import Archives, Files, Progress

S = TypeVar("S")
T = TypeVar("T")
PREFIX: Final = "/api/v1"
PROBLEM: Final = "application/problem+json"
REPEATED: Final = "idempotency key"
"""The kind of a Conflict while the same request is still being processed."""
RETRY_POLICY: Final = RetryPolicy(attempts=4, first_wait=0.5)
PASSING: Final = (ServerUnavailable, Overloaded, StorageBusy)
"""Statuses that are retried for requests that may be repeated."""
OWN_FAULTS: Final = frozenset({"internal", "not_ready", "request_timeout", "timeout"})
"""Error codes of failures in the server, as opposed to invalid requests."""


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """Timeout in seconds between bytes of a response, its maximum size, and the number of attempts."""

    seconds: float
    answer_bytes: int
    retry_policy: RetryPolicy = RETRY_POLICY


class _Retry(Exception):
    """The request can be repeated, after `wait` seconds if the server said so; else `error` is raised."""

    def __init__(self, error: ConspectusError, wait: float | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.wait = wait


class Transport:
    """HTTP transport to one server. Requests are repeated only if that cannot have a second effect."""

    def __init__(
        self, http: httpx.AsyncClient, url: str, limits: TransportLimits, origin: Origin | None = None
    ) -> None:
        self._http = http
        self._url = url
        self._limits = limits
        self._origin = origin
        self._process = os.getpid()

    def with_origin(self, origin: Origin) -> "Transport":
        """Return the transport of requests with the header of an origin."""
        return Transport(self._http, self._url, self._limits, least_trusted(self._origin, origin))

    async def one(self, kind: type[T], request: Request) -> T:
        """Return the object of that type in the response."""
        return await self._read(partial(decode, kind), request)

    async def several(self, kind: type[T], request: Request) -> list[T]:
        """Return the list of objects of that type in the response."""
        return await self._read(partial(decode_list, kind), request)

    async def member(self, kind: type[T], name: str, request: Request) -> T:
        """Return one member of the response's object."""
        return await self._read(partial(decode_member, kind, name), request)

    async def _read(self, read: Callable[[object], T], request: Request) -> T:
        answer = await self.answer(request)
        try:
            return read(answer)
        except Misread as fault:
            raise self.unclear(str(fault)) from fault

    async def answer(self, request: Request) -> Any:
        """Return the JSON of the response (None: empty). Raises the error that the server reports."""
        return await self._retry_patiently(partial(self._answer_once, request, uuid4().hex))

    async def pieces(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yield a response as it arrives. Raises the error of the server before the first piece."""
        async with AsyncExitStack() as stack:
            response = await self._retry_patiently(partial(self._begin_response, request, stack))
            try:
                async for piece in self._read_limited(response):
                    yield piece
            except httpx.TimeoutException as fault:
                raise self._silent(fault) from fault
            except httpx.RequestError as fault:
                raise self.make_lost_answer_error(_reason(fault)) from fault

    async def pause(self, attempt: int) -> None:
        """Wait before the next connection of a stream."""
        await self._limits.retry_policy.sleep(self._limits.retry_policy.wait(attempt, None))

    def make_lost_answer_error(self, reason: str) -> ServerUnavailable:
        """Return the error for a response that ended early."""
        return ServerUnavailable(self._url, f"the connection was lost: {reason}")

    def unclear(self, reason: str) -> ServerUnavailable:
        """Return the error for a response that cannot be understood."""
        return ServerUnavailable(self._url, f"not a response of a Conspectus server: {reason}")

    async def _retry_patiently(self, do: Callable[[], Awaitable[T]]) -> T:
        retry_policy, attempt = self._limits.retry_policy, 0
        while True:
            try:
                return await do()
            except _Retry as again:
                wait = retry_policy.wait(attempt, again.wait)
                attempt += 1
                if attempt == retry_policy.attempts or wait > retry_policy.max_wait:
                    raise again.error from again.__cause__
            await retry_policy.sleep(wait)

    async def _answer_once(self, request: Request, key: str) -> Any:
        with self._faults(request):
            async with self._send(request, key) as response:
                return self._decode_response(request, response, await self._read_body(response))

    async def _begin_response(self, request: Request, stack: AsyncExitStack) -> httpx.Response:
        """Send a request, and return the response when its head has arrived. The stack closes it."""
        with self._faults(request):
            response = await stack.enter_async_context(self._send(request, uuid4().hex))
            if not response.is_success:
                self._decode_response(request, response, await self._read_body(response))
            return response

    @contextmanager
    def _faults(self, request: Request) -> Iterator[None]:
        """Convert transport errors to ours, or to _Again if the request can be repeated."""
        try:
            yield
        except httpx.InvalidURL as fault:
            raise InvalidInput(
                "request", "the address of the request is too long; shorten a name or filter"
            ) from fault
        except httpx.TimeoutException as fault:
            raise self._silent(fault) from fault
        except httpx.ConnectError as fault:
            raise _Retry(ServerUnavailable(self._url, f"cannot be reached: {_reason(fault)}")) from fault
        except httpx.RequestError as fault:
            lost = self.make_lost_answer_error(_reason(fault))
            raise (lost if request.once else _Retry(lost)) from fault

    @asynccontextmanager
    async def _send(self, request: Request, key: str) -> AsyncIterator[httpx.Response]:
        if os.getpid() != self._process:
            raise ForkedEngine
        if self._http.is_closed:
            raise StoreClosed
        with ExitStack() as files:
            parts = body_of(request, files, boundary=key)
            if request.unhurried:
                parts["timeout"] = httpx.Timeout(self._limits.seconds, read=None)
            headers = {**request.headers, **parts.pop("headers", {})}
            if self._origin is not None:
                headers[ORIGIN_HEADER] = self._origin
            if request.writes and not request.once:
                headers["Idempotency-Key"] = key
            address, query = f"{self._url}{PREFIX}{request.path}", request.query or None
            async with self._http.stream(
                request.method, address, params=query, headers=headers, **parts
            ) as response:
                yield response

    async def _read_body(self, response: httpx.Response) -> bytes:
        return b"".join([piece async for piece in self._read_limited(response)])

    async def _read_limited(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        size, maximum = 0, self._limits.answer_bytes
        async for piece in response.aiter_bytes():
            size += len(piece)
            if size > maximum:
                raise TooLarge("answer", size=size, limit=maximum)
            yield piece

    def _decode_response(self, request: Request, response: httpx.Response, body: bytes) -> Any:
        if response.is_success:
            return self._json(body) if body else None
        error = self._error_of(response, body)
        # If the store failed during the request, a part of it may have been done.
        again = request.repeatable or request.recorded or not request.writes
        passing = PASSING if again else (ServerUnavailable, Overloaded)
        unavailable = response.status_code in BUSY and isinstance(error, passing)
        if unavailable or (isinstance(error, Conflict) and error.kind == REPEATED):
            wait = response.headers.get("Retry-After", "")
            raise _Retry(error, float(wait) if wait.isdecimal() else None)
        raise error

    def _error_of(self, response: httpx.Response, body: bytes) -> ConspectusError:
        if not response.headers.get("Content-Type", "").startswith(PROBLEM):
            return self.unclear(f"HTTP {response.status_code} without a reason")
        return self.decode_problem(self._json(body))

    def decode_problem(self, problem: object) -> ConspectusError:
        """Return the error of a problem document."""
        if not isinstance(problem, dict):
            return self.unclear("the problem document is not an object")
        if problem.get("code") in OWN_FAULTS:
            return ServerUnavailable(self._url, str(problem.get("detail")))
        return error_of(problem)

    def _json(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as fault:
            raise self.unclear("it is not JSON") from fault

    def _silent(self, fault: httpx.TimeoutException) -> ServerUnavailable:
        what = "cannot be reached" if isinstance(fault, httpx.ConnectTimeout) else "gave no answer"
        return ServerUnavailable(self._url, f"{what} within {self._limits.seconds:g} s")


def _reason(fault: httpx.RequestError) -> str:
    return str(fault) or type(fault).__name__


class RemoteService:
    """A group of operations of a server, with the permissions of the API key."""

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        self._channel = channel
        self._files = files
        self._archives = archives

    async def _in_batches(
        self, kind: type[T], requests: Iterable[Request], doing: str, progress: Progress | None = None
    ) -> list[T]:
        """Send requests one after the other, and return the objects in all responses."""
        done: list[T] = []
        for request in requests:
            done += await self._channel.several(kind, request)
            if progress is not None:
                progress(doing, len(done), 0)
        return done

    def _open_sibling(self, kind: Callable[[Transport, Files, Archives], S]) -> S:
        """Return another service of the same server."""
        return kind(self._channel, self._files, self._archives)


STANDARD = frozenset({"type", "title", "status", "detail", "instance", "code"})
"""Members of every problem document; all others are attributes of the error."""
RENAMED = "upstream_"
"""Prefix of attributes whose name has another meaning in a problem document."""

MODEL = "the server's chat model"
MODEL_FACTS = ("status", "retry_after")
"""Attributes of errors of the chat model that a server does not send."""


def error_of(problem: Mapping[str, object]) -> ConspectusError:
    """Return the error of a problem document, with its message and attributes.

    If attributes of the class are missing, the nearest base class without missing attributes is used.
    """
    detail = str(problem.get("detail") or problem.get("title") or "the server gave no reason")
    facts = {
        name.removeprefix(RENAMED): tuple(value) if isinstance(value, list) else value
        for name, value in problem.items()
        if name not in STANDARD
    }
    named = _by_code().get(str(problem.get("code")), ConspectusError)
    if issubclass(named, ChatError):
        facts = {"provider": MODEL, "reason": detail, **dict.fromkeys(MODEL_FACTS), **facts}
    complete = (
        kind
        for kind in named.__mro__
        if issubclass(kind, ConspectusError) and _find_required(kind) <= facts.keys()
    )
    kind = next(complete)
    error = kind.__new__(kind)
    Exception.__init__(error, detail)
    vars(error).update(facts)
    return error


@cache
def _by_code() -> dict[str, type[ConspectusError]]:
    return {kind.code: kind for kind in _kinds(ConspectusError) if "code" in vars(kind)}


def _kinds(kind: type[ConspectusError]) -> Iterator[type[ConspectusError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


def _find_required(kind: type[ConspectusError]) -> set[str]:
    """Return the attributes that the constructor requires."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    plain = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    return {
        parameter.name
        for parameter in parameters
        if parameter.kind in plain and parameter.default is parameter.empty
    }
