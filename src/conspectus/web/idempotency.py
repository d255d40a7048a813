"""Writes that are sent twice with the same `Idempotency-Key` are done once."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, TypeAlias

from fastapi import Response
from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conspectus.errors import Conflict, InvalidInput, StorageError
from conspectus.ports import Clock
from conspectus.ports.jobs import IdempotencyStore
from conspectus.web.problem_details import MEDIA_TYPE, has_route, may_be_done, problem_of, refuse
from conspectus.web.route_table import RouteTable

logger = logging.getLogger(__name__)

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
VALID_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
MAX_MEMORY_BYTES: Final = 1 << 20
"""Size from which on a request's body is on disk."""
PIECE_BYTES: Final = 1 << 16
MAX_STORED_BYTES: Final = 1_000_000
"""Maximum size of a stored response."""
MAX_SIDE_EFFECT_FREE_BYTES: Final = 65_536
"""Maximum size of a stored response to a request that stored nothing, and may be repeated instead."""
FIELD: Final = re.compile(rb'"\w+":')
NUMBERS: Final = re.compile(rb'\{?[^{"]*')
"""A body without texts besides the names of its fields."""
STORED_HEADERS: Final = frozenset({"content-type", "etag", "location", "www-authenticate"})
RETRY_SECONDS: Final = 1.0
"""Seconds between two attempts to store responses."""
Claim: TypeAlias = tuple[str, str]
"""The id of a person and an idempotency key."""


class IdempotencyOutbox:
    """Stores the responses of claims. If the store is unavailable, it does so as soon as that is over."""

    def __init__(self, idempotency: IdempotencyStore) -> None:
        self._idempotency = idempotency
        self._unsaved: dict[Claim, Mapping[str, Any] | None] = {}
        self._has_unsaved = asyncio.Event()
        self._saving = asyncio.Lock()

    async def end(self, claim: Claim, response: Mapping[str, Any] | None) -> None:
        """Store the response of a claim, or with None release its key; later if the store is unavailable."""
        try:
            await self._idempotency.finish(*claim, response)
        except StorageError as fault:
            logger.warning("idempotency_save_failed code=%(code)s", {"code": fault.code})
            self._unsaved[claim] = response
            self._has_unsaved.set()

    async def catch_up(self, claim: Claim) -> None:
        """Store the unsaved response of a claim, if there is one. Raises StorageError."""
        if claim not in self._unsaved:
            return
        async with self._saving:
            if claim in self._unsaved:
                await self._idempotency.finish(*claim, self._unsaved[claim])
                del self._unsaved[claim]

    async def store_results(self) -> None:
        """Store unsaved responses until this is cancelled."""
        while True:
            await self._has_unsaved.wait()
            self._has_unsaved.clear()
            await asyncio.sleep(RETRY_SECONDS)
            try:
                for claim in list(self._unsaved):
                    await self.catch_up(claim)
            except StorageError:
                self._has_unsaved.set()

    async def renew_claims(self) -> None:
        """Renew the leases of open claims until this is cancelled."""
        while True:
            await asyncio.sleep(self._idempotency.renewal_seconds)
            try:
                await self._idempotency.renew()
            except StorageError as fault:
                logger.warning("idempotency_renewal_failed code=%(code)s", {"code": fault.code})


class Idempotency:
    """Stores and replays responses of writes by idempotency key.

    A response of a request that only reads is never stored: it depends on what its user may read at the time.
    """

    def __init__(
        self,
        app: ASGIApp,
        idempotency: IdempotencyStore,
        outbox: IdempotencyOutbox,
        *,
        routes: Sequence[BaseRoute],
        table: RouteTable,
        clock: Clock,
    ) -> None:
        self._app = app
        self._routes = routes
        self._table = table
        self._idempotency = idempotency
        self._clock = clock
        self._outbox = outbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Replay the stored response of a request, or pass it on.

        Raises Conflict, InvalidInput or WriteOutcomeUnknown.
        """
        person = scope.get("state", {}).get("person")
        if person is None or self._table.is_read_only(scope):
            await self._app(scope, receive, send)
            return
        key = Headers(scope=scope).get(HEADER)
        if key is None or not has_route(self._routes, scope):
            await self._count_commits(scope, receive, send)
            return
        if not VALID_KEY.fullmatch(key):
            raise InvalidInput(HEADER, "must be 1 to 255 visible ASCII characters")
        with SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES) as file:
            body = SpooledBody(receive, file)
            fingerprint = await body.read_fingerprint(scope)
            claim = (person.id, key)
            await self._outbox.catch_up(claim)
            at = self._clock()
            stored = await self._idempotency.begin(*claim, fingerprint, at=at)
            if stored is not None:
                await replay_response(stored)(scope, receive, send)
                return
            response = RecordedResponse(send)
            scope["state"]["claim"] = (*claim, at)
            try:
                await self._count_commits(scope, body.receive, response.send)
            finally:
                await self._outbox.end(claim, response.to_stored(scope))

    async def _count_commits(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a write on, and count its commits: after the first, no error may say that nothing was done."""
        with self._idempotency.count_commits() as commits:
            scope["state"]["commits"] = commits
            await self._app(scope, receive, send)


class SpooledBody:
    """A request's body on disk (while small, in memory): its fingerprint is computed before it is used."""

    def __init__(self, receive: Receive, file: IO[bytes]) -> None:
        self._receive = receive
        self._file = file
        self._unread_bytes = 0

    async def read_fingerprint(self, scope: Scope) -> str:
        """Read the whole body, and return the fingerprint of the request."""
        headers = Headers(scope=scope)
        parts = [scope["method"], scope["path"], scope["query_string"].decode("latin-1")]
        parts += [headers.get("content-type", ""), headers.get("if-match", "")]
        parts += scope["state"]["person"].scopes
        digest = hashlib.sha256(repr(parts).encode())
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                refuse(408, "the request did not arrive whole")
            piece = message.get("body", b"")
            digest.update(piece)
            self._unread_bytes += len(piece)
            await asyncio.to_thread(self._file.write, piece)
            more = message.get("more_body", False)
        self._file.seek(0)
        return digest.hexdigest()

    async def receive(self) -> Message:
        """Return the next message, as the server would."""
        if self._unread_bytes < 0:
            return await self._receive()
        piece = await asyncio.to_thread(self._file.read, PIECE_BYTES)
        self._unread_bytes -= len(piece)
        more = self._unread_bytes > 0
        if not more:
            self._unread_bytes = -1
        return {"type": "http.request", "body": piece, "more_body": more}


class RecordedResponse:
    """Sends a response, and records it while it is small."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._complete = False

    async def send(self, message: Message) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = Headers(raw=message["headers"])
            self._headers = {name: headers[name] for name in STORED_HEADERS if name in headers}
        elif len(self._body) <= MAX_STORED_BYTES:
            self._body += message.get("body", b"")
            self._complete = not message.get("more_body", False)
        await self._send(message)

    def to_stored(self, scope: Scope) -> Mapping[str, Any] | None:
        """Return the response to store; None if the server failed or it is too long.

        For a response with a secret, a problem is stored in its place.
        """
        maximum = MAX_STORED_BYTES if may_be_done(scope) else MAX_SIDE_EFFECT_FREE_BYTES
        if not self._complete or self._status >= 500 or len(self._body) > maximum:
            return None
        if scope["state"].get("shown_once") and self._status < 400:
            error = Conflict("answer", HEADER, "was returned already; it is shown only once")
            response = problem_of(error).response()
            return _prepare_answer(response.status_code, {"content-type": MEDIA_TYPE}, bytes(response.body))
        return _prepare_answer(self._status, self._headers, bytes(self._body))


def replay_response(stored: Mapping[str, Any]) -> Response:
    """Return a stored response, marked as replayed."""
    headers = {**stored["headers"], REPLAYED: "true"}
    return Response(stored["body"].encode(), stored["status"], headers)


def _prepare_answer(status: int, headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    plain = "location" not in headers and NUMBERS.fullmatch(FIELD.sub(b"", body)) is not None
    return {"status": status, "headers": dict(headers), "body": body.decode(), "plain": plain}
