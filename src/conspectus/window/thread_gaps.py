"""What is known of where documents come from: places in threads, so what is left out, and streams' names."""

from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo

from conspectus.model.channels import REPLY_TO
from conspectus.model.records import Document
from conspectus.model.results import ThreadOutline
from conspectus.window.caption_passages import is_streamed


class Threads:
    """The threads of which it is known where in them messages stand, and the names and zones of streams."""

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
        """Whether there are any."""
        return bool(self._sketches)

    def stream(self, document: Document) -> str:
        """The name of the stream that a caption or event is from; empty where none is told."""
        return self._streams.get(document.source, "") if self._streams and is_streamed(document) else ""

    def zone(self, document: Document) -> tzinfo:
        """The zone in which the times of a caption or event are shown."""
        return self._zones.get(document.source, UTC)

    def total(self, document: Document) -> int:
        """How many messages the thread of one has; 0 where that is not known."""
        sketch = self._of(document)
        return 0 if sketch is None else sketch.total

    def place(self, document: Document) -> int | None:
        """How many messages of its thread stand before it; None where that is not known."""
        sketch = self._of(document)
        return None if sketch is None else sketch.places.get(document.id)

    def places(self, documents: Sequence[Document]) -> list[int] | None:
        """The places of messages of one thread; None where not all are known."""
        found = [place for place in map(self.place, documents) if place is not None]
        return found if len(found) == len(documents) else None

    def answers(self, document: Document) -> bool | None:
        """Whether the platform says that it is a reply; None outside of the known threads."""
        if self.place(document) is None:
            return None
        told = document.metadata.get(REPLY_TO)
        return isinstance(told, str) and told not in {"", document.key}

    def _of(self, document: Document) -> ThreadOutline | None:
        return self._sketches.get((document.source, document.thread or "")) if self._sketches else None


class Gaps:
    """The places in threads where messages are left out, while a window fills."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._shown: dict[tuple[str, str | None], list[int]] = {}

    def added_by(self, document: Document) -> int:
        """How many more gaps there are when this is shown too, -1 where it closes one."""
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
        """Take note that a message is shown."""
        place = self._threads.place(document)
        if place is not None:
            insort(self._shown.setdefault((document.source, document.thread), []), place)
