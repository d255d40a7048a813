"""Times of TTML: clock times, offsets, frames and ticks, each counted from where its parent begins."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_CLOCK = re.compile(r"(\d{1,20}):(\d{1,9}):(\d{1,9})(?:[.,](\d{1,9})|[:;](\d{1,9})(?:\.\d{1,9})?)?", re.ASCII)
_OFFSET = re.compile(r"(-?\d{1,20})(?:\.(\d{1,9}))?(h|ms|m|s|f|t)?", re.ASCII)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Interval:
    """When something plays, as exact seconds; None is open."""

    start: Fraction | None = None
    end: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """How many frames and ticks a second has in a document."""

    frames: Fraction
    ticks: Fraction

    @classmethod
    def of(cls, root: Mapping[str, str]) -> "Clock":
        """What the attributes of the root element say; what cannot be read is as if it were missing."""
        rate = _number(root.get("frameRate", ""), 30)
        parts = (root.get("frameRateMultiplier", "")).replace(":", " ").split()
        up, down = (_number(part, 1) for part in parts) if len(parts) == 2 else (1, 1)
        inner = _number(root.get("subFrameRate", ""), 1)
        ticks = _number(root.get("tickRate", ""), rate * inner if "frameRate" in root else 1)
        return cls(Fraction(rate * up, down), Fraction(ticks))

    def interval(self, given: Mapping[str, str], outer: Interval) -> tuple[Interval, bool]:
        """When an element plays inside of another, and whether all its times could be read."""
        named = [given[name] for name in ("begin", "start", "t") if name in given][:1]
        ends = [given["end"]] if "end" in given else []
        lasts = [given[name] for name in ("dur", "d") if name in given][:1]
        unit = "ms" if "t" in given and "begin" not in given and "start" not in given else "s"
        times = [self.seconds(value, unit) for value in (*named, *ends, *lasts)]
        if None in times:
            return outer, False
        found = iter([time for time in times if time is not None])
        base = outer.start or Fraction(0)
        start = base + next(found) if named else outer.start
        end = base + next(found) if ends else None
        if lasts:
            until = (start or base) + next(found)
            end = until if end is None else min(end, until)
        return Interval(start, _earlier(end, outer.end)), True

    def seconds(self, text: str, unit: str = "s") -> Fraction | None:
        """The seconds of a time; `unit` is that of a number without one. None if it cannot be read."""
        if clock := _CLOCK.fullmatch(text.strip()):
            hours, minutes, seconds, fraction, frames = clock.groups(default="0")
            whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            return whole + Fraction(int(fraction), 10 ** len(fraction)) + Fraction(int(frames)) / self.frames
        if offset := _OFFSET.fullmatch(text.strip()):
            whole, fraction = int(offset[1]), offset[2] or "0"
            part = Fraction(int(fraction), 10 ** len(fraction))
            return (whole - part if offset[1].startswith("-") else whole + part) * self._length(
                offset[3] or unit
            )
        return None

    def _length(self, unit: str) -> Fraction:
        lengths = {"h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 1000)}
        return lengths.get(unit) or 1 / (self.frames if unit == "f" else self.ticks)


def _number(text: str, default: int) -> int:
    found = _WHOLE.fullmatch(text.strip())
    return int(found[0]) or default if found else default


def _earlier(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return other if one is None else one if other is None else min(one, other)
