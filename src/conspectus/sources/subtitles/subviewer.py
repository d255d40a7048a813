"""The .sbv files of YouTube: two times with a comma between them, then the lines of the caption."""

import re

from conspectus.sources.subtitles.cue_blocks import COMMA, CueFormat, read_blocks
from conspectus.sources.subtitles.cues import NO_CAPTION, Cue, ParsedCues

_BREAK = re.compile(r"\[br\]", re.IGNORECASE)
_TORN = re.compile(r"^\s*\d+:\d+:\S{1,20},\d+:\d+:\S{1,20}\s*$")
SUBVIEWER = CueFormat(COMMA, _TORN)


def read_subviewer(text: str) -> ParsedCues:
    """The cues of an .sbv text."""
    blocks, stray = read_blocks(text, SUBVIEWER)
    reading = ParsedCues()
    for block in blocks:
        reading.cues.append(Cue(block.start, block.end, _BREAK.sub("\n", "\n".join(block.lines)).strip()))
    reading.left[NO_CAPTION] += stray
    return reading
