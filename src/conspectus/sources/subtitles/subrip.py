"""SubRip, read leniently: numbers may be missing or wrong, times may have any fraction and either arrow."""

from conspectus.sources.subtitles.cue_blocks import ARROW, TORN_ARROW, CueFormat, read_blocks
from conspectus.sources.subtitles.cue_markup import spoken
from conspectus.sources.subtitles.cues import NO_CAPTION, Cue, ParsedCues

SUBRIP = CueFormat(ARROW, TORN_ARROW)


def read_subrip(text: str) -> ParsedCues:
    """The cues of a SubRip text."""
    blocks, stray = read_blocks(text, SUBRIP)
    reading = ParsedCues()
    for block in blocks:
        for speaker, words in spoken("\n".join(block.lines)):
            reading.cues.append(Cue(block.start, block.end, words, speaker))
    reading.left[NO_CAPTION] += stray
    return reading
