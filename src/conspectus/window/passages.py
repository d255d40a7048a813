"""Passages in reading order: chunks that touch or overlap are join_passages."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from operator import attrgetter
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.records import (
    Box,
    Document,
)
from conspectus.model.results import Hit
from conspectus.text.positions import enclose, find_heading
from conspectus.text.tables import find_table_header
from conspectus.window.stream_times import is_streamed, stream_group
from conspectus.window.threads import Threads

_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_LATEST = datetime.max.replace(tzinfo=UTC)
MIN_LARGE_TOKENS: Final = 768
"""Tokens from which long pages do not wait."""


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
    heading at its start, `table_header` the header rows of the table that it is in the middle of: they stand
    before it in the document. `left_out` counts the messages of its thread omitted before it, `rest` those
    omitted after the last passage. `answers` says whether it is a reply; None if threads are unknown.
    `stream` is the name of its stream or channel, if the window has names, and `zone` the time zone of its
    times. `superseded_by` names the current documents that supersede its own.
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
    box: Box | None = None
    heading: str | None = None
    table_header: str = ""
    left_out: int = 0
    rest: int = 0
    answers: bool | None = None
    stream: str = ""
    zone: tzinfo = UTC
    superseded_by: str = ""


Layout = tuple[tuple[WindowPassage, ...], ...]
"""Groups ordered by best hit, documents in a group by time, and passages in a document by position."""


def group_pieces(pieces: Iterable[SelectedChunk]) -> Iterable[Sequence[SelectedChunk]]:
    """Group pieces by thread or stream, in the order of the best piece of each group."""
    groups: dict[tuple[str, ...], list[SelectedChunk]] = {}
    for piece in sorted(pieces, key=attrgetter("rank")):
        groups.setdefault(group_key(piece.hit.document), []).append(piece)
    return groups.values()


def group_key(document: Document) -> tuple[str, ...]:
    """Return the group key of a document: its thread or stream, else its id."""
    if is_streamed(document):
        return stream_group(document)
    if document.thread is not None and document.kind != "page":
        return ("thread", document.source, document.thread)
    return ("document", document.id)


def join_passages(
    pieces: Sequence[SelectedChunk], number: int, threads: Threads
) -> tuple[WindowPassage, ...]:
    """Return the passages of a group in reading order, numbered from `number`."""
    passages: list[WindowPassage] = []
    for chunks in _join_chunks(in_reading_order(pieces)):
        follows = None
        if passages and passages[-1].document.id == chunks.document.id:
            follows = passages[-1].number
        passages.append(chunks.passage(number + len(passages), follows, threads))
    return _with_gaps(passages, threads)


def in_reading_order(pieces: Sequence[SelectedChunk]) -> Sequence[SelectedChunk]:
    """Return the pieces of a group in reading order."""
    if len(pieces) < 2:
        return pieces
    return sorted(pieces, key=_time_order if is_streamed(pieces[0].hit.document) else _order_in_reading)


def _with_gaps(passages: Sequence[WindowPassage], threads: Threads) -> tuple[WindowPassage, ...]:
    """Add the numbers of omitted messages before each passage and after the last one.

    Nothing is added if the thread is not ordered by time or if a message is unknown.
    """
    if not threads.has_threads:
        return tuple(passages)
    positions = threads.positions([passage.document for passage in passages])
    if positions is None or positions != sorted(positions):
        return tuple(passages)
    with_gaps = [
        replace(passage, left_out=max(position - before - 1, 0), answers=threads.is_reply(passage.document))
        for passage, position, before in zip(passages, positions, [-1, *positions], strict=False)
    ]
    rest = threads.total(with_gaps[-1].document) - positions[-1] - 1
    return (*with_gaps[:-1], replace(with_gaps[-1], rest=max(rest, 0)))


def _order_in_reading(piece: SelectedChunk) -> tuple[object, ...]:
    document, chunk = piece.hit.document, piece.hit.chunk
    sequence = (document.sequence is None, document.sequence or 0)
    occurred = document.occurred.start if document.occurred else _LATEST
    return (*sequence, occurred, document.number, document.id, piece.begins, chunk.position, chunk.id)


def _time_order(piece: SelectedChunk) -> tuple[object, ...]:
    document = piece.hit.document
    occurred = (document.occurred.start, document.occurred.end) if document.occurred else (_LATEST, _LATEST)
    return (*occurred, *_order_in_reading(piece))


class _JoinedChunks:
    """Chunks of a document that touch or overlap."""

    def __init__(self, piece: SelectedChunk) -> None:
        self.document = piece.hit.document
        self._first = piece
        self.start = self.end = piece.begins
        self._texts: list[str] = []
        self._chunks: list[int] = []
        self._boxes: list[Box | None] = []
        self._cut = False
        self.extend(piece)

    def continues_with(self, piece: SelectedChunk) -> bool:
        return piece.hit.document.id == self.document.id and piece.begins <= self.end

    def extend(self, piece: SelectedChunk) -> None:
        chunk = piece.hit.chunk
        self._chunks.append(chunk.id)
        if chunk.page == self._first.hit.chunk.page:
            self._boxes.append(chunk.box)
        end = chunk.start + piece.stop
        if end > self.end or not self._texts:
            self._texts.append(chunk.text[self.end - chunk.start : piece.stop])
            self.end = end
            self._cut = piece.stop < len(chunk.text)

    def passage(self, number: int, follows: int | None, threads: Threads) -> WindowPassage:
        text, chunk = "".join(self._texts), self._first.hit.chunk
        blank = _BLANK_LINES.match(text)
        stripped = text.rstrip()
        lead = min(blank.end() if blank else 0, len(stripped))
        start, end = self.start + lead, self.start + len(stripped)
        return WindowPassage(
            number,
            self.document,
            start,
            end,
            stripped[lead:],
            tuple(self._chunks),
            cut=self._cut,
            cut_before=self._first.start > 0,
            follows=follows,
            page=chunk.page,
            box=enclose(self._boxes),
            heading=find_heading(chunk, self.document.syntax, self._first.start + lead),
            table_header=find_table_header(chunk, self.document.syntax, self._first.start + lead),
            stream=threads.stream(self.document),
            zone=threads.zone(self.document),
            superseded_by=names_of_successors(self._first.hit),
        )


def names_of_successors(hit: Hit) -> str:
    """Return the names of the documents that supersede that of a hit; empty if there are none."""
    return "; ".join(successor.name for successor in hit.superseded_by)


def _join_chunks(pieces: Sequence[SelectedChunk]) -> list[_JoinedChunks]:
    chunks: list[_JoinedChunks] = []
    for piece in pieces:
        if chunks and chunks[-1].continues_with(piece):
            chunks[-1].extend(piece)
        else:
            chunks.append(_JoinedChunks(piece))
    return chunks
