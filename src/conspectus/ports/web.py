"""The ports to the outside: fetching, parsing, reranking, and stores to sync with."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

from conspectus.deferred import dataclass
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument


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
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """One request with its redirects; any status is an answer.

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


class Connector(Protocol):
    """An external store that a collection is synced with."""

    def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Batches of what changed since the cursor.

        Everything from None, from a cursor that is not the connector's, and where it cannot tell what
        changed. What is gone comes with the last batch or after what was moved. Raises FetchFailed.
        """

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """The page as it is now, or as it was listed last; empty text if it was emptied.

        For entries of this listing or an earlier one, after `changes` was called. Raises NotFound if the page
        was deleted, and UnreadableFile, TooLarge or FetchFailed if it cannot be read.
        """

    async def close(self) -> None:
        """Release what it holds."""


@runtime_checkable
class Watchable(Protocol):
    """A connector that hears of changes by itself."""

    def watch(self) -> AsyncIterator[None]:
        """Yields when something changed since the first step was asked for. Raises FetchFailed."""
