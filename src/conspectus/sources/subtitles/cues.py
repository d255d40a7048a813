"""Cues, the common form of all subtitles."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.records import ReadBy
from conspectus.text.times import parse_instant

Time = float | str | None
"""Seconds from the start of the recording, an ISO 8601 instant as in the file, or unknown."""

_DATED = re.compile(r"\d{4}-|\d{8}T\d{4}", re.ASCII)
VIDEO = "video"
"""Metadata field of captions in a file of several recordings: the name of the recording."""

NO_TEXT = "captions without text, skipped"
NO_CAPTION = "lines outside of captions, skipped"
NO_TIME = "captions with invalid times, kept without times"


@dataclass(slots=True)
class Cue:
    """One caption of a file. `track` distinguishes parallel sequences: languages, channels, recordings.

    `position` counts the cues of the file from 1; `number` is the number in its recording. `timed` means that
    the file has times for individual words.
    """

    start: Time
    end: Time
    text: str
    speaker: str | None = None
    track: str = ""
    number: int | None = None
    entities: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    timed: bool = False
    position: int = 0
    key: str | None = None
    vector: tuple[float, ...] | None = None
    read_by: ReadBy = "text"


@dataclass(slots=True)
class ParsedCues:
    """The cues of a file in order, its title and language, and the counts of skipped items by reason.

    `numbered` means that the file numbers its cues uniquely.
    """

    cues: list[Cue] = field(default_factory=list)
    title: str = ""
    language: str | None = None
    numbered: bool = False
    left: Counter[str] = field(default_factory=Counter)

    def notice(self) -> str | None:
        """Return one line for users; None if there is nothing to report."""
        return "; ".join(f"{reason}: {count}" for reason, count in self.left.items() if count) or None


def to_seconds(hours: str, minutes: str, seconds: str, fraction: str = "") -> float:
    """Return the seconds of a timecode's fields, exact to the microsecond. A sign may precede the hours."""
    whole_seconds = (int(hours.lstrip("-") or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    total = (whole_seconds * 1_000_000 + int((fraction or "0")[:6].ljust(6, "0"))) / 1_000_000
    return -total if hours.startswith("-") else total


def second_of(time: Time) -> float | None:
    """Return the time that all times on a line share; None if it is unknown."""
    return parse_instant(time).timestamp() if isinstance(time, str) else time


def is_instant(text: str) -> bool:
    """Return whether a text is an ISO 8601 instant, and not a number."""
    if not _DATED.match(text):
        return False
    try:
        parse_instant(text)
    except InvalidInput:
        return False
    return True


def video_of(cue: Cue) -> object:
    """Return the recording that a cue belongs to."""
    return cue.metadata.get(VIDEO)


def by_track(cues: list[Cue]) -> Iterator[list[Cue]]:
    """Group the cues by track, in order of first appearance."""
    tracks: dict[str, list[Cue]] = {}
    for cue in cues:
        tracks.setdefault(cue.track, []).append(cue)
    return iter(tracks.values())


_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]++([^<>]+)>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")


def split_speakers(raw: str) -> Iterator[tuple[str | None, str]]:
    """Return the text of each speaker with the name; one part without a name if there are no speakers."""
    first, *rest = _VOICE.split(raw)
    speaker: str | None = None
    text = first
    for name, words in zip(rest[::2], rest[1::2], strict=True):
        named = html.unescape(name).strip() or None
        if speaker is not None and named != speaker and strip_markup(text):
            yield speaker, strip_markup(text)
            text = ""
        speaker, text = named or speaker, text + words
    yield speaker, strip_markup(text)


def strip_markup(raw: str) -> str:
    """Return the text without its markup."""
    return html.unescape(_TAG.sub("", raw)).strip()


def without_comments(text: str) -> str:
    """Return SGML or XML without comments. An unclosed comment extends to the end."""
    first, *rest = text.split("<!--")
    return first + "".join(part.partition("-->")[2] for part in rest)
