"""Asking MediaWiki's API: continuation, a server that is behind, and answers of any form."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlencode

from conspectus.errors import FetchFailed, InvalidInput
from conspectus.ports.web import Fetched, Fetcher
from conspectus.text.urls import parse_url

Wait: TypeAlias = Callable[[float], Awaitable[None]]
Answer: TypeAlias = Mapping[str, Any]

ATTEMPTS = 5
USUAL_WAIT = 5.0
LONGEST_WAIT = 60.0
MAXLAG = 5
BUSY_STATUS = frozenset({429, 500, 502, 503, 504})
BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryTimeoutError"})
MOST_VALUES = 50


class MediaWikiApi:
    """The API at an address such as `https://example.org/w/api.php`. `wait` pauses for so many seconds."""

    def __init__(self, fetcher: Fetcher, address: str, *, wait: Wait = asyncio.sleep) -> None:
        url = parse_url(address)
        if url.query or url.credentials:
            raise InvalidInput("address", "use the plain address of api.php")
        self.address = str(url)
        self._fetcher = fetcher
        self._wait = wait

    async def query(self, **parameters: str | int) -> AsyncIterator[Answer]:
        """The `query` part of every answer, until there is no more. Raises FetchFailed."""
        following: Mapping[str, str] = {}
        while True:
            answer = await self._ask({"action": "query", **parameters, **following})
            with self.understood():
                query = dict(answer.get("query") or {})
                more = {name: str(value) for name, value in (answer.get("continue") or {}).items()}
            yield query
            if not more:
                return
            if more == following:
                raise self.failed("goes on without getting further")
            following = more

    async def rows(self, name: str, **parameters: str | int) -> AsyncIterator[list[Answer]]:
        """The rows of that name in every answer. Raises FetchFailed."""
        async for query in self.query(**parameters):
            with self.understood():
                rows: list[Answer] = [dict(each) for each in query.get(name, ())]
            yield rows

    async def pages(self, by: str, values: Sequence[str], **parameters: str | int) -> list[Answer]:
        """Pages by `pageids` or `titles`, as many as there are values; parts of one may come apart."""
        found: list[Answer] = []
        for start in range(0, len(values), MOST_VALUES):
            some = {by: "|".join(values[start : start + MOST_VALUES])}
            async for rows in self.rows("pages", **some, **parameters):
                found += rows
        return found

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Whatever is missing or of another type in an answer is a failure of the wiki."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as fault:
            raise self.failed(f"answers in a form that is not known: {fault!r:.100}") from fault

    def failed(self, reason: str, *, status: int | None = None, passing: bool = False) -> FetchFailed:
        """The failure of this wiki for a reason."""
        return FetchFailed(self.address, reason, status=status, passing=passing)

    async def _ask(self, parameters: Mapping[str, str | int]) -> Answer:
        usual = {"format": "json", "formatversion": 2, "maxlag": MAXLAG}
        url = f"{self.address}?{urlencode({**usual, **parameters})}"
        for attempt in range(1, ATTEMPTS + 1):
            fetched = await self._fetcher.fetch(url)
            answer = self._read(fetched)
            if answer is not None:
                return answer
            if attempt < ATTEMPTS:
                await self._wait(_pause(fetched, attempt))
        raise self.failed(f"still busy after {ATTEMPTS} attempts", status=fetched.status, passing=True)

    def _read(self, fetched: Fetched) -> Answer | None:
        """The answer; nothing where the wiki asks to be asked later."""
        if fetched.status in BUSY_STATUS:
            return None
        if fetched.status != 200:
            raise self.failed(f"answers with status {fetched.status}", status=fetched.status)
        with self.understood():
            answer = json.loads(fetched.body)
            error = answer.get("error") or {}
            code, told = error.get("code"), str(error.get("info", ""))
        if not error:
            return dict(answer)
        if code in BUSY_CODES:
            return None
        raise self.failed(f"{code}: {told:.200}")


def _pause(fetched: Fetched, attempt: int) -> float:
    """As long as the wiki asks for, but never longer than we are ready to wait."""
    asked = fetched.headers.get("retry-after", "")
    wanted = float(asked[:6]) if asked.isdecimal() else USUAL_WAIT * attempt
    return min(wanted, LONGEST_WAIT)
