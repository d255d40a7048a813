"""Captions as they come, in any order and more than once, to documents in the order of time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Final, TypedDict

from conspectus.deferred import dataclass
from conspectus.errors import Conflict, ConspectusError, InvalidInput, UnsupportedContent, as_field
from conspectus.model.captions import (
    TITLE,
    TRACK,
    CaptionImport,
    CaptionRange,
    CaptionTrack,
    NewCaption,
    is_recording,
)
from conspectus.model.ids import SourceId
from conspectus.model.parameters import Wait
from conspectus.model.records import Document, Metadata, NewDocument, Period, Source, Written
from conspectus.model.stream_events import ENTITIES
from conspectus.ports import Progress
from conspectus.ports.streams import Span
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash, stable_id
from conspectus.text.stream_clocks import StreamClock, zone_by_name
from conspectus.text.times import canonical, parse_instant

FILE: Final = "file"
"""Metadata of a caption: the file that it was read from."""
HAS_CAPTIONS: Final = "not transcribed: its captions are in a file of the same name"
VIDEO: Final = "video"
"""Metadata of a caption in a file of many videos: which one it is of."""


class CaptionImportOptions(TypedDict, total=False):
    """Options of an import of caption files.

    With `sentences` (the default) cues are joined into sentences; without `replace` a caption that is stored
    with other content is an error. `wait` returns when all are embedded. A file that holds no captions of a
    known format is skipped in a folder, and anywhere with `skip_unsupported`.
    """

    sentences: Annotated[bool, "Join cues into sentences."]
    replace: Annotated[bool, "Replace captions that are stored with other content."]
    wait: Wait
    skip_unsupported: Annotated[bool, "Count files without captions, and go on."]
    progress: Progress | None


@dataclass(slots=True)
class CaptionCounts:
    """The result of an import so far."""

    streams: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=lambda: {"added": 0, "replaced": 0, "unchanged": 0})
    failures: list[tuple[str, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)
    chunks: int = 0

    def count(self, stream: str, written: Sequence[Written]) -> None:
        """Take note of what was written."""
        self.streams[stream] = self.streams.get(stream, 0) + len(written)
        for caption in written:
            self.outcomes["replaced" if caption.outcome == "updated" else caption.outcome] += 1
            self.chunks += caption.chunks

    def fail(self, name: str, fault: ConspectusError, *, skips: bool) -> None:
        """Add a file that could not be imported; `skips` counts one without captions as skipped."""
        if skips and isinstance(fault, UnsupportedContent):
            self.skipped[name] = fault.reason
        else:
            self.failures.append((name, str(fault).removeprefix(f"{name}: ")))

    def report(self) -> CaptionImport:
        """All of it."""
        failures, notices = tuple(self.failures), tuple(self.notices)
        return CaptionImport(
            self.streams,
            **self.outcomes,
            failures=failures,
            notices=notices,
            skipped=len(self.skipped),
            skipped_files=self.skipped,
            chunks=self.chunks,
        )


def span_of(within: CaptionRange, clock: StreamClock) -> Span:
    """A range read on a stream's clock. Raises InvalidInput for one that ends before it starts."""
    with as_field("start", was="time"):
        start = None if within.start is None else clock.instant(within.start)
    with as_field("end", was="time"):
        end = None if within.end is None else clock.instant(within.end)
    if start is not None and end is not None and end < start:
        raise InvalidInput("end", "is before the start")
    last = None if within.last is None or within.last < 0 else within.last
    if within.first is not None and last is not None and last < within.first:
        raise InvalidInput("last", "is before the first")
    return Span(start, end, within.contains, within.first, last)


def caption_id(stream: SourceId, key: str) -> str:
    """The id of the caption of that key."""
    return stable_id("document", stream, key)


def caption_document(new: NewCaption, stream: Source, clock: StreamClock) -> NewDocument:
    """The document of a caption. Raises InvalidInput for times or numbers that cannot be."""
    if new.start is None and new.end is not None:
        raise InvalidInput("start", "is required with an end")
    occurred = None if new.start is None else clock.period(new.start, new.end)
    title = stream.metadata.get(TITLE)
    entities = {ENTITIES: list(new.entities)} if new.entities else {}
    return NewDocument(
        text=new.text,
        title=title if isinstance(title, str) else "",
        kind="caption",
        key=_key_for(new, occurred),
        metadata={**new.metadata, **entities},
        author=new.speaker,
        occurred=occurred,
        sequence=new.index,
        thread=TRACK,
        vector=new.vector,
        read_by=new.read_by,
    )


def merge_repeated(
    documents: Sequence[NewDocument], stored: Mapping[str, Document], stream: Source, *, replacing: bool
) -> list[NewDocument]:
    """Each document once, the last one given. Raises Conflict where one says something else than before.

    `stored` are those of the same ids that are there already.
    """
    contents = {name: (document.content_hash, document.occurred) for name, document in stored.items()}
    documents_by_id: dict[str, NewDocument] = {}
    for document in documents:
        name = caption_id(stream.id, document.key or "")
        occurred = document.occurred if isinstance(document.occurred, Period) else None
        saying = content_hash(clean(document.text)), occurred
        if not replacing and contents.get(name, saying) != saying:
            raise Conflict(
                "caption", document.key or "", f"is stored in {stream.name!r} with another text or time"
            )
        contents[name] = saying
        documents_by_id[name] = document
    return list(documents_by_id.values())


def stream_metadata(
    stored: Metadata, changes: Mapping[str, object | None], more: Mapping[str, object] | None
) -> dict[str, object]:
    """A stream's metadata with what is given in the place of what was there; None leaves it as it was."""
    stored_values = {name: value for name, value in stored.items() if name in changes}
    rest = stored if more is None else more
    changed = {name: value for name, value in changes.items() if value is not None}
    return {
        **{name: value for name, value in rest.items() if name not in changes},
        **stored_values,
        **changed,
    }


def origin_of(value: datetime | str | None, zone: str | None) -> str | None:
    """A start time as it is stored. Raises InvalidInput."""
    with as_field("start_time", was="time"):
        if value is None:
            return None
        return canonical(parse_instant(value, zone_by_name(zone or "UTC")))


def by_video(track: CaptionTrack, name: str, stream: str | None) -> dict[str, list[NewCaption]]:
    """The captions of a file by stream:

    the given one, one of each video in it, or that of the file. Each has its file and its number in it, so
    that it is recognized when the file is read again. Those of an export stay as they were.
    """
    captions_by_stream: dict[str, list[NewCaption]] = {}
    for number, caption in enumerate(track.captions, 1):
        video = caption.metadata.get(VIDEO)
        of = stream or (
            video if isinstance(video, str) and video else str(PurePosixPath(name).with_suffix(""))
        )
        metadata = {key: value for key, value in caption.metadata.items() if key != VIDEO or of != video}
        stored = replace(caption, key=caption.key or f"{name}#{number}", metadata=metadata)
        if not track.is_export:
            index = caption.index if stream is None else None
            stored = replace(stored, index=index, metadata={**metadata, FILE: name})
        captions_by_stream.setdefault(of, []).append(stored)
    return captions_by_stream


def recordings_with_captions(names: Iterable[str]) -> set[str]:
    """The recordings beside which lies a file of captions that has their name: these are their captions."""
    paths = {name: PurePosixPath(name) for name in names}
    stems = {(path.parent, path.stem) for name, path in paths.items() if not is_recording(name)}
    return {name for name, path in paths.items() if is_recording(name) and (path.parent, path.stem) in stems}


def path_within(name: str) -> str:
    """The caller's name of a file, as a path that does not change."""
    parts = (part for part in name.replace("\\", "/").split("/") if part not in {"", ".", ".."})
    return "/".join(parts) or "captions"


def _key_for(new: NewCaption, occurred: Period | None) -> str:
    """The name that the same caption has again."""
    if new.key is not None:
        return new.key
    if new.index is not None:
        return str(new.index)
    times = ("", "") if occurred is None else (canonical(occurred.start), canonical(occurred.end))
    return stable_id("caption", *times, clean(new.speaker or ""), clean(new.text))
