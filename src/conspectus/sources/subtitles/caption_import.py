"""A file of captions of any format: for streams as captions, for collections as documents."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from lxml.etree import LxmlError

from conspectus.errors import UnreadableFile
from conspectus.model.records import NewDocument, Period
from conspectus.model.streams import CaptionTrack, NewCaption
from conspectus.sources.subtitles.cues import Cue, ParsedCues, video_of
from conspectus.sources.subtitles.format_detection import reader_of
from conspectus.sources.subtitles.rolling_captions import unroll
from conspectus.sources.subtitles.sentences import sentences as put_together
from conspectus.sources.subtitles.tidy import tidy
from conspectus.text.times import parse_instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_caption_file(text: str, name: str, *, sentences: bool = False) -> CaptionTrack:
    """The captions of a decoded file, in whatever format it is; rolling ones with each line once.

    With `sentences`, cues are put together to sentences: each lasts from the start of the cue in which it
    begins to the end of the cue in which it ends, and its metadata `cues` is a list of [offset, start, end].
    Captions that have keys of their own, such as an export of a stream, stay as they are.

    Raises:
        UnreadableFile: the file is in no format that is known here, damaged, or has no captions at all.
    """
    reading = _read(text, name)
    cues = reading.cues
    named = any(cue.key for cue in cues)
    found = (_caption(cue, name, reading) for cue in cues)
    whole = put_together(cues, name) if sentences and not named else tuple(found)
    recordings = len({video_of(cue) for cue in cues})
    if recordings > 1:
        reading.left["recordings in one file, each named `video` in the metadata"] = recordings
    return CaptionTrack(whole, reading.title, reading.language, reading.notice())


def captions(text: str, name: str, title: str) -> tuple[tuple[NewDocument, ...], str | None]:
    """One document for each caption, and a notice of what was left out. Raises UnreadableFile."""
    reading = _read(text, name)
    return tuple(_document(cue, name, reading.title or title) for cue in reading.cues), reading.notice()


def _read(text: str, name: str) -> ParsedCues:
    """What the reader of the format found, made fit to be stored."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not plain.strip():
        return ParsedCues(left=Counter({"empty files": 1}))
    reader = reader_of(plain, name)
    if reader is None:
        raise UnreadableFile(name, "no format of captions is recognised")
    try:
        reading = reader(plain)
    except (ValueError, LxmlError) as error:
        raise UnreadableFile(name, f"not valid captions: {error}") from None
    tidy(reading)
    if not any(cue.key for cue in reading.cues):
        reading.cues = unroll(reading.cues, reading.left)
    if not reading.cues and not plain.startswith("WEBVTT"):
        raise UnreadableFile(name, f"no caption was found; {reading.notice() or 'there is none in it'}")
    return reading


def _caption(cue: Cue, name: str, reading: ParsedCues) -> NewCaption:
    """A number of the file's own is the key; others say in which file they count."""
    return NewCaption(
        cue.text,
        start=cue.start,
        end=cue.end,
        index=cue.number,
        key=cue.key or (None if reading.numbered else f"{name}#{cue.place}"),
        speaker=cue.speaker,
        entities=cue.entities,
        metadata=cue.metadata,
        vector=cue.vector,
    )


def _document(cue: Cue, name: str, title: str) -> NewDocument:
    named = {"entities": list(cue.entities)} if cue.entities else {}
    return NewDocument(
        cue.text,
        title=title,
        kind="caption",
        key=f"{name}#{cue.place}",
        metadata={**cue.metadata, **named, "start": cue.start, "end": cue.end},
        author=cue.speaker,
        occurred=_period(cue),
        sequence=cue.number,
        thread=name,
    )


def _period(cue: Cue) -> Period | None:
    if cue.start is None:
        return None
    start = _instant(cue.start)
    return Period(start, start if cue.end is None else _instant(cue.end))


def _instant(time: float | str) -> datetime:
    return parse_instant(time) if isinstance(time, str) else EPOCH + timedelta(seconds=time)
