"""TTML and DFXP, and the two XML forms of YouTube; no entity is expanded and nothing is fetched."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from lxml import etree

from conspectus.sources.subtitles.cue_markup import without_comments
from conspectus.sources.subtitles.cues import NO_TIME, Cue, ParsedCues
from conspectus.sources.subtitles.ttml_times import Clock, Interval

_ROOTS = frozenset({"tt", "transcript", "timedtext"})
_ENTITY = re.compile(r"<!ENTITY", re.IGNORECASE)
_FIRST = re.compile(r"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)")
_TIMED = re.compile(r"<text\s[^<>]*start=")
_SILENT = frozenset({"metadata", "head", "styling", "layout"})
_SPACE = re.compile(r"\s+")


def is_ttml(text: str) -> bool:
    """Whether an XML text has a root element of captions."""
    head = text[:10_000]
    root = _FIRST.search(without_comments(head))
    if root is None or root[1] not in _ROOTS:
        return False
    return root[1] != "transcript" or _TIMED.search(head) is not None


def read_ttml(text: str) -> ParsedCues:
    """The captions of an XML text. Raises ValueError (or LxmlError) for what is no such XML."""
    if _ENTITY.search(text):
        raise ValueError("declares entities, which are not expanded")
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False)
    root = etree.fromstring(text.strip().encode("utf-8", "replace"), parser)
    if _name(root) not in _ROOTS:
        raise ValueError(f"<{_name(root)[:50]}> is not the root of a caption file")
    return _Document(Clock.of(_attributes(root))).read(root)


@dataclass(slots=True)
class _Open:
    """An element that has begun: when its content plays, whether its white space counts, who speaks."""

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
    """One walk through a document; what is open stands on a stack, so that depth costs no recursion."""

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
                self._end(element)
            else:
                self._text(element.tail)
        for cue in self._reading.cues:
            cue.speaker = self._agents.get(cue.speaker, cue.speaker) if cue.speaker else None
        return self._reading

    def _start(self, element: etree._Element) -> None:
        name, given, outer = _name(element), _attributes(element), self._open[-1]
        self._head(name, given, element)
        interval, readable = self._clock.interval(given, outer.interval)
        if not readable:
            self._reading.left[NO_TIME] += 1
        opened = _Open(
            interval,
            given["space"] == "preserve" if "space" in given else outer.preserved,
            given.get("lang", outer.language),
            given.get("agent", outer.speaker),
            outer.silent or name in _SILENT,
            outer.cue,
        )
        if self._begins(name, outer, given) and not opened.silent:
            opened.cue = _Words(interval, opened.speaker)
        self._open.append(opened)
        if name == "br" and opened.cue:
            opened.cue.parts.append("\n")
        self._text(element.text)

    def _begins(self, name: str, outer: _Open, given: Mapping[str, str]) -> bool:
        """A paragraph is a caption; so is a timed part of a paragraph that has no time of its own."""
        if name == "p" or (name == "text" and outer.cue is None):
            return True
        return name == "span" and "begin" in given and outer.cue is not None and outer.interval.start is None

    def _end(self, element: etree._Element) -> None:
        closed = self._open.pop()
        if closed.cue is not None and closed.cue is not self._open[-1].cue:
            self._caption(closed.cue, closed.language)
        self._text(element.tail)

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

    def _head(self, name: str, given: Mapping[str, str], element: etree._Element) -> None:
        """The title of the document and the names of those who speak in it."""
        text = (element.text or "").strip()
        if name == "title" and not self._reading.title:
            self._reading.title = text
        elif name == "agent":
            self._agent = given.get("id", "")
        elif name == "name" and text and self._agent:
            self._agents[self._agent] = text


def _seconds(time: Fraction | None) -> float | None:
    """To the millisecond, half up as players do."""
    return None if time is None else int(time * 1000 + Fraction(1, 2)) / 1000


def _name(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _attributes(element: etree._Element) -> Mapping[str, str]:
    """By their local names."""
    return {str(name).rpartition("}")[2]: str(value) for name, value in _items(element)}


def _items(element: etree._Element) -> Iterator[tuple[object, object]]:
    yield from element.attrib.items()
