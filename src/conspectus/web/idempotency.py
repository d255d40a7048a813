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

RETRY_SECONDS: Final = 1.0
Claim: TypeAlias = tuple[str, str]
"""A person and a key."""


class IdempotencyOutbox:
    """Ends the claims of keys, so that repeated requests are answered when the store is available again."""

    def __init__(self, idempotency: IdempotencyStore) -> None:
        self._idempotency = idempotency
        self._owed: dict[Claim, Mapping[str, Any] | None] = {}
        self._is_owed = asyncio.Event()
        self._telling = asyncio.Lock()

    async def end(self, claim: Claim, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer, or with None give the key back: now, or as soon as the store can."""
        try:
            await self._idempotency.finish(*claim, answer)
        except StorageError as fault:
            logger.warning("idempotency_save_failed code=%(code)s", {"code": fault.code})
            self._owed[claim] = answer
            self._is_owed.set()

    async def catch_up(self, claim: Claim) -> None:
        """Tell the store how the last request of a claim ended, if it has not heard. Raises StorageError."""
        if claim not in self._owed:
            return
        async with self._telling:
            if claim in self._owed:
                await self._idempotency.finish(*claim, self._owed[claim])
                del self._owed[claim]

    async def store_results(self) -> None:
        """Store the results of ended requests that could not be stored yet, until this is cancelled."""
        while True:
            await self._is_owed.wait()
            self._is_owed.clear()
            await asyncio.sleep(RETRY_SECONDS)
            try:
                for claim in list(self._owed):
                    await self.catch_up(claim)
            except StorageError:
                self._is_owed.set()

    async def renew_claims(self) -> None:
        """Renew the leases of open claims until this is cancelled."""
        while True:
            await asyncio.sleep(self._idempotency.renewal_seconds)
            try:
                await self._idempotency.renew()
            except StorageError as fault:
                logger.warning("idempotency_renewal_failed code=%(code)s", {"code": fault.code})


HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
GOOD_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
MAX_MEMORY_BYTES = 1 << 20
PIECE_BYTES = 1 << 16
MAX_STORED_BYTES = 1_000_000
MAX_SIDE_EFFECT_FREE_BYTES = 65_536
"""The same where nothing was stored: such a request does no harm if it is done again."""
FIELD = re.compile(rb'"\w+":')
NUMBERS = re.compile(rb'\{?[^{"]*')
STORED_HEADERS = frozenset({"content-type", "etag", "location", "www-authenticate"})


class Idempotency:
    """Stores and replays responses of writes by idempotency key.

    A response of a request that only reads is never stored: it depends on what its user may read at the time.
    """

    def __init__(
        self,
        app: ASGIApp,
        idempotency: IdempotencyStore,
        endings: IdempotencyOutbox,
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
        self._endings = endings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request without a kept answer. Raises Conflict, InvalidInput or WriteOutcomeUnknown."""
        person = scope.get("state", {}).get("person")
        if person is None or self._table.is_read_only(scope):
            await self._app(scope, receive, send)
            return
        key = Headers(scope=scope).get(HEADER)
        if key is None or not has_route(self._routes, scope):
            await self._watched(scope, receive, send)
            return
        if not GOOD_KEY.fullmatch(key):
            raise InvalidInput(HEADER, "must be 1 to 255 visible ASCII characters")
        with SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES) as file:
            body = Spooled(receive, file)
            fingerprint = await body.read_fingerprint(scope)
            claim = (person.id, key)
            await self._endings.catch_up(claim)
            at = self._clock()
            stored = await self._idempotency.begin(*claim, fingerprint, at=at)
            if stored is not None:
                await replayed(stored)(scope, receive, send)
                return
            answer = StoredResponse(send)
            scope["state"]["claim"] = (*claim, at)
            try:
                await self._watched(scope, body.receive, answer.send)
            finally:
                await self._endings.end(claim, answer.worth_keeping(scope))

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a write on, and count what it stores: no fault after that may say that nothing was done."""
        with self._idempotency.watching() as commits:
            scope["state"]["commits"] = commits
            await self._app(scope, receive, send)


class Spooled:
    """A request's body on disk (while small, in memory), so that it can be known before it is used."""

    def __init__(self, receive: Receive, file: IO[bytes]) -> None:
        self._receive = receive
        self._file = file
        self._left = 0

    async def read_fingerprint(self, scope: Scope) -> str:
        """Read all of it, and give the fingerprint of the request."""
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
            self._left += len(piece)
            await asyncio.to_thread(self._file.write, piece)
            more = message.get("more_body", False)
        self._file.seek(0)
        return digest.hexdigest()

    async def receive(self) -> Message:
        """The next piece, as the server would give it."""
        if self._left < 0:
            return await self._receive()
        piece = await asyncio.to_thread(self._file.read, PIECE_BYTES)
        self._left -= len(piece)
        more = self._left > 0
        if not more:
            self._left = -1
        return {"type": "http.request", "body": piece, "more_body": more}


class StoredResponse:
    """An answer that is sent, and kept while it is small."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._complete = False

    async def send(self, message: Message) -> None:
        """Send the next part."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = Headers(raw=message["headers"])
            self._headers = {name: headers[name] for name in STORED_HEADERS if name in headers}
        elif len(self._body) <= MAX_STORED_BYTES:
            self._body += message.get("body", b"")
            self._complete = not message.get("more_body", False)
        await self._send(message)

    def worth_keeping(self, scope: Scope) -> Mapping[str, Any] | None:
        """The answer, unless the server failed or it is too long. A secret is never kept."""
        longest = MAX_STORED_BYTES if may_be_done(scope) else MAX_SIDE_EFFECT_FREE_BYTES
        if not self._complete or self._status >= 500 or len(self._body) > longest:
            return None
        if scope["state"].get("shown_once") and self._status < 400:
            done = problem_of(Conflict("answer", HEADER, "was returned already; it is shown only once"))
            answer = done.response()
            return _stored_form(answer.status_code, {"content-type": MEDIA_TYPE}, bytes(answer.body))
        return _stored_form(self._status, self._headers, bytes(self._body))


def replayed(stored: Mapping[str, Any]) -> Response:
    """A kept answer once more."""
    headers = {**stored["headers"], REPLAYED: "true"}
    return Response(stored["body"].encode(), stored["status"], headers)


def _stored_form(status: int, headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    plain = "location" not in headers and NUMBERS.fullmatch(FIELD.sub(b"", body)) is not None
    return {"status": status, "headers": dict(headers), "body": body.decode(), "plain": plain}
