"""The API of a MediaWiki: requests, retries and pages with their contents."""

import asyncio
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlencode

from conspectus.errors import FetchFailed, InvalidInput, TooLarge
from conspectus.model.connections import ConnectorEntry
from conspectus.ports.web import Fetched, Fetcher
from conspectus.text.urls import parse_url

Wait: TypeAlias = Callable[[float], Awaitable[None]]
Answer: TypeAlias = Mapping[str, Any]

ATTEMPTS = 5
USUAL_WAIT = 5.0
MAX_WAIT_SECONDS = 60.0
MAXLAG = 5
BUSY_STATUS = frozenset({429, 500, 502, 503, 504})
BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryTimeoutError"})
REFUSAL_CODES = frozenset({"readapidenied", "permissiondenied"})
MAX_VALUES = 50


class MediaWikiApi:
    """The API at an address such as `https://example.org/w/api.php`. `wait` sleeps for seconds."""

    def __init__(self, fetcher: Fetcher, address: str, *, wait: Wait = asyncio.sleep) -> None:
        url = parse_url(address)
        if url.query or url.credentials:
            raise InvalidInput("address", "must be the address of api.php without query and credentials")
        self.address = str(url)
        self._fetcher = fetcher
        self._wait = wait

    async def query(self, **parameters: str | int) -> AsyncIterator[Answer]:
        """Yield the `query` part of every response, following continuations. Raises FetchFailed."""
        following: Mapping[str, str] = {}
        while True:
            answer = await self._ask({"action": "query", **parameters, **following})
            with self.convert_format_errors():
                query = dict(answer.get("query") or {})
                more = {name: str(value) for name, value in (answer.get("continue") or {}).items()}
            yield query
            if not more:
                return
            if more == following:
                raise self.make_error("continues without progress")
            following = more

    async def rows(self, name: str, **parameters: str | int) -> AsyncIterator[list[Answer]]:
        """Yield the rows of that name in every response. Raises FetchFailed."""
        async for query in self.query(**parameters):
            with self.convert_format_errors():
                rows: list[Answer] = [dict(row) for row in query.get(name, ())]
            yield rows

    async def pages(self, by: str, values: Sequence[str], **parameters: str | int) -> list[Answer]:
        """Yield pages by `pageids` or `titles`. Parts of one page may be in several responses."""
        pages: list[Answer] = []
        for start in range(0, len(values), MAX_VALUES):
            some = {by: "|".join(values[start : start + MAX_VALUES])}
            async for rows in self.rows("pages", **some, **parameters):
                pages += rows
        return pages

    @contextmanager
    def convert_format_errors(self) -> Iterator[None]:
        """Convert an error about a missing or wrongly typed member of a response to FetchFailed."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as fault:
            raise self.make_error(f"unknown response format: {fault!r:.100}") from fault

    def make_error(
        self, reason: str, *, status: int | None = None, passing: bool = False, refused: bool | None = None
    ) -> FetchFailed:
        """Return the error for this wiki."""
        return FetchFailed(self.address, reason, status=status, passing=passing, refused=refused)

    async def _ask(self, parameters: Mapping[str, str | int]) -> Answer:
        usual = {"format": "json", "formatversion": 2, "maxlag": MAXLAG}
        url = f"{self.address}?{urlencode({**usual, **parameters})}"
        for attempt in range(1, ATTEMPTS + 1):
            fetched = await self._fetcher.fetch(url)
            answer = self._read(fetched)
            if answer is not None:
                return answer
            if attempt < ATTEMPTS:
                retry_after = fetched.headers.get("retry-after", "")
                seconds = float(retry_after[:6]) if retry_after.isdecimal() else USUAL_WAIT * attempt
                await self._wait(min(seconds, MAX_WAIT_SECONDS))
        raise self.make_error(f"still busy after {ATTEMPTS} attempts", status=fetched.status, passing=True)

    def _read(self, fetched: Fetched) -> Answer | None:
        """Return the response; None if the wiki asks to retry later."""
        if fetched.status in BUSY_STATUS:
            return None
        if fetched.status != 200:
            raise self.make_error(f"responded with HTTP {fetched.status}", status=fetched.status)
        with self.convert_format_errors():
            answer = json.loads(fetched.body)
            error = answer.get("error") or {}
            code, info = error.get("code"), str(error.get("info", ""))
        if not error:
            return dict(answer)
        if code in BUSY_CODES:
            return None
        raise self.make_error(f"{code}: {info:.200}", refused=code in REFUSAL_CODES)


AHEAD = 20
ASKED: Mapping[str, str] = {
    "prop": "info|revisions", "inprop": "url", "rvprop": "ids|content", "rvslots": "main",
}  # fmt: skip


class Contents:
    """Reads pages, prefetching those that were announced next."""

    def __init__(self, api: MediaWikiApi) -> None:
        self._api = api
        self._order: list[str] = []
        self._places: dict[str, int] = {}
        self._ahead: dict[str, dict[str, Any]] = {}

    def expect(self, entries: Sequence[ConnectorEntry]) -> None:
        """Announce pages that will be requested, most likely in this order."""
        self._order = [page.key for page in entries]
        self._places = {key: position for position, key in enumerate(self._order)}
        self._ahead = {}

    async def of(self, key: str) -> Answer:
        """Return the API's data of a page, with its content if it exists. Raises FetchFailed or TooLarge."""
        if key not in self._ahead:
            position = self._places.get(key)
            some = [key] if position is None else self._order[position : position + AHEAD]
            self._ahead = await self._ask(some)
        return self._ahead.pop(key, {"missing": True})

    async def _ask(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        try:
            answers = await self._api.pages("pageids", keys, **ASKED)
        except TooLarge:
            if len(keys) == 1:
                raise
            return await self._ask(keys[:1])
        pages: dict[str, dict[str, Any]] = {}
        with self._api.convert_format_errors():
            for part in answers:
                pages.setdefault(str(part["pageid"]), {}).update(part)
        return pages
