"""The ports to the world outside: fetching, parsing, reranking, and stores to keep in step with."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

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

        Raises InvalidInput for what is no http(s) address or no method, ForbiddenAddress for a place that
        must not be asked, TooLarge for an answer over a limit, FetchFailed where no answer came.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Reranker(Protocol):
    """Judges how well texts answer a question."""

    @property
    def model(self) -> str:
        """The model's name, as logs and explanations show it."""
        ...

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        """Places in `texts` with relevance (0 to 1), best first, at most `limit`.

        No text: no call. Raises ProviderError or ProviderUnavailable.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Connector(Protocol):
    """A store elsewhere that a collection is kept in step with."""

    def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Batches of what changed since the cursor.

        Everything from None, from a cursor that is not the connector's, and where it cannot tell what
        changed. What is gone comes with the last batch or after what was moved. Raises FetchFailed.
        """
        ...

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """The page as it is now, or as it was listed last; empty text where it was emptied.

        For entries of this listing or of one before it, once `changes` was called. Raises NotFound where
        the page is gone, UnreadableFile, TooLarge or FetchFailed where it cannot be had.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


@runtime_checkable
class Watchable(Protocol):
    """A connector that hears of changes by itself."""

    def watch(self) -> AsyncIterator[None]:
        """Yields when something changed since the first step was asked for. Raises FetchFailed."""
        ...
