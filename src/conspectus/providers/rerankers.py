"""Rerankers behind HTTP: Cohere's own service, and any other `/rerank`."""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

import httpx

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.model.retry_policy import RetryPolicy
from conspectus.providers.vendor_api import Calls, Note, drop, number_in, refusal, sendable, waiting_time


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


COHERE: Final = "https://api.cohere.com"
TOKENS_A_DOCUMENT: Final = 4096
"""What the models of rerank 3.5 read of a text."""
TEXTS_A_REQUEST: Final = 32
"""What Text Embeddings Inference takes at once, unless its operator allows more."""
WRONG_FORM: Final = 422


class CohereReranker:
    """Cohere's rerank API, version 2."""

    def __init__(
        self,
        model: str,
        key: str,
        *,
        url: str = COHERE,
        patience: RetryPolicy | None = None,
        timeout: float = 60.0,
        note: Note = drop,
    ) -> None:
        self._name = model
        self._service = JsonService("cohere", f"{url.rstrip('/')}/v2/rerank", key=key, timeout=timeout)
        self._patience = patience or RetryPolicy()
        self._calls = Calls(note, self.model)

    @property
    def model(self) -> str:
        """The model as `cohere:NAME`."""
        return f"cohere:{self._name}"

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """Places in `texts` with relevance, best first. Raises ProviderError, ProviderUnavailable."""
        if not texts or limit < 1:
            return []
        wanted = min(limit, len(texts))
        body = {
            "model": self._name,
            "query": sendable(query),
            "documents": [sendable(text) for text in texts],
            "top_n": wanted,
            "max_tokens_per_doc": TOKENS_A_DOCUMENT,
        }

        async def ask() -> list[tuple[int, float]]:
            with self._calls.one("rerank", texts, query=query) as call:
                answer, _ = await self._service.post(body)
                call.tokens = number_in(answer, "meta", "tokens", "input_tokens")
                entries = answer.get("results") if isinstance(answer, dict) else None
                return RerankFormat("cohere", "relevance_score").read(entries, len(texts), least=wanted)

        return best(await self._patience.retry(ask), limit)

    async def close(self) -> None:
        """Release the connections."""
        await self._service.close()


class HttpReranker:
    """Any service with a `/rerank`: Jina, vLLM, Infinity and others, or Text Embeddings Inference.

    Two dialects are spoken. Most services take `documents` and answer with `results`, each with a
    `relevance_score`; Text Embeddings Inference takes `texts`, few at a time, and answers with a list of
    `score`s. Which it is need not be said: a service that does not understand the first (422) is asked in
    the second, and what it understood is kept. A relevance is expected between 0 and 1.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        key: str | None = None,
        patience: RetryPolicy | None = None,
        timeout: float = 60.0,
        note: Note = drop,
    ) -> None:
        self._service = JsonService("reranker", url, key=key, timeout=timeout)
        self._asked = model
        self._dialect: Literal["documents", "texts"] | None = None
        self._patience = patience or RetryPolicy()
        self._calls = Calls(note, self.model)

    @property
    def model(self) -> str:
        """The model's name where one is asked for, else where the service is."""
        return self._asked or self._service.place

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """Places in `texts` with relevance, best first. Raises ProviderError, ProviderUnavailable."""
        if not texts or limit < 1:
            return []
        if self._dialect != "texts":
            try:
                ranking = await self._documents(query, texts, min(limit, len(texts)))
                self._dialect = "documents"
                return best(ranking, limit)
            except ProviderError as error:
                if self._dialect is not None or error.status != WRONG_FORM:
                    raise
        ranking = await self._texts(query, texts)
        self._dialect = "texts"
        return best(ranking, limit)

    async def close(self) -> None:
        """Release the connections."""
        await self._service.close()

    async def _documents(self, query: str, texts: Sequence[str], wanted: int) -> list[tuple[int, float]]:
        body: dict[str, Any] = {"query": sendable(query), "documents": [sendable(text) for text in texts]}
        body |= {"top_n": wanted, "return_documents": False}
        if self._asked is not None:
            body["model"] = self._asked

        async def ask() -> list[tuple[int, float]]:
            with self._calls.one("rerank", texts, query=query) as call:
                answer, _ = await self._service.post(body)
                call.tokens = number_in(answer, "usage", "total_tokens")
                entries = answer.get("results") if isinstance(answer, dict) else None
                return RerankFormat("reranker", "relevance_score").read(entries, len(texts), least=wanted)

        return await self._patience.retry(ask)

    async def _texts(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        ranking: list[tuple[int, float]] = []
        for start in range(0, len(texts), TEXTS_A_REQUEST):
            part = await self._part(query, texts[start : start + TEXTS_A_REQUEST])
            ranking += [(start + place, relevance) for place, relevance in part]
        return ranking

    async def _part(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        body = {"query": sendable(query), "texts": [sendable(text) for text in texts], "truncate": True}

        async def ask() -> list[tuple[int, float]]:
            with self._calls.one("rerank", texts, query=query) as call:
                answer, headers = await self._service.post(body)
                call.tokens = number_in(dict(headers), "x-compute-tokens")
                return RerankFormat("reranker", "score").read(answer, len(texts), least=len(texts))

        return await self._patience.retry(ask)


ROUNDING: Final = 1e-4


@dataclass(frozen=True, slots=True)
class RerankFormat:
    """The name under which an entry has its relevance, next to its `index`."""

    provider: str
    score: str

    def read(self, entries: Any, count: int, *, least: int) -> list[tuple[int, float]]:
        """The places of `count` texts with relevance, at least `least` of them, in the order they came.

        Raises ProviderError for anything else.
        """
        if not isinstance(entries, list):
            raise ProviderError(self.provider, "sent no list of results")
        ranking = [self._entry(entry, count) for entry in entries]
        if len({place for place, _ in ranking}) != len(ranking):
            raise ProviderError(self.provider, "ranked a text twice")
        if len(ranking) < least:
            raise ProviderError(self.provider, f"ranked {len(ranking)} texts, not {least}")
        return ranking

    def _entry(self, entry: Any, count: int) -> tuple[int, float]:
        place = entry.get("index") if isinstance(entry, dict) else None
        score = entry.get(self.score) if isinstance(entry, dict) else None
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count:
            raise ProviderError(self.provider, f"ranked text {place!r:.40} of {count}")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ProviderError(self.provider, "sent a result without a relevance")
        if not -ROUNDING <= score <= 1 + ROUNDING:
            raise ProviderError(self.provider, f"sent the relevance {score}, which is not between 0 and 1")
        return place, min(1.0, max(0.0, float(score)))


def best(ranking: Sequence[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    """The most relevant `limit`, best first, in the order of the texts where they are equal."""
    return sorted(ranking, key=lambda each: (-each[1], each[0]))[:limit]
