"""The ports to the outside: fetching and reranking."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from conspectus.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of a web server after all redirects, its body decompressed.

    `content_type` is lower case without parameters, `charset` as the header names it.
    """

    url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Fetcher(Protocol):
    """Requests that never reach an address inside, and never take more than they may."""

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Fetched:
        """One request with its redirects; any status is an answer. Only POST, PUT and PATCH have a body.

        Raises InvalidInput for an invalid http(s) URL or method, ForbiddenAddress for an address that is not
        allowed, TooLarge for a response over a limit, and FetchFailed without a response.
        """

    async def close(self) -> None:
        """Release connections."""


class Reranker(Protocol):
    """Scores how relevant texts are to a query."""

    @property
    def model(self) -> str:
        """The model's name, as logs and explanations show it."""

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """Places in `texts` with relevance (0 to 1), best first, at most `limit`.

        No text: no call. Raises ProviderError or ProviderUnavailable.
        """

    async def close(self) -> None:
        """Release connections."""
