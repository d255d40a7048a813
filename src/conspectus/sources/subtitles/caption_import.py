"""Read a caption file of any format as the captions of a stream."""

from collections import Counter

from lxml.etree import LxmlError

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.model.captions import CaptionTrack, NewCaption
from conspectus.sources.subtitles.cue_repair import tidy
from conspectus.sources.subtitles.cues import Cue, ParsedCues, video_of
from conspectus.sources.subtitles.format_detection import reader_of
from conspectus.sources.subtitles.rolling_captions import unroll
from conspectus.sources.subtitles.sentences import sentences as put_together


def read_caption_file(text: str, name: str, *, sentences: bool = False) -> CaptionTrack:
    """The captions of a decoded file, in any known format; rolling ones with each line once.

    With `sentences`, cues are joined into sentences: each lasts from the start of the cue in which it begins
    to the end of the cue in which it ends, and its metadata `cues` is a list of [offset, start, end].
    Captions that have keys of their own, such as an export of a stream, stay as they are.

    Raises:
        UnreadableFile: the format of the file is unknown, the file is damaged, or it has no captions.
    """
    reading = _read(text, name)
    cues = reading.cues
    is_export = any(cue.key for cue in cues)
    cue_captions = (_caption(cue, name, reading) for cue in cues)
    file_captions = put_together(cues, name) if sentences and not is_export else tuple(cue_captions)
    recordings = len({video_of(cue) for cue in cues})
    if recordings > 1:
        reading.left["recordings in one file, each named `video` in the metadata"] = recordings
    return CaptionTrack(file_captions, reading.title, reading.language, reading.notice(), is_export)


def _read(text: str, name: str) -> ParsedCues:
    """Return the cues in storable form."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not plain.strip():
        return ParsedCues(left=Counter({"empty files": 1}))
    reader = reader_of(plain, name)
    if reader is None:
        raise UnsupportedContent(name, "unknown format of captions")
    try:
        reading = reader(plain)
    except (ValueError, LxmlError) as error:
        raise UnreadableFile(name, f"not valid captions: {error}") from None
    tidy(reading)
    if not any(cue.key for cue in reading.cues):
        reading.cues = unroll(reading.cues, reading.left)
    if not reading.cues and not plain.startswith("WEBVTT"):
        raise UnreadableFile(name, f"no caption was found; {reading.notice() or 'the file has none'}")
    return reading


def _caption(cue: Cue, name: str, reading: ParsedCues) -> NewCaption:
    """Return a caption. A number of the file becomes its key; other keys include the name of the file."""
    return NewCaption(
        cue.text,
        start=cue.start,
        end=cue.end,
        index=cue.number,
        key=cue.key or (None if reading.numbered else f"{name}#{cue.position}"),
        speaker=cue.speaker,
        entities=cue.entities,
        metadata=cue.metadata,
        vector=cue.vector,
        read_by=cue.read_by,
    )
