"""The port of kept summaries: none outlives a caption that it was made of."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from conspectus.model.ids import DocumentId, SourceId, UserId
from conspectus.model.records import EmbeddingSpace, Metadata

Spot: TypeAlias = tuple[float, str]
"""Where a caption stands among those that have no index: its start, and its id to tell equal ones apart."""


@dataclass(frozen=True, slots=True)
class SummaryBounds:
    """Where a batch by time began and ended when it was summarised, and whether it was full then."""

    first: Spot
    last: Spot
    full: bool


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to keep, with what it was made of: captions with their fingerprints, earlier summaries by id.

    `recipe` names the request that had it made.
    """

    id: str
    recipe: str
    text: str
    captions: tuple[tuple[DocumentId, str], ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedSummary:
    """What a live stream is summarised by, and as whom."""

    owner: UserId
    request: Metadata
    since: datetime


class Summaries(Protocol):
    """Part of the system of record. Deleting or replacing a caption there deletes what was made of it."""

    async def text(self, summary: str) -> str | None:
        """The summary of that id."""
        ...

    async def keep(self, source: SourceId, summary: NewSummary) -> None:
        """Store it, unless there is one of that id.

        Raises Changed where a caption or a summary that it was made of is not what it was any more.
        """
        ...

    async def borders(self, source: SourceId, recipe: str) -> Sequence[SummaryBounds]:
        """Where the batches of a request were cut, in order."""
        ...

    async def keep_borders(self, source: SourceId, recipe: str, borders: Sequence[SummaryBounds]) -> None:
        """Store them in place of those that there were."""
        ...

    async def tidy(self, source: SourceId, recipe: str, used: Collection[str]) -> int:
        """Delete the summaries that a request had made and does not use any more; how many."""
        ...

    async def vectors(
        self, documents: Sequence[DocumentId], space: EmbeddingSpace
    ) -> Mapping[DocumentId, bytes]:
        """The vectors of the first chunks of those documents that have one."""
        ...

    async def standing(self, source: SourceId) -> SavedSummary | None:
        """What a stream is summarised by as it grows."""
        ...

    async def stand(self, source: SourceId, standing: SavedSummary | None) -> None:
        """Summarise a stream by this from now on, or no more. Raises NotFound."""
        ...
