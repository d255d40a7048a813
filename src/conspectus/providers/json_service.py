"""JSON over HTTP to a model vendor, with every failure as one of our errors."""

import asyncio
import ssl
from functools import cache
from typing import Any

import httpx

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.providers.vendor_api import refusal, waiting_time


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities of this machine, read once for all services."""
    return httpx.create_ssl_context()


class JsonService:
    """One address that takes JSON and gives JSON; the key never leaves it but in the request's header."""

    def __init__(self, provider: str, url: str, *, key: str | None = None, timeout: float = 60.0) -> None:
        if httpx.URL(url).scheme not in {"http", "https"} or not httpx.URL(url).host:
            raise InvalidInput("reranker", f"{url!r} is no address of a web service")
        self._provider = provider
        self._url = url
        self._key = key
        self._timeout = timeout
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=None, verify=_trusted())

    @property
    def place(self) -> str:
        """The address, without what may be secret in it."""
        url = httpx.URL(self._url)
        return str(url.copy_with(username=None, password=None, query=None, fragment=None))

    async def post(self, body: Any) -> tuple[Any, httpx.Headers]:
        """The answer and its headers. Raises ProviderError, ProviderUnavailable."""
        response = await self._send(body)
        if response.is_success:
            try:
                return response.json(), response.headers
            except (ValueError, RecursionError) as error:
                raise ProviderError(self._provider, "sent an answer that is not JSON") from error
        wait = waiting_time(response.headers.get("Retry-After"))
        raise refusal(self._provider, response.status_code, self._words(response), retry_after=wait)

    async def close(self) -> None:
        """Release the connections."""
        await self._client.aclose()

    async def _send(self, body: Any) -> httpx.Response:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._client.post(self._url, json=body)
        except TimeoutError as error:
            reason = f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(self._provider, reason) from error
        except httpx.RequestError as error:
            reason = f"could not be reached ({type(error).__name__})"
            raise ProviderUnavailable(self._provider, reason) from error

    def _words(self, response: httpx.Response) -> str:
        """The vendor's reason, from the fields where vendors put it and nowhere else."""
        try:
            answer = response.json()
        except ValueError:
            return ""
        for name in ("message", "detail", "error"):
            found = answer.get(name) if isinstance(answer, dict) else None
            found = found.get("message") if isinstance(found, dict) else found
            if isinstance(found, str):
                return found.replace(self._key, "…") if self._key else found
        return ""
