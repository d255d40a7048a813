"""Cues, the common form of all subtitles, and sentences across them, with the exact times of their cues.

A sentence ends at a sentence terminator of its language (unless a lower-case letter follows), at a change of
speaker, before a pause, and before it exceeds the limits. Text without punctuation, as in automatic captions,
is split at shorter pauses and lengths. Only white space is changed.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Final, Literal

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.captions import NewCaption
from conspectus.text.graphemes import last_border
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


def clocked(hours: str, minutes: str, seconds: str, fraction: str = "") -> float:
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


def spoken(raw: str) -> Iterator[tuple[str | None, str]]:
    """Return the text of each speaker with the name; one part without a name if there are no speakers."""
    first, *rest = _VOICE.split(raw)
    speaker: str | None = None
    text = first
    for name, words in zip(rest[::2], rest[1::2], strict=True):
        named = html.unescape(name).strip() or None
        if speaker is not None and named != speaker and plain(text):
            yield speaker, plain(text)
            text = ""
        speaker, text = named or speaker, text + words
    yield speaker, plain(text)


def plain(raw: str) -> str:
    """Return the text without its markup."""
    return html.unescape(_TAG.sub("", raw)).strip()


def without_comments(text: str) -> str:
    """Return SGML or XML without comments. An unclosed comment extends to the end."""
    first, *rest = text.split("<!--")
    return first + "".join(part.partition("-->")[2] for part in rest)


End = Literal["none", "open", "closed"]
"""How a piece of text ends: within a sentence, at a terminator that may be an abbreviation, or for good."""

_CLOSERS = "\"'\u201d\u2019\u00bb\u203a)\\]\u3011\u300d\u300f\uff09\u300b\u3009♪"
_MARKS = "\u2026.!?\u203d\u061f\u06d4\u0964\u0965\u1362\u0589။\u17d6"
_WIDE = "\u3002\uff01\uff1f\uff61\ufe12"
_END = re.compile(
    rf"(?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+(?=\s|$)"
    rf"|(?<=[!?])[{_CLOSERS}]*+(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
    rf"|(?<![{_WIDE}])[{_WIDE}]++(?:[{_CLOSERS}]++(?=\s|$)|(?![{_CLOSERS}]))"
)
_BEFORE_NAMES = (
    r"mrs?|ms|mme|mlle|dr|prof|st|vs|cf|sen|gov|gen|col|lt|capt|rev|hon|e\.g|i\.e"
    r"|bzw|z\.b|d\.h|ca|sra?|srta|ing|lic"
)
_BEFORE_NUMBERS = r"no|nr|fig|figs|eq|vol|pp?|ch|sec|approx|ст|гл|рис"
_BEFORE = r"(?:^|[\s(\[\"'\u201c\u2018\u00ab])"
_NAMING = re.compile(rf"{_BEFORE}(?:{_BEFORE_NAMES})\.$", re.IGNORECASE)
_NUMBERING = re.compile(rf"{_BEFORE}(?:{_BEFORE_NUMBERS})\.$", re.IGNORECASE)
_INITIAL = re.compile(r"(?:^|[A-ZÀ-ÖØ-Þ][\w.\u2019'-]*\s)[A-HJ-ZÀ-ÖØ-Þ]\.$")
_GOES_ON = re.compile(r"[\s\"'\u201c\u2018\u00ab(\[\u00bf\u00a1-]*+([^\W\d_])")
_LABEL = r"[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ0-9 .'&-]{1,29}:(?=\s|$)"
_SOUND = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\)|\u3010[^\u3010\u3011]*\u3011|♪[^♪]*♪)\s*")
_SPEAKS = re.compile(
    rf"\s*(?:>>+|{_LABEL}|[-\u2010\u2013\u2014]\s*(?=[^\W\d_]|[\u00bf\u00a1\"\u201c\u00ab]))"
)
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
)
_LOOK_BACK = 24
_SAMPLE: Final = 200_000


@dataclass(frozen=True, slots=True)
class Script:
    """The writing of a text: whether it has letter case, and whether it has punctuation."""

    cased: bool
    marked: bool

    @classmethod
    def of(cls, text: str) -> "Script":
        """Detect the writing at the start of a text: 1 capital in 200 letters, 1 mark in 400 characters."""
        sample = text[:_SAMPLE]
        capitals = sum(map(str.isupper, sample))
        small = sum(map(str.islower, sample))
        marks = sum(map(sample.count, _MARKS + _WIDE))
        return cls(capitals * 200 >= capitals + small, marks * 400 >= len(sample))


def pieces(text: str, script: Script) -> Iterator[tuple[str, End]]:
    """Return the text split after each sentence, without white space between; the last may be incomplete."""
    if is_sound(text):
        yield text, "closed"
        return
    begin = 0
    for match in _END.finditer(text):
        end = match.end()
        if end == begin or _is_short(text, end):
            continue
        if not match[0] or match[0][0] in _WIDE:
            yield text[begin:end].strip(), "closed"
        elif end == len(text):
            yield text[begin:].strip(), "open"
            return
        elif not goes_on(text[end : end + _LOOK_BACK], script):
            yield text[begin:end].strip(), "closed"
        else:
            continue
        begin = end
    if rest := text[begin:].strip():
        yield rest, "none"


def goes_on(text: str, script: Script) -> bool:
    """Return whether a text begins with a lower-case letter and may continue a sentence."""
    match = _GOES_ON.match(text)
    return script.cased and match is not None and match[1].islower()


def turns(text: str, script: Script) -> Iterator[tuple[str, bool]]:
    """The joined lines of a caption, without those of another speaker:

    then the second value is true. A line in brackets is separate, as it is not speech.
    """
    joined: list[str] = []
    other = False
    for line in text.split("\n"):
        alone = is_sound(line)
        if alone or (joined and is_sound(joined[-1])) or _begins_turn(line, script):
            yield flat(joined), other
            joined, other = [], alone or _begins_turn(line, script)
        joined.append(line)
    yield flat(joined), other


def is_sound(text: str) -> bool:
    """Return whether a line is a sound description: entirely in brackets, or between notes."""
    return _SOUND.fullmatch(text) is not None


def _begins_turn(line: str, script: Script) -> bool:
    begins = _SPEAKS.match(line)
    if begins is None:
        return False
    return begins[0].rstrip()[-1:] in {">", ":"} or not goes_on(line[begins.end() :], script)


def flat(lines: list[str]) -> str:
    """Return the lines joined, with white space collapsed."""
    parts = [part for line in lines if (part := " ".join(line.split()))]
    if not parts:
        return ""
    joined = [parts[0]]
    for before, part in pairwise(parts):
        joined.append(space_between(before, part))
        joined.append(part)
    return "".join(joined)


def space_between(before: str, after: str) -> str:
    """Return a space, or nothing between two scripts that are written without spaces."""
    if not before or not after or (_NO_SPACES.match(before[-1]) and _NO_SPACES.match(after[0])):
        return ""
    return " "


def _is_short(text: str, end: int) -> bool:
    """Return whether the full stop at that position belongs to an abbreviation or an initial."""
    before = text[max(0, end - _LOOK_BACK) : end]
    if not before.endswith("."):
        return False
    if text[end : end + 2].lstrip()[:1].isdigit() and _NUMBERING.search(before):
        return True
    return bool(_NAMING.search(before) or _INITIAL.search(before))


CUES: Final = "cues"
"""Metadata field of a sentence: [offset in characters, start, end] of each of its cues, in order."""


@dataclass(frozen=True, slots=True)
class SentenceLimits:
    """Maximum characters and seconds of a sentence, and the longest pause inside, in seconds."""

    characters: int
    seconds: float
    pause: float


MARKED: Final = SentenceLimits(500, 60.0, 4.0)
UNMARKED: Final = SentenceLimits(200, 20.0, 1.0)


def sentences(cues: Iterable[Cue], name: str) -> tuple[NewCaption, ...]:
    """Return the sentences of the cues by track, numbered from 1. Keys have the prefix `name`."""
    counts: Counter[object] = Counter()
    captions: list[NewCaption] = []
    for track in by_track(list(cues)):
        for sentence in _of_track(track):
            video = video_of(sentence.marks[0][1])
            counts[video] += 1
            captions.append(sentence.caption(counts[video], f"{name}#{len(captions) + 1}"))
    return tuple(captions)


@dataclass(slots=True)
class _Sentence:
    """A sentence under construction: its pieces, and their cues with offsets."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    marks: list[tuple[int, Cue]] = field(default_factory=list)
    end: End = "none"

    def add(self, piece: str, cue: Cue, end: End) -> None:
        space = space_between(self.parts[-1], piece) if self.parts else ""
        if not self.marks or self.marks[-1][1] is not cue:
            self.marks.append((self.length + len(space), cue))
        self.parts.extend((space, piece) if space else (piece,))
        self.length += len(space) + len(piece)
        self.end = end

    def takes(self, piece: str, cue: Cue, script: Script, limits: SentenceLimits) -> bool:
        """Return whether a piece still belongs to the sentence."""
        if not self.parts:
            return True
        last = self.marks[-1][1]
        if self.end == "closed" or (self.end == "open" and not goes_on(piece, script)):
            return False
        if self.length + 1 + len(piece) > limits.characters or cue.speaker != last.speaker:
            return False
        return cue is last or self._is_near(last, cue, limits)

    def _is_near(self, last: Cue, cue: Cue, limits: SentenceLimits) -> bool:
        """Return whether the next cue follows soon, not before the last one, and within the length limit."""
        starts, before = second_of(cue.start), second_of(last.start)
        first = second_of(self.marks[0][1].start)
        if starts is None or before is None or first is None:
            return starts is None and before is None
        ended = second_of(last.end)
        soon = starts - (before if ended is None else ended) <= limits.pause
        ends = second_of(cue.end)
        return soon and before <= starts and (starts if ends is None else ends) - first <= limits.seconds

    def caption(self, number: int, key: str) -> NewCaption:
        first, last = self.marks[0][1], self.marks[-1][1]
        marks: list[list[int | Time]] = [[offset, cue.start, cue.end] for offset, cue in self.marks]
        return NewCaption(
            "".join(self.parts),
            start=first.start,
            end=last.end,
            index=number,
            key=key,
            speaker=first.speaker,
            entities=tuple(dict.fromkeys(entity for _, cue in self.marks for entity in cue.entities)),
            metadata={**_common([cue.metadata for _, cue in self.marks]), CUES: marks},
        )


def _of_track(cues: list[Cue]) -> Iterator[_Sentence]:
    script = Script.of("\n".join(cue.text for cue in cues[:5_000]))
    limits = MARKED if script.marked else UNMARKED
    current = _Sentence()
    for cue in cues:
        for piece, end, other in _pieces(cue, script, limits):
            if current.parts and (other or not current.takes(piece, cue, script, limits)):
                yield current
                current = _Sentence()
            current.add(piece, cue, end)
    if current.parts:
        yield current


def _pieces(cue: Cue, script: Script, limits: SentenceLimits) -> Iterator[tuple[str, End, bool]]:
    """Return the pieces of a cue, how each ends, and whether the speaker changes."""
    for turn, other in turns(cue.text, script):
        begins = other
        for piece, end in pieces(turn, script):
            *longer, last = _cut(piece, limits.characters)
            for part in longer:
                yield part, "closed", begins
                begins = False
            yield last, end, begins
            begins = False


def _cut(text: str, maximum: int) -> Iterator[str]:
    """Split the text into parts of limited length, at white space if there is any."""
    begin = 0
    while len(text) - begin > maximum:
        space = text.rfind(" ", begin + 1, begin + maximum + 1)
        end = space if space > begin else last_border(text, begin + maximum, begin)
        end = end if end > begin else begin + maximum
        yield text[begin:end].strip()
        begin = end
    yield text[begin:].strip()


def _common(metadata: list[Mapping[str, object]]) -> Mapping[str, object]:
    """Return the values that the cues have in common."""
    first, *others = metadata
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
