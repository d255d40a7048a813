"""Blocks of lines with times: SubRip, SubViewer and WebVTT files."""

import re
from collections.abc import Callable, Iterator
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.sources.subtitles.cues import NO_CAPTION, Cue, ParsedCues, split_speakers, to_seconds

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
        yield Block(to_seconds(*parts[:4]), to_seconds(*parts[4:]), lines)


SUBRIP = CueFormat(ARROW, TORN_ARROW)


def read_subrip(text: str) -> ParsedCues:
    """Return the cues of a SubRip text."""
    blocks, stray = read_blocks(text, SUBRIP)
    reading = ParsedCues()
    for block in blocks:
        for speaker, words in split_speakers("\n".join(block.lines)):
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
        for speaker, words in split_speakers(raw):
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
