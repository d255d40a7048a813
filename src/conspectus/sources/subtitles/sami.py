"""SAMI files: the captions of all classes."""

import html
import re
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.sources.subtitles.cues import NO_TIME, Cue, ParsedCues, without_comments

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
