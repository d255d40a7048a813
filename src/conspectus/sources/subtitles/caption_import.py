"""Read a caption file of any format: as captions for streams, as documents for collections."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import PurePath
from typing import Final, TypeAlias

from lxml.etree import LxmlError

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.records import NewDocument, Period
from conspectus.model.streams import CaptionTrack, NewCaption
from conspectus.settings import Settings
from conspectus.sources.encoding import plain_text
from conspectus.sources.subtitles.cue_blocks import (
    ARROW,
    COMMA,
    read_subrip,
    read_subviewer,
    read_webvtt,
)
from conspectus.sources.subtitles.json_captions import read_json, read_json_lines
from conspectus.sources.subtitles.sami import read_sami
from conspectus.sources.subtitles.scenarist import read_scc
from conspectus.sources.subtitles.sentences import (
    NO_TEXT,
    Cue,
    ParsedCues,
    Time,
    by_track,
    second_of,
    video_of,
)
from conspectus.sources.subtitles.sentences import sentences as put_together
from conspectus.sources.subtitles.substation import read_ass
from conspectus.sources.subtitles.ttml import is_ttml, read_ttml
from conspectus.text.clean import clean
from conspectus.text.times import parse_instant

Read: TypeAlias = Callable[[str], ParsedCues]

ENDINGS: Mapping[str, Read] = {
    ".srt": read_subrip, ".vtt": read_webvtt, ".ass": read_ass, ".ssa": read_ass, ".sbv": read_subviewer,
    ".smi": read_sami, ".sami": read_sami, ".ttml": read_ttml, ".dfxp": read_ttml, ".xml": read_ttml,
    ".scc": read_scc, ".json": read_json, ".json3": read_json, ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}  # fmt: skip
_LINED = frozenset({read_subrip, read_webvtt, read_subviewer})
_LOOKED_AT = 100_000
_SECTION = re.compile(r"\[(?:script info|v4\+? styles|events)\]", re.IGNORECASE)
_SAMI = re.compile(r"(?:<\?xml[^>]*>|<!--|<!doctype[^>]*>|\s)*+<sami[\s>]", re.IGNORECASE)


def reader_of(text: str, name: str) -> Read | None:
    """Return the reader of a text; None for an unknown format."""
    named = ENDINGS.get(PurePath(name).suffix.lower())
    head = text[:_LOOKED_AT].lstrip("\ufeff \t\n")
    marked = _marked(head, named)
    if marked is not None:
        return marked
    if named in _LINED or named is None:
        for line in text[:_LOOKED_AT].split("\n"):
            if ARROW.fullmatch(line):
                return named if named is read_webvtt else read_subrip
            if COMMA.fullmatch(line):
                return read_subviewer
    return named


def _marked(head: str, named: Read | None) -> Read | None:
    """Return the reader of a format that identifies itself."""
    if head.startswith("WEBVTT"):
        return read_webvtt
    if head.startswith("Scenarist_SCC"):
        return read_scc
    if _SECTION.match(head):
        return read_ass
    if _SAMI.match(head):
        return read_sami
    if head.startswith("<") and is_ttml(head):
        return read_ttml
    if head[:1] in {"{", "["} and named not in _LINED:
        return read_json_lines if named is read_json_lines else read_json
    return None


MAX_SECONDS: Final = 1_000_000 * 3600.0
"""A million hours in seconds, the longest recording."""

_REPLACED = "captions with characters that cannot be stored, which were replaced"
_TOO_LATE = "captions with times beyond a million hours, kept without times"
_TOO_EARLY = "captions with times before 0, kept at 0"
_NO_START = "captions with an end but no start, kept without times"
_BACKWARDS = "captions that end before they start, kept as instants"
_DOUBLES = "duplicate captions with equal times, kept once"
_SAME_KEY = "captions with ambiguous keys, renamed"
_SAME_NUMBER = "captions with ambiguous numbers, renumbered"


def tidy(reading: ParsedCues) -> None:
    """Keep distinct cues with text, numbered. Every change is counted."""
    _name(reading)
    _number(reading)
    distinct: list[Cue] = []
    seen: set[tuple[object, ...]] = set()
    for cue in reading.cues:
        text, speaker = clean(cue.text), clean(cue.speaker or "") or None
        reading.left[_REPLACED] += text != cue.text or speaker != cue.speaker
        cue.text, cue.speaker = text, speaker
        cue.entities = tuple(map(clean, cue.entities))
        if not cue.text.strip():
            reading.left[NO_TEXT] += 1
            continue
        cue.start, cue.end = _times(cue.start, cue.end, reading.left)
        same = (cue.track, cue.start, cue.end, cue.speaker, cue.text, cue.key)
        if cue.start is not None and same in seen:
            reading.left[_DOUBLES] += 1
            continue
        seen.add(same)
        distinct.append(cue)
    reading.cues = distinct


def _number(reading: ParsedCues) -> None:
    """Number the cues of each recording from 1, unless all have valid numbers of their own."""
    recordings: dict[object, list[Cue]] = {}
    for position, cue in enumerate(reading.cues, 1):
        cue.position = position
        recordings.setdefault(video_of(cue), []).append(cue)
    numbered = [_numbered(cues, reading.left) for cues in recordings.values()]
    reading.numbered = numbered == [True]


def _name(reading: ParsedCues) -> None:
    """Keep the keys of the file if they are unique."""
    keys = [cue.key for cue in reading.cues if cue.key is not None]
    if len(set(keys)) < len(keys):
        reading.left[_SAME_KEY] += len(keys)
        for cue in reading.cues:
            cue.key = None


def _numbered(cues: list[Cue], skipped: Counter[str]) -> bool:
    numbers = [cue.number for cue in cues if cue.number is not None]
    if all(cue.key for cue in cues):
        return False
    if numbers and len(set(numbers)) == len(cues):
        return True
    skipped[_SAME_NUMBER] += len(numbers)
    for number, cue in enumerate(cues, 1):
        cue.number = number
    return False


def _times(start: Time, end: Time, skipped: Counter[str]) -> tuple[Time, Time]:
    """Clamp times to the range of a stream's clock."""
    start, end = (_bounded(time, skipped) for time in (start, end))
    if start is None:
        skipped[_NO_START] += end is not None
        return None, None
    begins, ends = second_of(start), second_of(end)
    if begins is not None and ends is not None and ends < begins:
        skipped[_BACKWARDS] += 1
        return start, start
    return start, end


def _bounded(time: Time, skipped: Counter[str]) -> Time:
    if not isinstance(time, float):
        return time
    if time > MAX_SECONDS:
        skipped[_TOO_LATE] += 1
        return None
    if time < 0:
        skipped[_TOO_EARLY] += 1
    return max(time, 0.0)


MAX_GAP_SHARE: Final = 0.5
MIN_CUES: Final = 3
MIN_TIMED: Final = 1
MIN_SHARE: Final = 0.5
MAX_LINES: Final = 8
"""Maximum number of lines on a screen."""

_REPEATED = "rolling captions, repeated lines removed"


def unroll(cues: list[Cue], skipped: Counter[str]) -> list[Cue]:
    """Return the cues in order, with each line of rolling captions once."""
    unrolled = (cue for track in by_track(cues) for cue in _unrolled(track, skipped))
    return sorted(unrolled, key=lambda cue: cue.position)


def _unrolled(cues: list[Cue], skipped: Counter[str]) -> list[Cue]:
    lines = [
        [line for text_line in cue.text.split("\n") if (line := " ".join(text_line.split()))] for cue in cues
    ]
    if not _is_rolling(cues, lines):
        return cues
    unrolled: list[Cue] = []
    for number, cue in enumerate(cues):
        soon = number > 0 and _soon(cues[number - 1], cue)
        shared = _shared(lines[number - 1], lines[number]) if soon else 0
        skipped[_REPEATED] += shared > 0
        if shared:
            ends, others = second_of(unrolled[-1].end), second_of(cue.end)
            if ends is not None and others is not None and others > ends:
                unrolled[-1].end = cue.end
        added = lines[number][shared:]
        if added:
            unrolled.append(replace(cue, text="\n".join(added)))
    for one, after in pairwise(unrolled):
        ends, starts, others = second_of(one.end), second_of(one.start), second_of(after.start)
        if ends is not None and starts is not None and others is not None and starts <= others < ends:
            one.end = after.start
    return unrolled


def _is_rolling(cues: list[Cue], lines: list[list[str]]) -> bool:
    soon = rolls = 0
    for (before, cue), (lines_before, here) in zip(pairwise(cues), pairwise(lines), strict=True):
        if _soon(before, cue):
            soon += 1
            rolls += _rolls(lines_before, here) or (before.timed and not cue.timed and lines_before == here)
    fewest = MIN_TIMED if any(cue.timed for cue in cues) else MIN_CUES
    return rolls >= fewest and rolls >= MIN_SHARE * soon


def _rolls(before: list[str], here: list[str]) -> bool:
    shared = _shared(before, here)
    return shared > 0 and not shared == len(before) == len(here)


def _soon(before: Cue, cue: Cue) -> bool:
    started, ended, starts = second_of(before.start), second_of(before.end), second_of(cue.start)
    if started is None or ended is None or starts is None:
        return False
    return started <= starts <= ended + MAX_GAP_SHARE


def _shared(before: list[str], here: list[str]) -> int:
    """Return how many last lines of one cue are the first lines of the other."""
    longest = min(len(before), len(here), MAX_LINES)
    return next((count for count in range(longest, 0, -1) if before[-count:] == here[:count]), 0)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    named = any(cue.key for cue in cues)
    cue_captions = (_caption(cue, name, reading) for cue in cues)
    file_captions = put_together(cues, name) if sentences and not named else tuple(cue_captions)
    recordings = len({video_of(cue) for cue in cues})
    if recordings > 1:
        reading.left["recordings in one file, each named `video` in the metadata"] = recordings
    return CaptionTrack(file_captions, reading.title, reading.language, reading.notice())


def captions(text: str, name: str, title: str) -> tuple[tuple[NewDocument, ...], str | None]:
    """Return one document per caption, and a notice of what was skipped. Raises UnreadableFile."""
    reading = _read(text, name)
    return tuple(_document(cue, name, reading.title or title) for cue in reading.cues), reading.notice()


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
    )


def _document(cue: Cue, name: str, title: str) -> NewDocument:
    named = {"entities": list(cue.entities)} if cue.entities else {}
    return NewDocument(
        cue.text,
        title=title,
        kind="caption",
        key=f"{name}#{cue.position}",
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


@dataclass(frozen=True, slots=True)
class LocalCaptions:
    """The `CaptionReader` port."""

    settings: Settings = field(default_factory=Settings)

    def read(self, data: bytes, name: str, *, sentences: bool) -> CaptionTrack:
        """Return the captions of a file. Raises TooLarge or UnreadableFile."""
        if len(data) > self.settings.max_file_bytes:
            raise TooLarge("file", size=len(data), limit=self.settings.max_file_bytes)
        plain = plain_text(data, name, is_text=True)
        track = read_caption_file(plain.text, name, sentences=sentences)
        notices = [*plain.doubts, *([track.notice] if track.notice else [])]
        return replace(track, notice="; ".join(notices) or None)
