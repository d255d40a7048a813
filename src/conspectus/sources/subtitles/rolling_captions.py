"""Rolling captions, whose lines are repeated: each line once."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Final

from conspectus.sources.subtitles.cues import Cue, by_track, second_of

MAX_GAP_SHARE: Final = 0.5
MIN_CUES: Final = 3
MIN_TIMED: Final = 1
MIN_SHARE: Final = 0.5
MAX_LINES: Final = 8
"""Maximum number of lines on a screen."""

_REPEATED = "rolling captions, repeated lines removed"


def unroll(cues: list[Cue], skipped: Counter[str]) -> list[Cue]:
    """Return the cues in order, with each line of rolling captions once."""
    unrolled = (cue for track in by_track(cues) for cue in _unroll(track, skipped))
    return sorted(unrolled, key=lambda cue: cue.position)


def _unroll(cues: list[Cue], skipped: Counter[str]) -> list[Cue]:
    lines = [
        [line for text_line in cue.text.split("\n") if (line := " ".join(text_line.split()))] for cue in cues
    ]
    if not _is_rolling(cues, lines):
        return cues
    unrolled: list[Cue] = []
    for number, cue in enumerate(cues):
        soon = number > 0 and _follows_soon(cues[number - 1], cue)
        shared = _count_shared_lines(lines[number - 1], lines[number]) if soon else 0
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
        if _follows_soon(before, cue):
            soon += 1
            rolls += _rolls(lines_before, here) or (before.timed and not cue.timed and lines_before == here)
    fewest = MIN_TIMED if any(cue.timed for cue in cues) else MIN_CUES
    return rolls >= fewest and rolls >= MIN_SHARE * soon


def _rolls(before: list[str], here: list[str]) -> bool:
    shared = _count_shared_lines(before, here)
    return shared > 0 and not shared == len(before) == len(here)


def _follows_soon(before: Cue, cue: Cue) -> bool:
    started, ended, starts = second_of(before.start), second_of(before.end), second_of(cue.start)
    if started is None or ended is None or starts is None:
        return False
    return started <= starts <= ended + MAX_GAP_SHARE


def _count_shared_lines(before: list[str], here: list[str]) -> int:
    """Return how many last lines of one cue are the first lines of the other."""
    longest = min(len(before), len(here), MAX_LINES)
    return next((count for count in range(longest, 0, -1) if before[-count:] == here[:count]), 0)
