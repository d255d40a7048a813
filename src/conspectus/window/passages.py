"""Passages in reading order: joined chunks, the gaps between messages, and the times of captions."""

import re
from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from operator import attrgetter
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.channels import REPLY_TO
from conspectus.model.records import Document
from conspectus.model.results import Hit, ThreadOutline
from conspectus.model.streams import EVENT_TYPE, TRACK
from conspectus.text.positions import heading_at
from conspectus.text.times import EPOCH, timecode


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


_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class SelectedChunk:
    """A candidate in the window, with the shown characters [start, stop) of its chunk's text."""

    rank: int
    hit: Hit
    start: int
    stop: int

    @property
    def cut(self) -> bool:
        """Whether only a part of the chunk is shown."""
        return self.stop - self.start < len(self.hit.chunk.text)

    @property
    def begins(self) -> int:
        """The position of its first character in the document."""
        return self.hit.chunk.start + self.start


@dataclass(slots=True)
class WindowPassage:
    """A passage: characters [start, end) of a document, from chunks that touch or overlap.

    `number` identifies it in citations, from 1 in reading order. `cut` says that the text of its last chunk
    continues, `cut_before` that its first chunk starts earlier. `follows` is the number of the preceding
    passage of the same document, separated by a gap. `page` is the page of its first chunk, `heading` the
    heading at its start. `left_out` counts the messages of its thread omitted before it, `rest` those omitted
    after the last passage. `answers` says whether it is a reply; None if threads are unknown. `stream` is the
    name of its stream, if the window has stream names, and `zone` the time zone of its times.
    """

    number: int
    document: Document
    start: int
    end: int
    text: str
    chunks: tuple[int, ...]
    cut: bool = False
    cut_before: bool = False
    follows: int | None = None
    page: int | None = None
    heading: str | None = None
    left_out: int = 0
    rest: int = 0
    answers: bool | None = None
    stream: str = ""
    zone: tzinfo = UTC


Layout = tuple[tuple[WindowPassage, ...], ...]
"""Groups ordered by best hit, documents in a group by time, and passages in a document by position."""


_TYPICAL_LENGTH: Final = 500
"""Characters of a text whose score is its worth."""
_MORE_LENGTH: Final = 400
"""Added to each length, so that short texts differ little."""
_OF_LENGTH: Final = 0.25
LARGE: Final = 768
"""Tokens from which long pages do not wait."""


def worth(hit: Hit, room: int) -> float:
    """Return its score, less for a long turn with an assistant, and in little room for a long page.

    At 2,000 characters it is 20 % less. What people say to each other keeps its score: there, longer
    messages are evidence more often.
    """
    long_waits = hit.document.assisted or (hit.document.kind == "page" and room < LARGE)
    if hit.score <= 0 or not long_waits:
        return hit.score
    typical = (_TYPICAL_LENGTH + _MORE_LENGTH) / (len(hit.chunk.text) + _MORE_LENGTH)
    return float(hit.score * typical**_OF_LENGTH)


def grouped(pieces: Iterable[SelectedChunk]) -> Iterable[Sequence[SelectedChunk]]:
    """Group pieces by thread or stream, in the order of the best piece of each group."""
    groups: dict[tuple[str, ...], list[SelectedChunk]] = {}
    for piece in sorted(pieces, key=attrgetter("rank")):
        groups.setdefault(group_key(piece.hit.document), []).append(piece)
    return groups.values()


def group_key(document: Document) -> tuple[str, ...]:
    """Return the group key of a document: its thread or stream, else its id."""
    if is_streamed(document):
        return track(document)
    if document.thread is not None and document.kind != "page":
        return ("thread", document.source, document.thread)
    return ("document", document.id)


def joined(pieces: Sequence[SelectedChunk], number: int, threads: Threads) -> tuple[WindowPassage, ...]:
    """Return the passages of a group in reading order, numbered from `number`."""
    passages: list[WindowPassage] = []
    for stretch in _stretches(in_reading_order(pieces)):
        follows = (
            passages[-1].number if passages and passages[-1].document.id == stretch.document.id else None
        )
        passages.append(stretch.passage(number + len(passages), follows, threads))
    return _with_gaps(passages, threads)


def in_reading_order(pieces: Sequence[SelectedChunk]) -> Sequence[SelectedChunk]:
    """Return the pieces of a group in reading order."""
    if len(pieces) < 2:
        return pieces
    return sorted(pieces, key=_time_order if is_streamed(pieces[0].hit.document) else _reading_order)


def _with_gaps(passages: Sequence[WindowPassage], threads: Threads) -> tuple[WindowPassage, ...]:
    """Add the numbers of omitted messages before each passage and after the last one.

    Nothing is added if the thread is not ordered by time or if a message is unknown.
    """
    if not threads.known:
        return tuple(passages)
    places = threads.places([passage.document for passage in passages])
    if places is None or places != sorted(places):
        return tuple(passages)
    known = [
        replace(passage, left_out=max(place - before - 1, 0), answers=threads.answers(passage.document))
        for passage, place, before in zip(passages, places, [-1, *places], strict=False)
    ]
    rest = threads.total(known[-1].document) - places[-1] - 1
    return (*known[:-1], replace(known[-1], rest=max(rest, 0)))


def _reading_order(piece: SelectedChunk) -> tuple[object, ...]:
    document, chunk = piece.hit.document, piece.hit.chunk
    sequence = (document.sequence is None, document.sequence or 0)
    occurred = document.occurred.start if document.occurred else _LATEST
    return (*sequence, occurred, document.number, document.id, piece.begins, chunk.position, chunk.id)


def _time_order(piece: SelectedChunk) -> tuple[object, ...]:
    document = piece.hit.document
    occurred = (document.occurred.start, document.occurred.end) if document.occurred else (_LATEST, _LATEST)
    return (*occurred, *_reading_order(piece))


class _Stretch:
    def __init__(self, piece: SelectedChunk) -> None:
        self.document = piece.hit.document
        self._first = piece
        self.start = self.end = piece.begins
        self._texts: list[str] = []
        self._chunks: list[int] = []
        self._cut = False
        self.extend(piece)

    def continues_with(self, piece: SelectedChunk) -> bool:
        return piece.hit.document.id == self.document.id and piece.begins <= self.end

    def extend(self, piece: SelectedChunk) -> None:
        chunk = piece.hit.chunk
        self._chunks.append(chunk.id)
        end = chunk.start + piece.stop
        if end > self.end or not self._texts:
            self._texts.append(chunk.text[self.end - chunk.start : piece.stop])
            self.end = end
            self._cut = piece.stop < len(chunk.text)

    def passage(self, number: int, follows: int | None, threads: Threads) -> WindowPassage:
        text = "".join(self._texts)
        blank = _BLANK_LINES.match(text)
        shown = text.rstrip()
        lead = min(blank.end() if blank else 0, len(shown))
        start, end = self.start + lead, self.start + len(shown)
        return WindowPassage(
            number,
            self.document,
            start,
            end,
            shown[lead:],
            tuple(self._chunks),
            cut=self._cut,
            cut_before=self._first.start > 0,
            follows=follows,
            page=self._first.hit.chunk.page,
            heading=heading_at(self._first.hit.chunk, self.document.syntax, self._first.start + lead),
            stream=threads.stream(self.document),
            zone=threads.zone(self.document),
        )


def _stretches(pieces: Sequence[SelectedChunk]) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    for piece in pieces:
        if stretches and stretches[-1].continues_with(piece):
            stretches[-1].extend(piece)
        else:
            stretches.append(_Stretch(piece))
    return stretches


_KINDS: Final = frozenset({"caption", "event"})
_PAUSE: Final = timedelta(seconds=5)
"""Longest pause without assuming a missing caption."""


def is_streamed(document: Document) -> bool:
    """Return whether the document is a caption or an event."""
    return document.kind in _KINDS


def track(document: Document) -> tuple[str, ...]:
    """Return the group key of a caption or event: its stream."""
    other = () if document.thread in {None, TRACK} else (document.thread or "",)
    return ("stream", document.source, *other)


def event_type(document: Document) -> str:
    """Return the type of an event; empty for a caption."""
    value = document.metadata.get(EVENT_TYPE)
    return value if document.kind == "event" and isinstance(value, str) else ""


def stretch(document: Document, before: Document | None = None, zone: tzinfo = UTC) -> str:
    """Format a time range: timecodes of a recording, else instants without a repeated day.

    A range without duration is one time; without times it is empty. A time zone other than UTC follows the
    day.
    """
    if document.occurred is None:
        return ""
    start, end = document.occurred.start, document.occurred.end
    if start.astimezone(UTC).year == EPOCH.year:
        shown = [timecode((each - EPOCH).total_seconds()) for each in (start, end)]
        return shown[0] if start == end else " - ".join(shown)
    value = _local(before.occurred.start, zone) if before and before.occurred else None
    begins, ends = _local(start, zone), _local(end, zone)
    shown = [_instant(begins, value), *([] if start == end else [_instant(ends, begins)])]
    same = zone is UTC or (value is not None and value.date() == begins.date())
    return " - ".join(shown) + ("" if same else f" {zone}")


def apart(document: Document, before: Document | None) -> bool:
    """Return whether captions may be missing between two consecutive captions."""
    if before is None or not is_streamed(before) or before.source != document.source:
        return False
    if document.sequence is not None and before.sequence is not None:
        return document.sequence > before.sequence + 1
    if document.occurred is None or before.occurred is None:
        return False
    return document.occurred.start - before.occurred.end > _PAUSE


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """Convert an instant to a time zone, or to UTC if the result is out of range."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def _instant(moment: datetime, previous: datetime | None) -> str:
    time = moment.replace(tzinfo=None, microsecond=moment.microsecond // 1_000 * 1_000)
    shown = time.isoformat(sep=" ", timespec="milliseconds" if time.microsecond else "seconds")
    return shown.partition(" ")[2] if previous is not None and previous.date() == moment.date() else shown
