"""Positions of messages in their threads, and the gaps of omitted messages."""

from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo

from conspectus.model.channels import REPLY_TO
from conspectus.model.records import Document
from conspectus.model.results import ThreadOutline
from conspectus.window.stream_times import is_streamed


class Threads:
    """Positions of messages in known threads, and names and time zones of streams."""

    def __init__(
        self,
        sketches: Iterable[ThreadOutline] = (),
        streams: Mapping[str, str] | None = None,
        zones: Mapping[str, tzinfo] | None = None,
    ) -> None:
        self._streams = streams or {}
        self._zones = zones or {}
        self._sketches = {(each.source, each.thread): each for each in sketches}

    @property
    def known(self) -> bool:
        """Whether any threads are known."""
        return bool(self._sketches)

    def stream(self, document: Document) -> str:
        """Return the stream name of a caption or event; empty if unknown."""
        return self._streams.get(document.source, "") if self._streams and is_streamed(document) else ""

    def zone(self, document: Document) -> tzinfo:
        """Return the time zone for the times of a caption or event."""
        return self._zones.get(document.source, UTC)

    def total(self, document: Document) -> int:
        """Return the number of messages in the thread of a message; 0 if unknown."""
        sketch = self._of(document)
        return 0 if sketch is None else sketch.total

    def place(self, document: Document) -> int | None:
        """Return the number of earlier messages in the thread of a message; None if unknown."""
        sketch = self._of(document)
        return None if sketch is None else sketch.places.get(document.id)

    def places(self, documents: Sequence[Document]) -> list[int] | None:
        """Return the positions of messages of one thread; None if one of them is unknown."""
        found = [place for place in map(self.place, documents) if place is not None]
        return found if len(found) == len(documents) else None

    def answers(self, document: Document) -> bool | None:
        """Return whether the platform marks a message as a reply; None outside of known threads."""
        if self.place(document) is None:
            return None
        value = document.metadata.get(REPLY_TO)
        return isinstance(value, str) and value not in {"", document.key}

    def _of(self, document: Document) -> ThreadOutline | None:
        return self._sketches.get((document.source, document.thread or "")) if self._sketches else None


class Gaps:
    """Counts the gaps of omitted messages in threads while a window is filled."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._shown: dict[tuple[str, str | None], list[int]] = {}

    def added_by(self, document: Document) -> int:
        """Return the change in the number of gaps if this message is shown; -1 if it closes a gap."""
        place = self._threads.place(document)
        if place is None:
            return 0
        shown = self._shown.get((document.source, document.thread), [])
        after = bisect(shown, place)
        left = shown[after - 1] if after else -1
        right = shown[after] if after < len(shown) else self._threads.total(document)
        if left == place:
            return 0
        before = int(bool(shown) and right - left > 1)
        return int(place - left > 1) + int(right - place > 1) - before

    def show(self, document: Document) -> None:
        """Record that a message is shown."""
        place = self._threads.place(document)
        if place is not None:
            insort(self._shown.setdefault((document.source, document.thread), []), place)
