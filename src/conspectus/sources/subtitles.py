"""SubRip and WebVTT captions, read leniently: a cue is what follows a line with two times.

Own code, because pysubs2 and webvtt-py drop cues without milliseconds, and mix notes or inner times into
the text (measured on the parsers' own test files); here whatever is left out is counted in a notice.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from conspectus.model.records import NewDocument, Period

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2})(?:[.,:](\d{1,6}))?"
TIMING = re.compile(rf"\s*{TIME}\s*-{{1,2}}>\s*{TIME}(?:\s.*|)")
ASIDE = re.compile(r"(?:\ufeff?WEBVTT|NOTE|STYLE|REGION)(?:\s.*|:.*|)")
SPEAKER = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]+([^<>]+)>")
TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")


@dataclass(slots=True)
class Cue:
    """Seconds from the start, and the lines as they stand in the file."""

    start: float
    end: float
    lines: list[str] = field(default_factory=list)


def read_cues(text: str) -> tuple[list[Cue], int]:
    """All cues of a file with a number of lines that belong to none."""
    cues: list[Cue] = []
    stray = 0
    for block in _blocks(text):
        times = [number for number, line in enumerate(block) if TIMING.fullmatch(line)]
        if times:
            cues.extend(_block_cues(block, times))
            stray += max(0, times[0] - 1)
        elif ASIDE.fullmatch(block[0]):
            continue
        elif cues and not _torn(block):
            cues[-1].lines.extend(block)
        else:
            stray += len(block)
    return cues, stray


def captions(text: str, name: str, title: str) -> tuple[tuple[NewDocument, ...], str | None]:
    """One document for each cue with text, and a notice of what was left out."""
    cues, stray = read_cues(text)
    found = [caption for number, cue in enumerate(cues, 1) if (caption := _caption(cue, number, name, title))]
    return tuple(found), f"{stray} lines belong to no caption and were left out" if stray else None


def _caption(cue: Cue, number: int, name: str, title: str) -> NewDocument | None:
    raw = "\n".join(cue.lines)
    text = html.unescape(TAG.sub("", raw)).strip()
    if not text:
        return None
    speaker = SPEAKER.search(raw)
    start, end = (EPOCH + timedelta(seconds=seconds) for seconds in (cue.start, cue.end))
    return NewDocument(
        text,
        title=title,
        kind="caption",
        key=f"{name}#{number}",
        metadata={"start": cue.start, "end": cue.end},
        author=html.unescape(speaker[1]).strip() if speaker else None,
        occurred=Period(start, end),
        sequence=number,
        thread=name,
    )


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _torn(block: list[str]) -> bool:
    """Whether a block was meant as a cue of its own, but has no times that can be read."""
    return block[0].strip().isdigit() or any("-->" in line for line in block)


def _block_cues(block: list[str], times: list[int]) -> Iterator[Cue]:
    """The cues of a block; a number alone before the next cue's times is that cue's, not text."""
    for here, after in zip(times, [*times[1:], len(block)], strict=True):
        lines = block[here + 1 : after]
        if after < len(block) and lines and lines[-1].strip().isdigit():
            lines.pop()
        start, end = _seconds(block[here])
        yield Cue(start, max(start, end), lines)


def _seconds(line: str) -> tuple[float, float]:
    found = TIMING.fullmatch(line)
    parts = found.groups(default="0") if found else ("0",) * 8
    start, end = (
        int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")
        for hours, minutes, seconds, fraction in (parts[:4], parts[4:])
    )
    return start, end
