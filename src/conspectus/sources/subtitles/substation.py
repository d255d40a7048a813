"""SubStation Alpha scripts (ASS, SSA)."""

import re
from collections.abc import Mapping
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.sources.subtitles.cues import NO_CAPTION, NO_TIME, Cue, ParsedCues, to_seconds

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
    return to_seconds(*match.groups(default="")) if match else None


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
