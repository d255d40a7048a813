"""Rerankers over HTTP: Cohere, and any other `/rerank` endpoint."""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

import httpx

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.model.retries import RetryPolicy
from conspectus.providers.answers import Ranking, limit_ranking_bytes, parse_json, read_body, read_ranking
from conspectus.providers.bedrock import Bedrock
from conspectus.providers.request_log import Calls, Note
from conspectus.providers.vendor_api import Reply, number_in, parse_retry_after, refusal, sendable

COMPUTED: Final = "x-compute-tokens"
"""The header with the token count of Text Embeddings Inference."""


@cache
def _load_authorities() -> ssl.SSLContext:
    """Return the certificate authorities of this machine, loaded once for all services."""
    return httpx.create_ssl_context()


class JsonService:
    """One address that takes and returns JSON. The key is only sent in a header of the request."""

    def __init__(self, provider: str, url: str, *, key: str | None = None, timeout: float = 60.0) -> None:
        if httpx.URL(url).scheme not in {"http", "https"} or not httpx.URL(url).host:
            raise InvalidInput("reranker", f"{url!r} is not an http or https address")
        self.provider = provider
        self._url = url
        self._key = key
        self._timeout = timeout
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=None, verify=_load_authorities())

    @property
    def address(self) -> str:
        """The address without secrets."""
        url = httpx.URL(self._url)
        return str(url.copy_with(username=None, password=None, query=None, fragment=None))

    async def post(self, body: Any, *, limit: int) -> Reply:
        """Return the response, of at most `limit` bytes. Raises ProviderError or ProviderUnavailable."""
        response, content = await self._send(body, limit)
        if response.is_success:
            answer = parse_json(self.provider, content)
            tokens = number_in(answer, "meta", "tokens", "input_tokens")
            tokens = tokens or number_in(answer, "usage", "total_tokens")
            return Reply(answer, tokens or number_in(dict(response.headers), COMPUTED))
        wait = parse_retry_after(response.headers.get("Retry-After"))
        raise refusal(self.provider, response.status_code, self._words(content), retry_after=wait)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send(self, body: Any, limit: int) -> tuple[httpx.Response, bytes]:
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, json=body) as response,
            ):
                return response, await read_body(self.provider, response.aiter_bytes(), limit)
        except TimeoutError as error:
            reason = f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(self.provider, reason) from error
        except httpx.RequestError as error:
            reason = f"could not be reached ({type(error).__name__})"
            raise ProviderUnavailable(self.provider, reason) from error

    def _words(self, content: bytes) -> str:
        """Return the vendor's message from the documented fields only."""
        try:
            answer = parse_json(self.provider, content)
        except ProviderUnavailable:
            return ""
        for name in ("message", "detail", "error"):
            words = answer.get(name) if isinstance(answer, dict) else None
            words = words.get("message") if isinstance(words, dict) else words
            if isinstance(words, str):
                return words.replace(self._key, "…") if self._key else words
        return ""


TEXTS_A_REQUEST: Final = 32
"""Maximum number of texts in a request to Text Embeddings Inference by default."""
WRONG_FORM: Final = 422


class DocumentsReranker:
    """A service that takes `documents` and returns `results`, each with a `relevance_score`.

    `fields` are further members of a request.
    """

    def __init__(
        self,
        model: str,
        service: JsonService | Bedrock,
        fields: Mapping[str, Any],
        *,
        retry_policy: RetryPolicy,
        note: Note,
    ) -> None:
        self.model = model
        self._service = service
        self._fields = fields
        self._retry_policy = retry_policy
        self._calls = Calls(note, model)

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """Return positions in `texts` with relevance, best first. Raises ProviderError."""
        if not texts or limit < 1:
            return []
        ranking = await self._rank(query, texts, min(limit, len(texts)))
        return sorted(ranking, key=lambda ranked: (-ranked[1], ranked[0]))[:limit]

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def _rank(self, query: str, texts: Sequence[str], limit: int) -> Ranking:
        """Return at least a minimum number of positions with relevance, in any order."""
        body = {"documents": [sendable(text) for text in texts], "top_n": limit, **self._fields}

        def read(answer: Any) -> Ranking:
            entries = answer.get("results") if isinstance(answer, dict) else None
            return read_ranking(self._service.provider, entries, "relevance_score", len(texts), least=limit)

        return await self._request(query, texts, body, read)

    async def _request(
        self, query: str, texts: Sequence[str], body: Mapping[str, Any], read: Callable[[Any], Ranking]
    ) -> Ranking:
        """Return the result of one request, retried while the service is busy."""

        async def ask() -> Ranking:
            with self._calls.one("rerank", texts, query=query) as call:
                limit = limit_ranking_bytes([query, *texts])
                reply = await self._service.post({"query": sendable(query), **body}, limit=limit)
                call.tokens = reply.tokens
                return read(reply.body)

        return await self._retry_policy.retry(ask)


class HttpReranker(DocumentsReranker):
    """Any service with a `/rerank` endpoint: Jina, vLLM, Infinity and others, or Text Embeddings Inference.

    There are two dialects. Most services take `documents` and return `results`, each with a
    `relevance_score`. Text Embeddings Inference takes `texts`, few at a time, and returns a list of `score`s.
    The dialect is detected: if a service rejects the first (422), the second is used from then on. A
    relevance must be between 0 and 1.
    """

    _dialect: Literal["documents", "texts"] | None = None

    async def _rank(self, query: str, texts: Sequence[str], limit: int) -> Ranking:
        if self._dialect != "texts":
            try:
                ranking = await super()._rank(query, texts, limit)
                self._dialect = "documents"
                return ranking
            except ProviderError as error:
                if self._dialect is not None or error.status != WRONG_FORM:
                    raise
        ranking = []
        for start in range(0, len(texts), TEXTS_A_REQUEST):
            part = await self._rank_texts(query, texts[start : start + TEXTS_A_REQUEST])
            ranking += [(start + position, relevance) for position, relevance in part]
        self._dialect = "texts"
        return ranking

    async def _rank_texts(self, query: str, texts: Sequence[str]) -> Ranking:
        count = len(texts)
        body = {"texts": [sendable(text) for text in texts], "truncate": True}
        return await self._request(
            query,
            texts,
            body,
            lambda answer: read_ranking(self._service.provider, answer, "score", count, least=count),
        )
