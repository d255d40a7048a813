"""Positions of messages in their threads, and the gaps of omitted messages."""

from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo

from conspectus.model.channels import REPLY_TO
from conspectus.model.records import Document
from conspectus.model.results import ThreadOutline
from conspectus.window.stream_times import is_streamed


class Threads:
    """Positions of messages in known threads, and names and time zones of streams and channels."""

    def __init__(
        self,
        outlines: Iterable[ThreadOutline] = (),
        streams: Mapping[str, str] | None = None,
        zones: Mapping[str, tzinfo] | None = None,
    ) -> None:
        self._streams = streams or {}
        self._zones = zones or {}
        self._outlines = {(outline.source, outline.thread): outline for outline in outlines}

    @property
    def has_threads(self) -> bool:
        """Whether any threads are known."""
        return bool(self._outlines)

    def stream(self, document: Document) -> str:
        """Return the stream of a caption or event or the channel of a message by name; empty if unknown."""
        if self._streams and (is_streamed(document) or document.kind == "message"):
            return self._streams.get(document.source, "")
        return ""

    def zone(self, document: Document) -> tzinfo:
        """Return the time zone for the times of a caption or event."""
        return self._zones.get(document.source, UTC)

    def total(self, document: Document) -> int:
        """Return the number of messages in the thread of a message; 0 if unknown."""
        outline = self._outline_of(document)
        return 0 if outline is None else outline.total

    def position(self, document: Document) -> int | None:
        """Return the number of earlier messages in the thread of a message; None if unknown."""
        outline = self._outline_of(document)
        return None if outline is None else outline.places.get(document.id)

    def positions(self, documents: Sequence[Document]) -> list[int] | None:
        """Return the positions of messages of one thread; None if one of them is unknown."""
        positions = [position for position in map(self.position, documents) if position is not None]
        return positions if len(positions) == len(documents) else None

    def is_reply(self, document: Document) -> bool | None:
        """Return whether the platform marks a message as a reply; None outside of known threads."""
        if self.position(document) is None:
            return None
        reply_to = document.metadata.get(REPLY_TO)
        return isinstance(reply_to, str) and reply_to not in {"", document.key}

    def _outline_of(self, document: Document) -> ThreadOutline | None:
        if self._outlines:
            return self._outlines.get((document.source, document.thread or ""))
        return None


class Gaps:
    """Counts the gaps of omitted messages in threads while a window is filled."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._positions: dict[tuple[str, str | None], list[int]] = {}

    def count_added_gaps(self, document: Document) -> int:
        """Return the change in the number of gaps if this message is shown; -1 if it closes a gap."""
        position = self._threads.position(document)
        if position is None:
            return 0
        positions = self._positions.get((document.source, document.thread), [])
        after = bisect(positions, position)
        left = positions[after - 1] if after else -1
        right = positions[after] if after < len(positions) else self._threads.total(document)
        if left == position:
            return 0
        before = int(bool(positions) and right - left > 1)
        return int(position - left > 1) + int(right - position > 1) - before

    def show(self, document: Document) -> None:
        """Record that a message is shown."""
        position = self._threads.position(document)
        if position is not None:
            insort(self._positions.setdefault((document.source, document.thread), []), position)
