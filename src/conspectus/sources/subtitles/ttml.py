"""TTML, DFXP, and both XML formats of YouTube. Entities are not expanded, and nothing is fetched."""

import html
import re
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from lxml import etree

from conspectus.deferred import dataclass
from conspectus.sources.subtitles.cues import NO_TIME, Cue, ParsedCues, without_comments

_CLOCK = re.compile(r"(\d{1,20}):(\d{1,9}):(\d{1,9})(?:[.,](\d{1,9})|[:;](\d{1,9})(?:\.\d{1,9})?)?", re.ASCII)
_OFFSET = re.compile(r"(-?\d{1,20})(?:\.(\d{1,9}))?(h|ms|m|s|f|t)?", re.ASCII)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Interval:
    """A time interval in exact seconds; None is open."""

    start: Fraction | None = None
    end: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """The frame rate and tick rate of a document."""

    frames: Fraction
    ticks: Fraction

    @classmethod
    def of(cls, root: Mapping[str, str]) -> "Clock":
        """Read the attributes of the root element. Invalid ones are ignored."""
        rate = _number(root.get("frameRate", ""), 30)
        parts = (root.get("frameRateMultiplier", "")).replace(":", " ").split()
        up, down = (_number(part, 1) for part in parts) if len(parts) == 2 else (1, 1)
        inner = _number(root.get("subFrameRate", ""), 1)
        ticks = _number(root.get("tickRate", ""), rate * inner if "frameRate" in root else 1)
        return cls(Fraction(rate * up, down), Fraction(ticks))

    def interval(self, attributes: Mapping[str, str], outer: Interval) -> tuple[Interval, bool]:
        """Return the interval of an element inside another, and whether all its times are valid."""
        named = [attributes[name] for name in ("begin", "start", "t") if name in attributes][:1]
        ends = [attributes["end"]] if "end" in attributes else []
        lasts = [attributes[name] for name in ("dur", "d") if name in attributes][:1]
        unit = "ms" if "t" in attributes and "begin" not in attributes and "start" not in attributes else "s"
        times = [self.seconds(value, unit) for value in (*named, *ends, *lasts)]
        if None in times:
            return outer, False
        valid_times = iter([time for time in times if time is not None])
        base = outer.start or Fraction(0)
        start = base + next(valid_times) if named else outer.start
        end = base + next(valid_times) if ends else None
        if lasts:
            until = (start or base) + next(valid_times)
            end = until if end is None else min(end, until)
        return Interval(start, _earlier(end, outer.end)), True

    def seconds(self, text: str, unit: str = "s") -> Fraction | None:
        """Return the seconds of a time, None if it is invalid. `unit` is the default unit."""
        if clock := _CLOCK.fullmatch(text.strip()):
            hours, minutes, seconds, fraction, frames = clock.groups(default="0")
            whole_seconds = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            return (
                whole_seconds
                + Fraction(int(fraction), 10 ** len(fraction))
                + Fraction(int(frames)) / self.frames
            )
        if offset := _OFFSET.fullmatch(text.strip()):
            units, fraction = int(offset[1]), offset[2] or "0"
            part = Fraction(int(fraction), 10 ** len(fraction))
            count = units - part if offset[1].startswith("-") else units + part
            return count * self._length(offset[3] or unit)
        return None

    def _length(self, unit: str) -> Fraction:
        lengths = {"h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 1000)}
        return lengths.get(unit) or 1 / (self.frames if unit == "f" else self.ticks)


def _number(text: str, default: int) -> int:
    match = _WHOLE.fullmatch(text.strip())
    return int(match[0]) or default if match else default


def _earlier(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return other if one is None else one if other is None else min(one, other)


_ROOTS = frozenset({"tt", "transcript", "timedtext"})
_ENTITY = re.compile(r"<!ENTITY", re.IGNORECASE)
_FIRST = re.compile(r"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)")
_TIMED = re.compile(r"<text\s[^<>]*start=")
_SILENT = frozenset({"metadata", "head", "styling", "layout"})
_SPACE = re.compile(r"\s+")


def is_ttml(text: str) -> bool:
    """Return whether the root element of an XML text is that of captions."""
    head = text[:10_000]
    root = _FIRST.search(without_comments(head))
    if root is None or root[1] not in _ROOTS:
        return False
    return root[1] != "transcript" or _TIMED.search(head) is not None


def read_ttml(text: str) -> ParsedCues:
    """Return the captions of an XML text. Raises ValueError (or LxmlError) for other text."""
    if _ENTITY.search(text):
        raise ValueError("declares entities, which are not expanded")
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False)
    root = etree.fromstring(text.strip().encode("utf-8", "replace"), parser)
    if _name(root) not in _ROOTS:
        raise ValueError(f"<{_name(root)[:50]}> is not the root of a caption file")
    return _Document(Clock.of(_attributes(root))).read(root)


@dataclass(slots=True)
class _Open:
    """An open element: its interval, its white space handling, and its speaker."""

    interval: Interval
    preserved: bool = False
    language: str | None = None
    speaker: str | None = None
    silent: bool = False
    cue: "_Words | None" = None


@dataclass(slots=True)
class _Words:
    """The caption that is being read."""

    interval: Interval
    speaker: str | None = None
    parts: list[str] = field(default_factory=list)


class _Document:
    """Reads a document in one pass. Open elements are on a stack, so that depth needs no recursion."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open = [_Open(Interval())]
        self._reading = ParsedCues()
        self._agents: dict[str, str] = {}
        self._agent = ""
        self._escaped = False

    def read(self, root: etree._Element) -> ParsedCues:
        self._reading.language = _attributes(root).get("lang")
        self._escaped = _name(root) == "transcript"
        for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
            if event == "start":
                self._start(element)
            elif event == "end":
                closed = self._open.pop()
                if closed.cue is not None and closed.cue is not self._open[-1].cue:
                    self._caption(closed.cue, closed.language)
            if event != "start":
                self._text(element.tail)
        for cue in self._reading.cues:
            cue.speaker = self._agents.get(cue.speaker, cue.speaker) if cue.speaker else None
        return self._reading

    def _start(self, element: etree._Element) -> None:
        name, attributes, outer = _name(element), _attributes(element), self._open[-1]
        self._head(name, attributes, element)
        interval, readable = self._clock.interval(attributes, outer.interval)
        if not readable:
            self._reading.left[NO_TIME] += 1
        opened = _Open(
            interval,
            attributes["space"] == "preserve" if "space" in attributes else outer.preserved,
            attributes.get("lang", outer.language),
            attributes.get("agent", outer.speaker),
            outer.silent or name in _SILENT,
            outer.cue,
        )
        if self._begins(name, outer, attributes) and not opened.silent:
            opened.cue = _Words(interval, opened.speaker)
        self._open.append(opened)
        if name == "br" and opened.cue:
            opened.cue.parts.append("\n")
        self._text(element.text)

    def _begins(self, name: str, outer: _Open, attributes: Mapping[str, str]) -> bool:
        """Return whether an element starts a caption: a paragraph, or a timed part of an untimed one."""
        if name == "p" or (name == "text" and outer.cue is None):
            return True
        return (
            name == "span"
            and "begin" in attributes
            and outer.cue is not None
            and outer.interval.start is None
        )

    def _text(self, text: str | None) -> None:
        top = self._open[-1]
        if text and top.cue and not top.silent:
            top.cue.parts.append(text if top.preserved else _SPACE.sub(" ", text))

    def _caption(self, words: _Words, language: str | None) -> None:
        lines = (line.strip() for line in "".join(words.parts).split("\n"))
        text = "\n".join(line for line in lines if line)
        text = html.unescape(text) if self._escaped else text
        if not text:
            return
        start, end = (_seconds(time) for time in (words.interval.start, words.interval.end))
        cue = Cue(start, end, text, words.speaker, track=language or "")
        if language and language != self._reading.language:
            cue.metadata = {"language": language}
        self._reading.cues.append(cue)

    def _head(self, name: str, attributes: Mapping[str, str], element: etree._Element) -> None:
        """Read the title of the document and the names of the speakers."""
        text = (element.text or "").strip()
        if name == "title" and not self._reading.title:
            self._reading.title = text
        elif name == "agent":
            self._agent = attributes.get("id", "")
        elif name == "name" and text and self._agent:
            self._agents[self._agent] = text


def _seconds(time: Fraction | None) -> float | None:
    """Round to milliseconds, half up as players do."""
    return None if time is None else int(time * 1000 + Fraction(1, 2)) / 1000


def _name(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _attributes(element: etree._Element) -> Mapping[str, str]:
    """Return attributes by local name."""
    return {str(name).rpartition("}")[2]: str(value) for name, value in element.attrib.items()}
