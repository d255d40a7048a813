"""SubRip, WebVTT, SubStation Alpha, SAMI and Scenarist (SCC) files."""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.subtitles.sentences import (
    NO_CAPTION,
    NO_TIME,
    Cue,
    ParsedCues,
    clocked,
    spoken,
    without_comments,
)

_TIME = r"(?:(-?\d{1,20}):)?(\d{1,9}):(\d{1,9})(?:[.,:](\d{1,9}))?"
ARROW = re.compile(rf"\s*{_TIME}\s*+-{{1,2}}>\s*+{_TIME}(?:\s.*|)", re.ASCII)
TORN_ARROW = re.compile("-->")
COMMA = re.compile(rf"\s*{_TIME}\s*+,\s*+{_TIME}\s*", re.ASCII)


@dataclass(slots=True)
class Block:
    """Seconds from the start, and the lines of the file."""

    start: float
    end: float
    lines: list[str] = field(default_factory=list)


def never(line: str) -> bool:
    """Return false: the format has no blocks other than captions."""
    return False


@dataclass(frozen=True, slots=True)
class CueFormat:
    """The format of times, valid and invalid ones.

    `is_aside` returns by the first line whether a block is not a caption. `named` means that an identifier
    may precede the times.
    """

    timing: re.Pattern[str]
    torn: re.Pattern[str]
    is_aside: Callable[[str], bool] = never
    named: bool = False


def read_blocks(text: str, form: CueFormat) -> tuple[list[Block], int]:
    """Return all cues of a text with the number of lines outside of cues.

    A block without times continues the cue before it, unless it looks like a cue of its own.
    """
    cues: list[Block] = []
    stray = 0
    for block in _blocks(text):
        times = [number for number, line in enumerate(block) if form.timing.fullmatch(line)]
        if times:
            stray += _before(block[: times[0]], form)
            cues.extend(_cues(block, times, form.timing))
        elif form.is_aside(block[0]):
            continue
        elif cues and not (block[0].strip().isdigit() or any(form.torn.search(line) for line in block)):
            cues[-1].lines.extend(block)
        else:
            stray += len(block)
    return cues, stray


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _before(lines: list[str], form: CueFormat) -> int:
    """Return how many lines above the first times are neither an identifier nor part of a header."""
    if not lines or form.is_aside(lines[0]):
        return 0
    return len(lines) - (form.named or lines[-1].strip().isdigit())


def _cues(block: list[str], times: list[int], timing: re.Pattern[str]) -> Iterator[Block]:
    """Return the cues of a block. A single number before the next cue's times belongs to that cue."""
    for here, after in zip(times, [*times[1:], len(block)], strict=True):
        lines = block[here + 1 : after]
        if after < len(block) and lines and lines[-1].strip().isdigit():
            lines.pop()
        match = timing.fullmatch(block[here])
        parts = match.groups(default="") if match else ("",) * 8
        yield Block(clocked(*parts[:4]), clocked(*parts[4:]), lines)


SUBRIP = CueFormat(ARROW, TORN_ARROW)


def read_subrip(text: str) -> ParsedCues:
    """Return the cues of a SubRip text."""
    blocks, stray = read_blocks(text, SUBRIP)
    reading = ParsedCues()
    for block in blocks:
        for speaker, words in spoken("\n".join(block.lines)):
            reading.cues.append(Cue(block.start, block.end, words, speaker))
    reading.left[NO_CAPTION] += stray
    return reading


_BREAK = re.compile(r"\[br\]", re.IGNORECASE)
_TORN = re.compile(r"^\s*\d+:\d+:\S{1,20},\d+:\d+:\S{1,20}\s*$")
SUBVIEWER = CueFormat(COMMA, _TORN)


def read_subviewer(text: str) -> ParsedCues:
    """Return the cues of an .sbv text."""
    blocks, stray = read_blocks(text, SUBVIEWER)
    reading = ParsedCues()
    for block in blocks:
        reading.cues.append(Cue(block.start, block.end, _BREAK.sub("\n", "\n".join(block.lines)).strip()))
    reading.left[NO_CAPTION] += stray
    return reading


_ASIDE = re.compile(r"(?:\ufeff?WEBVTT|NOTE|STYLE|REGION)(?:\s.*|:.*|)", re.DOTALL)
_TITLE = re.compile(r"\ufeff?WEBVTT[ \t]+(?:-[ \t]*)?(\S.*)")
_WORD = re.compile(r"<\d[\d:.]*><c")
_FIELD = re.compile(r"(Title|Language)[ \t]*:[ \t]*(\S.*)", re.IGNORECASE)

WEBVTT = CueFormat(ARROW, TORN_ARROW, lambda line: _ASIDE.fullmatch(line) is not None, named=True)


def read_webvtt(text: str) -> ParsedCues:
    """Return the cues of a WebVTT text. A cue with several speakers becomes one cue for each."""
    blocks, stray = read_blocks(text, WEBVTT)
    reading = ParsedCues()
    for block in blocks:
        raw = "\n".join(block.lines)
        timed = _WORD.search(raw) is not None
        for speaker, words in spoken(raw):
            reading.cues.append(Cue(block.start, block.end, words, speaker, timed=timed))
    reading.left[NO_CAPTION] += stray
    reading.title, reading.language = _header(text)
    return reading


def _header(text: str) -> tuple[str, str | None]:
    """Return the title and the language in the lines before the first blank one."""
    lines = text[:10_000].partition("\n\n")[0].split("\n")
    named = _TITLE.match(lines[0])
    header_fields = {
        match[1].lower(): match[2].strip() for line in lines if (match := _FIELD.fullmatch(line))
    }
    return header_fields.get("title") or (named[1].strip() if named else ""), header_fields.get("language")


_ADVANCED = "layer,start,end,style,name,marginl,marginr,marginv,effect,text"
_ASS_TIME = re.compile(r"\s*(-?\d{1,20}):(\d{1,9}):(\d{1,9})(?:[.:,](\d{1,9}))?\s*", re.ASCII)
_BLOCK = re.compile(r"(?<!\\)\{([^{}]*)\}")
_DRAWING = re.compile(r"\\p(\d+)(?![^\\}])")
_ESCAPED = re.compile(r"\\([Nnh{}])")
_MEANING: Mapping[str, str] = {"N": "\n", "n": "\n", "h": " "}
_UNTITLED = frozenset({"<untitled>", "default aegisub file", "default file"})


@dataclass(slots=True)
class _Script:
    """The parser state: the section, and the fields of an event."""

    reading: ParsedCues = field(default_factory=ParsedCues)
    section: str = ""
    fields: tuple[str, ...] = tuple(_ADVANCED.split(","))

    def line(self, line: str) -> None:
        if line.startswith("[") and line.endswith("]"):
            self.section = line[1:-1].strip().lower()
            return
        kind, colon, rest = line.partition(":")
        kind = kind.strip().lower()
        if self.section == "script info" and kind == "title":
            self.reading.title = "" if rest.strip().lower() in _UNTITLED else rest.strip()
        elif self.section == "events" and not line.startswith(";"):
            self._event(kind if colon else "", rest)

    def _event(self, kind: str, rest: str) -> None:
        if kind == "format":
            self.fields = tuple(name.strip().lower() for name in rest.split(","))
        elif kind == "dialogue":
            self._dialogue(rest)
        elif kind == "comment":
            self.reading.left["comments, skipped"] += 1
        elif kind or rest.strip():
            self.reading.left[NO_CAPTION] += 1

    def _dialogue(self, rest: str) -> None:
        values = rest.split(",", len(self.fields) - 1)
        event = dict(zip(self.fields, values, strict=False))
        start, end = (_seconds(event.get(name, "")) for name in ("start", "end"))
        if start is None or end is None:
            self.reading.left[NO_TIME] += 1
            start = end = None
        text, drawn = _plain_text(event.get("text", ""))
        if drawn and not text:
            self.reading.left["drawings, skipped"] += 1
            return
        speaker = (event.get("name") or event.get("actor") or "").strip() or None
        self.reading.cues.append(Cue(start, end, text, speaker))


def read_ass(text: str) -> ParsedCues:
    """Return the captions of a script in the order of time, as players show them."""
    script = _Script()
    for line in text.split("\n"):
        if line.strip():
            script.line(line.strip())
    script.reading.cues.sort(key=lambda cue: cue.start if isinstance(cue.start, float) else float("inf"))
    return script.reading


def _seconds(time: str) -> float | None:
    match = _ASS_TIME.fullmatch(time)
    return clocked(*match.groups(default="")) if match else None


def _plain_text(text: str) -> tuple[str, bool]:
    """Return the text without override blocks and drawings, and whether there was a drawing."""
    parts = _BLOCK.split(text)
    visible, drawing, drawn = [parts[0]], False, False
    for override, words in zip(parts[1::2], parts[2::2], strict=True):
        scales = _DRAWING.findall(override)
        drawing = scales[-1].strip("0") != "" if scales else drawing
        drawn = drawn or drawing
        if not drawing:
            visible.append(words)
    plain = _ESCAPED.sub(lambda match: _MEANING.get(match[1], match[1]), "".join(visible))
    return plain.strip(), drawn


_TAG = re.compile(r"<(/?[A-Za-z][^<>]*|![^<>]*)>")
_ATTRIBUTE = re.compile(r"([A-Za-z]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))")
_CLASS = re.compile(r"\.([\w-]+)\s*\{([^{}]*)\}")
_LANGUAGE = re.compile(r"(?:^|[;\s])lang\s*:\s*([\w-]+)", re.IGNORECASE)
_SAMI_TITLE = re.compile(r"<title>([^<]*)</title>", re.IGNORECASE)
_BREAKS = frozenset({"br", "br/", "div", "/div", "/p"})
_MILLISECONDS = re.compile(r"-?\d{1,15}", re.ASCII)


@dataclass(slots=True)
class _Track:
    """The caption of a class that is on the screen."""

    start: float | None = None
    words: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Sami:
    """The parser state: the time of the last SYNC, the class of the last P, and all tracks."""

    languages: dict[str, str]
    reading: ParsedCues
    now: float | None = None
    inside: bool = False
    name: str = ""
    tracks: dict[str, _Track] = field(default_factory=dict)

    def tag(self, tag: str) -> None:
        name = tag.split(None, 1)[0].lower()
        if name == "sync":
            self._sync(tag)
        elif name == "p" and self.inside:
            self.name = _attributes(tag).get("class", "").lower()
            self._begin()
        elif name in _BREAKS and self.inside:
            self._track().words.append("\n")
        elif name in {"/body", "/sami"}:
            self.inside = False

    def text(self, text: str) -> None:
        words = " ".join(html.unescape(text).split())
        if self.inside and words:
            self._track().words.append(f" {words} ")

    def _sync(self, tag: str) -> None:
        start = _attributes(tag).get("start", "").removesuffix("ms").strip()
        if _MILLISECONDS.fullmatch(start):
            self.now = int(start) / 1000
        else:
            self.reading.left[NO_TIME] += 1
            self.now = None
        self.inside, self.name = True, ""

    def _track(self) -> _Track:
        return self.tracks[self.name] if self.name in self.tracks else self._begin()

    def _begin(self) -> _Track:
        """Clear what the class showed before."""
        track = self.tracks.get(self.name)
        if track is not None and (track.start != self.now or self.now is None):
            self._close(self.name, track, self.now)
            track = None
        self.tracks[self.name] = track or _Track(self.now)
        return self.tracks[self.name]

    def _close(self, name: str, track: _Track, end: float | None) -> None:
        lines = (" ".join(line.split()) for line in "".join(track.words).split("\n"))
        text = "\n".join(line for line in lines if line)
        if text:
            language = self.languages.get(name) if len(self.languages) > 1 else None
            metadata = {"language": language} if language else {}
            end = None if track.start is None else end
            self.reading.cues.append(Cue(track.start, end, text, track=name, metadata=metadata))

    def close(self) -> None:
        for name, track in self.tracks.items():
            self._close(name, track, None)


def read_sami(text: str) -> ParsedCues:
    """Return the captions of all classes in the order of time. The last ones have no end."""
    named = ((name.lower(), _LANGUAGE.search(style)) for name, style in _CLASS.findall(text[:100_000]))
    languages = {name: match[1] for name, match in named if match}
    title = _SAMI_TITLE.search(text[:100_000])
    reading = ParsedCues(title=html.unescape(title[1]).strip() if title else "")
    sami = _Sami(languages, reading)
    for number, part in enumerate(_TAG.split(without_comments(text))):
        (sami.tag if number % 2 else sami.text)(part)
    sami.close()
    reading.cues.sort(key=lambda cue: cue.start if isinstance(cue.start, float) else float("inf"))
    reading.language = next(iter(languages.values())) if len(languages) == 1 else None
    return reading


def _attributes(tag: str) -> dict[str, str]:
    return {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(tag[:1000])}


PLAIN: Final[Mapping[int, str]] = {
    0x27: "\u2019", 0x2A: "á", 0x5C: "é", 0x5E: "í", 0x5F: "ó", 0x60: "ú", 0x7B: "ç", 0x7C: "÷", 0x7D: "Ñ",
    0x7E: "ñ", 0x7F: "█",
}  # fmt: skip
SPECIAL: Final = "®°½¿™¢£♪à èâêîôû"
"""Special characters: codes 0x30 to 0x3F after 0x11."""
EXTENDED: Final = (
    "ÁÉÓÚÜü\u2018¡*'—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»"
    "ÃãÍÌìÒòÕõ{}\\^_|~ÄäÖöß¥¤¦ÅåØø┌┐└┘"
)  # fmt: skip
"""Extended characters: codes 0x20 to 0x3F after 0x12 and 0x13. Each replaces the previous character."""


_LINE = re.compile(r"\s*(\d{1,9}):(\d{1,9}):(\d{1,9})([:;.,])(\d{1,9})\s+(\S.*)", re.ASCII)
_SCC_WORD = re.compile(r"[0-9A-Fa-f]{4}")
_ROWS = {0: 11, 1: 1, 2: 3, 3: 12, 4: 14, 5: 5, 6: 7, 7: 9}
_LAST_COLUMN = 31
_UNREADABLE = "invalid codes, skipped"


Screen: TypeAlias = dict[int, dict[int, str]]
"""The characters of one memory by row and column."""


@dataclass(slots=True)
class CaptionChannel:
    """One of the two caption channels: its mode, cursor, displayed and non-displayed memory."""

    track: str
    reading: ParsedCues
    mode: str = "pop"
    row: int = 14
    column: int = 0
    displayed: Screen = field(default_factory=dict)
    hidden: Screen = field(default_factory=dict)
    since: float = 0.0

    def write(self, character: str, now: float) -> None:
        """Write one character at the cursor."""
        if self.mode == "text":
            self.reading.left["teletext characters, skipped"] += 1
            return
        if self.mode != "pop" and not self.displayed:
            self.since = now
        self._screen().setdefault(self.row, {})[self.column] = character
        self.column = min(self.column + 1, _LAST_COLUMN)

    def back(self) -> None:
        """Delete the character before the cursor."""
        self.column = max(self.column - 1, 0)
        self._screen().get(self.row, {}).pop(self.column, None)

    def move(self, row: int, column: int) -> None:
        """Move the cursor. Roll-up captions have a fixed row."""
        self.row, self.column = row if self.mode != "roll" else self.row, column

    def command(self, code: int, now: float) -> None:
        """Execute a control code of the group 0x14."""
        if 0x25 <= code <= 0x27:
            self._roll(now)
        elif code in _MODES:
            self.mode = _MODES[code]
        elif code == 0x21:
            self.back()
        elif code == 0x24:
            cells = self._screen().get(self.row, {})
            self._screen()[self.row] = {at: one for at, one in cells.items() if at < self.column}
        elif code == 0x2C or (code == 0x2D and self.mode == "roll"):
            self.clear(now)
        elif code == 0x2E:
            self.hidden = {}
        elif code == 0x2F:
            self.mode = "pop"
            prepared = self.hidden
            self.clear(now)
            self.displayed, self.hidden, self.since = prepared, {}, now

    def clear(self, now: float | None) -> None:
        """Clear the display, which completes a caption."""
        text = _text(self.displayed)
        if text:
            self.reading.cues.append(Cue(self.since, now, text, track=self.track))
        self.displayed = {}
        if self.mode == "roll":
            self.column = 0

    def _roll(self, now: float) -> None:
        if self.mode != "roll":
            self.clear(now)
            self.mode, self.column = "roll", 0

    def _screen(self) -> Screen:
        return self.hidden if self.mode == "pop" else self.displayed


_MODES = {0x20: "pop", 0x29: "paint", 0x2A: "text", 0x2B: "text"}


@dataclass(slots=True)
class _Player:
    """The state of both channels, the current channel, and the previous code, since codes are sent twice."""

    channels: tuple[CaptionChannel, CaptionChannel]
    current: int = 0
    before: tuple[int, int] | None = None

    def play(self, first: int, second: int, now: float) -> None:
        if not 0x10 <= first <= 0x1F:
            self.before = None
            for code in (first, second):
                if code >= 0x20:
                    self.channels[self.current].write(PLAIN.get(code, chr(code)), now)
            return
        if (first, second) == self.before:
            self.before = None
            return
        self.before = (first, second)
        self.current = (first >> 3) & 1
        self._control(first & 0xF7, second, now)

    def _control(self, group: int, code: int, now: float) -> None:
        channel = self.channels[self.current]
        if code >= 0x40:
            row = _ROWS[group & 7] + (1 if code & 0x20 and group != 0x10 else 0)
            channel.move(row, (code & 0x0E) * 2 if code & 0x10 else 0)
        elif group == 0x11:
            channel.write(SPECIAL[code - 0x30] if code >= 0x30 else " ", now)
        elif group in {0x12, 0x13}:
            channel.back()
            channel.write(EXTENDED[(group - 0x12) * 32 + code - 0x20], now)
        elif group in {0x14, 0x15}:
            channel.command(code, now)
        elif group == 0x17 and 0x21 <= code <= 0x23:
            channel.column = min(channel.column + code - 0x20, _LAST_COLUMN)


def read_scc(text: str) -> ParsedCues:
    """Return the captions of both channels. A caption lasts until the screen changes."""
    reading = ParsedCues()
    player = _Player((CaptionChannel("", reading), CaptionChannel("2", reading)))
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match:
            _play(player, match, reading)
        elif line.strip() and not line.lstrip("\ufeff").startswith("Scenarist_SCC"):
            reading.left[NO_CAPTION] += 1
    for channel in player.channels:
        channel.clear(None)
        if _text(channel.hidden):
            reading.left["captions that are never shown, skipped"] += 1
    reading.cues.sort(key=lambda cue: cue.start if isinstance(cue.start, float) else 0.0)
    return reading


def _play(player: _Player, line: re.Match[str], reading: ParsedCues) -> None:
    frame = _frame(*(int(part) for part in line.group(1, 2, 3, 5)), dropped=line[4] != ":")
    for number, word in enumerate(line[6].split()):
        if not _SCC_WORD.fullmatch(word):
            reading.left[_UNREADABLE] += 1
            continue
        first, second = int(word[:2], 16) & 0x7F, int(word[2:], 16) & 0x7F
        if 0x10 <= first <= 0x1F and second < 0x20:
            reading.left[_UNREADABLE] += 1
            continue
        player.play(first, second, round((frame + number) * 1001 / 30_000, 3))


def _frame(hours: int, minutes: int, seconds: int, frames: int, *, dropped: bool) -> int:
    """Return the frame number. Drop-frame timecodes skip two numbers in nine of ten minutes."""
    passed = hours * 60 + minutes
    number = (passed * 60 + seconds) * 30 + frames
    return number - 2 * (passed - passed // 10) if dropped else number


def _text(screen: Screen) -> str:
    """Return the rows as lines."""
    rows = (screen[row] for row in sorted(screen))
    lines = ("".join(row.get(at, " ") for at in range(max(row, default=-1) + 1)) for row in rows)
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
