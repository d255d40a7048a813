"""Captions: text with times on the clock of a stream."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from pathlib import PurePath
from typing import Annotated

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Range
from conspectus.model.checks import Checked
from conspectus.model.parameters import (
    EndText,
    Key,
    Label,
    ListedEntities,
    StartText,
    StoredText,
    Text,
    Vector,
)
from conspectus.model.records import Document, ReadBy

TRACK = "captions"
"""The thread of all captions of a stream: the one before and the one after are neighbors."""
ORIGIN = "start_time"
ZONE = "time_zone"
LIVE = "live"
RECORDING_SUFFIXES = frozenset({
    ".3gp", ".aac", ".aif", ".aiff", ".amr", ".avi", ".caf", ".flac", ".m4a", ".m4b", ".m4v", ".mkv", ".mov",
    ".mp3", ".mp4", ".oga", ".ogg", ".opus", ".wav", ".weba", ".webm", ".wma",
})  # fmt: skip
"""Files whose speech becomes captions."""
TITLE = "title"
"""Metadata of a stream's source: the instant of its second 0, its time zone, whether it is live, and its
title."""
EPOCH_YEAR = 1970
"""The year of clocks without a start time, whose times are seconds and not instants."""

When = Annotated[
    datetime | str | float, "Seconds or a timecode on the stream's clock, or an ISO 8601 instant."
]
"""Timecodes are `mm:ss`, `hh:mm:ss` and `1h2m3s`."""


def is_recording(name: str | PurePath) -> bool:
    """Return whether a file of that name is one whose speech becomes captions."""
    return PurePath(name).suffix.lower() in RECORDING_SUFFIXES


@dataclass(frozen=True, slots=True)
class NewCaption(Checked):
    """A caption: text with a time range in a stream.

    `start` and `end` are on the stream's clock; without an end it is an instant, without both it has no time.
    `index` is its number in the stream (chunk_idx), `key` the caller's own name for it. Without a key the
    index identifies it, without both its text and times: the same caption is never stored twice.
    """

    text: Annotated[Text, "Text of the caption.", Example("A train arrives.")]
    start: Annotated[When | None, "Begin.", Example("00:12:30")] = None
    end: Annotated[When | None, "End; without one it is an instant.", Example("00:12:38")] = None
    index: Annotated[int | None, Range(0), "Its number in the stream."] = None
    key: Annotated[Key, "Name that the caller gives it."] | None = None
    speaker: Annotated[Label, "Who speaks."] | None = None
    entities: ListedEntities = ()
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)
    vector: Annotated[Vector | None, "Embedding, if the caller has it."] = None
    read_by: Annotated[ReadBy, "How the text was read: as text, by OCR, or from speech."] = "text"


@dataclass(frozen=True, slots=True)
class Caption:
    """A stored caption (or event) with its text; `start` and `end` are seconds on its stream's clock.

    `start_text` and `end_text` are timecodes, or instants in the zone of the stream.
    """

    document: Document
    text: StoredText
    start: float | None
    end: float | None
    start_text: StartText | None = None
    end_text: EndText | None = None


@dataclass(frozen=True, slots=True)
class CaptionRange(Checked):
    """A range of captions of a stream: those that overlap [start, end), where None is open.

    With `contains`, only those that lie wholly inside. `first` and `last` limit the index, both inclusive.
    Without any of these, all captions are in it, also those without times.
    """

    start: When | None = None
    end: When | None = None
    contains: Annotated[bool, "Only captions that lie wholly inside."] = False
    first: Annotated[int | None, Range(0), "Number of the first caption, included."] = None
    last: Annotated[int | None, Range(-1), "Number of the last caption, included; -1: to the end."] = None


WHOLE = CaptionRange()
"""All of a stream."""


@dataclass(frozen=True, slots=True)
class CaptionPage:
    """Captions in the order of time, those without times last; `next` is the cursor of the next page."""

    captions: tuple[Caption, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class LiveCaption:
    """A caption as it was written; `sequence` grows, and is where to continue after a lost connection."""

    sequence: int
    caption: Caption


@dataclass(frozen=True, slots=True)
class CaptionTrack:
    """The captions of a file, in its order; `notice` says what was left out or changed.

    With `is_export`, the captions have keys of their own, as those of an exported stream.
    """

    captions: tuple[NewCaption, ...]
    title: str = ""
    language: str | None = None
    notice: str | None = None
    is_export: bool = False


@dataclass(frozen=True, slots=True)
class CaptionImport:
    """The result of an import: streams by name with the number of their captions, and counts of outcomes.

    `chunks` are the chunks of the captions, by which these are found.
    `skipped` counts the files that hold no captions of a known format, or are recordings and the extra
    `audio` is missing; `skipped_files` are their names with the reasons.
    """

    streams: Mapping[str, int]
    added: int
    replaced: int
    unchanged: int
    failures: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    skipped: int = 0
    skipped_files: Mapping[str, str] = field(default_factory=dict)
    chunks: int = 0
