"""Rolling captions: each repeats the lines before it and adds one, so that every line stands there twice.

The rule, for the captions of one track. A caption *rolls* when it begins at most half a second after the one
before it ended (or while that is shown), its first lines are the last lines of that one, word for word, and
it either adds a line, or no longer shows the first line of that one, or no longer has the times of words that
that one has. Captions are rolling when at least three of them roll (one is enough where words have times),
and at least half of those that begin so soon after another. Then every line is taken once, from when it was
first shown until the next begins. A chorus shows the same lines again, neither more nor fewer, and is left
alone.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Final

from conspectus.sources.subtitles.cues import Cue, by_track, second_of

MOST_BETWEEN: Final = 0.5
FEWEST: Final = 3
FEWEST_TIMED: Final = 1
LEAST_SHARE: Final = 0.5
MOST_LINES: Final = 8
"""More lines than that no screen shows."""

_REPEATED = "rolling captions that repeat lines of the one before, each line taken once"


def unroll(cues: list[Cue], left: Counter[str]) -> list[Cue]:
    """The cues with every line of rolling captions once; all others are as they were, in their order."""
    found = (cue for track in by_track(cues) for cue in _unrolled(track, left))
    return sorted(found, key=lambda cue: cue.place)


def _unrolled(cues: list[Cue], left: Counter[str]) -> list[Cue]:
    lines = [_lines(cue) for cue in cues]
    if not _is_rolling(cues, lines):
        return cues
    taken: list[Cue] = []
    for number, cue in enumerate(cues):
        soon = number > 0 and _soon(cues[number - 1], cue)
        shared = _shared(lines[number - 1], lines[number]) if soon else 0
        left[_REPEATED] += shared > 0
        if shared:
            taken[-1].end = _later(taken[-1], cue)
        added = lines[number][shared:]
        if added:
            taken.append(_with(cue, added))
    for one, after in pairwise(taken):
        _end_before(one, after)
    return taken


def _is_rolling(cues: list[Cue], lines: list[list[str]]) -> bool:
    soon = rolls = 0
    for (before, cue), (shown, here) in zip(pairwise(cues), pairwise(lines), strict=True):
        if _soon(before, cue):
            soon += 1
            rolls += _rolls(shown, here) or (before.timed and not cue.timed and shown == here)
    fewest = FEWEST_TIMED if any(cue.timed for cue in cues) else FEWEST
    return rolls >= fewest and rolls >= LEAST_SHARE * soon


def _rolls(before: list[str], here: list[str]) -> bool:
    shared = _shared(before, here)
    return shared > 0 and not shared == len(before) == len(here)


def _soon(before: Cue, cue: Cue) -> bool:
    started, ended, starts = second_of(before.start), second_of(before.end), second_of(cue.start)
    if started is None or ended is None or starts is None:
        return False
    return started <= starts <= ended + MOST_BETWEEN


def _shared(before: list[str], here: list[str]) -> int:
    """How many of the last lines of one are the first lines of the other."""
    longest = min(len(before), len(here), MOST_LINES)
    return next((count for count in range(longest, 0, -1) if before[-count:] == here[:count]), 0)


def _lines(cue: Cue) -> list[str]:
    return [line for each in cue.text.split("\n") if (line := " ".join(each.split()))]


def _with(cue: Cue, lines: list[str]) -> Cue:
    return replace(cue, text="\n".join(lines))


def _later(one: Cue, cue: Cue) -> float | str | None:
    """The end of whichever of two cues ends later."""
    ends, others = second_of(one.end), second_of(cue.end)
    return cue.end if ends is not None and others is not None and others > ends else one.end


def _end_before(one: Cue, after: Cue) -> None:
    ends, starts, others = second_of(one.end), second_of(one.start), second_of(after.start)
    if ends is not None and starts is not None and others is not None and starts <= others < ends:
        one.end = after.start
