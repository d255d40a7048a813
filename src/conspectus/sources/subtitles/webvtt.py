"""WebVTT, read leniently: headers, notes, styles and regions are no captions, voices are speakers."""

import re

from conspectus.sources.subtitles.cue_blocks import ARROW, TORN_ARROW, CueFormat, read_blocks
from conspectus.sources.subtitles.cue_markup import spoken
from conspectus.sources.subtitles.cues import NO_CAPTION, Cue, ParsedCues

_ASIDE = re.compile(r"(?:\ufeff?WEBVTT|NOTE|STYLE|REGION)(?:\s.*|:.*|)", re.DOTALL)
_TITLE = re.compile(r"\ufeff?WEBVTT[ \t]+(?:-[ \t]*)?(\S.*)")
_WORD = re.compile(r"<\d[\d:.]*><c")
_FIELD = re.compile(r"(Title|Language)[ \t]*:[ \t]*(\S.*)", re.IGNORECASE)

WEBVTT = CueFormat(ARROW, TORN_ARROW, lambda line: _ASIDE.fullmatch(line) is not None, named=True)


def read_webvtt(text: str) -> ParsedCues:
    """The cues of a WebVTT text; a cue of several voices becomes one for each."""
    blocks, stray = read_blocks(text, WEBVTT)
    reading = ParsedCues()
    for block in blocks:
        raw = "\n".join(block.lines)
        timed = _WORD.search(raw) is not None
        for speaker, words in spoken(raw):
            reading.cues.append(Cue(block.start, block.end, words, speaker, timed=timed))
    reading.left[NO_CAPTION] += stray
    reading.title, reading.language = _header(text)
    return reading


def _header(text: str) -> tuple[str, str | None]:
    """The title and the language that the lines before the first blank one give."""
    lines = text[:10_000].partition("\n\n")[0].split("\n")
    named = _TITLE.match(lines[0])
    found = {match[1].lower(): match[2].strip() for line in lines if (match := _FIELD.fullmatch(line))}
    return found.get("title") or (named[1].strip() if named else ""), found.get("language")
