"""The ports to external systems: fetching, reranking, and connectors."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response of a web server after all redirects, its body decompressed.

    `content_type` is lower case without parameters, `charset` as in the header.
    """

    url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Fetcher(Protocol):
    """Sends requests within limits, never to internal addresses."""

    async def fetch(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Send one request and follow its redirects. Any status is a response.

        Raises InvalidInput for an invalid http(s) URL or method, ForbiddenAddress for an address that is not
        allowed, TooLarge for a response over a limit, and FetchFailed without a response.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class Reranker(Protocol):
    """Scores the relevance of texts to a query."""

    @property
    def model(self) -> str:
        """The model's name in logs and explanations."""
        ...

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """Return positions in `texts` with relevance (0 to 1), best first, at most `limit`.

        Without texts, no request is sent. Raises ProviderError or ProviderUnavailable.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class Connector(Protocol):
    """A source outside of Conspectus that a collection is synced with."""

    def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield batches of the changes since the cursor.

        Everything is listed without a cursor, for a foreign one, and if changes cannot be determined. Removed
        pages are in the last batch or after moved ones. Raises FetchFailed.
        """
        ...

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return the current page, or the listed version; empty text if it was emptied.

        For entries of this listing or an earlier one, after `changes` was called. Raises NotFound if the page
        was deleted, and UnreadableFile, TooLarge or FetchFailed if it cannot be read.
        """
        ...

    async def close(self) -> None:
        """Close open resources."""
        ...


@runtime_checkable
class Watchable(Protocol):
    """A connector that detects changes by itself."""

    def watch(self) -> AsyncIterator[None]:
        """Yield when something has changed since the first step was requested. Raises FetchFailed."""
        ...
