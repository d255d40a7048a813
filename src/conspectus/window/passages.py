"""From chosen chunks to passages in reading order."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from conspectus.model.records import Document
from conspectus.model.results import Hit
from conspectus.text.positions import heading_at
from conspectus.window.caption_passages import is_streamed, track
from conspectus.window.thread_gaps import Threads

_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SelectedChunk:
    """A candidate that goes into the window, with the characters [start, stop) of its chunk's text."""

    rank: int
    hit: Hit
    start: int
    stop: int

    @property
    def cut(self) -> bool:
        """Whether only a part is shown."""
        return self.stop - self.start < len(self.hit.chunk.text)

    @property
    def begins(self) -> int:
        """The character of the document that it begins with."""
        return self.hit.chunk.start + self.start


@dataclass(frozen=True, slots=True)
class WindowPassage:
    """An unbroken stretch of a document: its characters [start, end), from chunks that touch or overlap.

    `number` is what citations call it, from 1 on in reading order; `cut` says that the text goes on in
    the last chunk but is not shown, `cut_before` that the first chunk begins before it; `follows` is the
    number of the passage of the same document that stands before it, with a gap between them. `page` is that
    of its first chunk, `heading` that of its own beginning.
    `left_out` counts the messages of its thread that are left out between the passage before and it, `rest`
    those behind it where it is the last; `answers` whether it is a reply, None where threads are not known.
    `stream` names the stream that it is from, where the window is told names; `zone` is that of its times.
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
"""Groups in order of their best hit; within a group the order of time, within a document that of its text."""


def arrange(pieces: Iterable[SelectedChunk], threads: Threads) -> Layout:
    """Passages in reading order. Messages of one thread, captions and events of one stream are one group."""
    groups: dict[tuple[str, ...], list[SelectedChunk]] = {}
    for piece in sorted(pieces, key=lambda piece: piece.rank):
        groups.setdefault(group_key(piece.hit.document), []).append(piece)
    layout: list[tuple[WindowPassage, ...]] = []
    number = 1
    for members in groups.values():
        passages = _passages(members, number, threads)
        number += len(passages)
        layout.append(passages)
    return tuple(layout)


def group_key(document: Document) -> tuple[str, ...]:
    """What a document is kept together with: its thread or stream, else only itself."""
    if is_streamed(document):
        return track(document)
    if document.thread is not None and document.kind != "page":
        return ("thread", document.source, document.thread)
    return ("document", document.id)


def _passages(pieces: Sequence[SelectedChunk], number: int, threads: Threads) -> tuple[WindowPassage, ...]:
    passages: list[WindowPassage] = []
    order = _time_order if is_streamed(pieces[0].hit.document) else _reading_order
    for stretch in _stretches(sorted(pieces, key=order)):
        follows = (
            passages[-1].number if passages and passages[-1].document.id == stretch.document.id else None
        )
        passage = stretch.passage(number + len(passages), follows)
        document = passage.document
        passages.append(replace(passage, stream=threads.stream(document), zone=threads.zone(document)))
    return _with_gaps(passages, threads)


def _with_gaps(passages: Sequence[WindowPassage], threads: Threads) -> tuple[WindowPassage, ...]:
    """Passages that know how many messages of their thread are left out before them, and behind the last.

    Where the order of the thread is another than that of time, or where one of them is not known, none does.
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
    return (*sequence, occurred, document.id, piece.begins, chunk.position, chunk.id)


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

    def passage(self, number: int, follows: int | None) -> WindowPassage:
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
        )


def _stretches(pieces: Sequence[SelectedChunk]) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    for piece in pieces:
        if stretches and stretches[-1].continues_with(piece):
            stretches[-1].extend(piece)
        else:
            stretches.append(_Stretch(piece))
    return stretches
