"""Scenarist files (SCC): the characters and codes of CEA-608."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.subtitles.cues import NO_CAPTION, Cue, ParsedCues

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
