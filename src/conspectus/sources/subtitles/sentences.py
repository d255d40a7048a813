"""Cues, the common form of all subtitles, and sentences across them, with the exact times of their cues.

A sentence ends at a sentence terminator of its language (unless a lower-case letter follows), at a change of
speaker, before a pause, and before it exceeds the limits. Text without punctuation, as in automatic captions,
is split at shorter pauses and lengths. Only white space is changed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.captions import NewCaption
from conspectus.sources.subtitles.cues import Cue, Time, by_track, second_of, video_of
from conspectus.sources.subtitles.sentence_ends import (
    End,
    Script,
    continues_sentence,
    pieces,
    space_between,
    turns,
)
from conspectus.text.graphemes import last_border

CUES: Final = "cues"
"""Metadata field of a sentence: [offset in characters, start, end] of each of its cues, in order."""


@dataclass(frozen=True, slots=True)
class SentenceLimits:
    """Maximum characters and seconds of a sentence, and the longest pause inside, in seconds."""

    characters: int
    seconds: float
    pause: float


MARKED: Final = SentenceLimits(500, 60.0, 4.0)
UNMARKED: Final = SentenceLimits(200, 20.0, 1.0)


def sentences(cues: Iterable[Cue], name: str) -> tuple[NewCaption, ...]:
    """Return the sentences of the cues by track, numbered from 1. Keys have the prefix `name`."""
    counts: Counter[object] = Counter()
    captions: list[NewCaption] = []
    for track in by_track(list(cues)):
        for sentence in _of_track(track):
            video = video_of(sentence.marks[0][1])
            counts[video] += 1
            captions.append(sentence.caption(counts[video], f"{name}#{len(captions) + 1}"))
    return tuple(captions)


@dataclass(slots=True)
class _Sentence:
    """A sentence under construction: its pieces, and their cues with offsets."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    marks: list[tuple[int, Cue]] = field(default_factory=list)
    end: End = "none"

    def add(self, piece: str, cue: Cue, end: End) -> None:
        space = space_between(self.parts[-1], piece) if self.parts else ""
        if not self.marks or self.marks[-1][1] is not cue:
            self.marks.append((self.length + len(space), cue))
        self.parts.extend((space, piece) if space else (piece,))
        self.length += len(space) + len(piece)
        self.end = end

    def includes_piece(self, piece: str, cue: Cue, script: Script, limits: SentenceLimits) -> bool:
        """Return whether a piece still belongs to the sentence."""
        if not self.parts:
            return True
        last = self.marks[-1][1]
        if self.end == "closed" or (self.end == "open" and not continues_sentence(piece, script)):
            return False
        if self.length + 1 + len(piece) > limits.characters or cue.speaker != last.speaker:
            return False
        return cue is last or self._is_near(last, cue, limits)

    def _is_near(self, last: Cue, cue: Cue, limits: SentenceLimits) -> bool:
        """Return whether the next cue follows soon, not before the last one, and within the length limit."""
        starts, before = second_of(cue.start), second_of(last.start)
        first = second_of(self.marks[0][1].start)
        if starts is None or before is None or first is None:
            return starts is None and before is None
        ended = second_of(last.end)
        soon = starts - (before if ended is None else ended) <= limits.pause
        ends = second_of(cue.end)
        return soon and before <= starts and (starts if ends is None else ends) - first <= limits.seconds

    def caption(self, number: int, key: str) -> NewCaption:
        first, last = self.marks[0][1], self.marks[-1][1]
        marks: list[list[int | Time]] = [[offset, cue.start, cue.end] for offset, cue in self.marks]
        return NewCaption(
            "".join(self.parts),
            start=first.start,
            end=last.end,
            index=number,
            key=key,
            speaker=first.speaker,
            entities=tuple(dict.fromkeys(entity for _, cue in self.marks for entity in cue.entities)),
            metadata={**_common([cue.metadata for _, cue in self.marks]), CUES: marks},
        )


def _of_track(cues: list[Cue]) -> Iterator[_Sentence]:
    script = Script.of("\n".join(cue.text for cue in cues[:5_000]))
    limits = MARKED if script.marked else UNMARKED
    current = _Sentence()
    for cue in cues:
        for piece, end, other in _pieces(cue, script, limits):
            if current.parts and (other or not current.includes_piece(piece, cue, script, limits)):
                yield current
                current = _Sentence()
            current.add(piece, cue, end)
    if current.parts:
        yield current


def _pieces(cue: Cue, script: Script, limits: SentenceLimits) -> Iterator[tuple[str, End, bool]]:
    """Return the pieces of a cue, how each ends, and whether the speaker changes."""
    for turn, other in turns(cue.text, script):
        begins = other
        for piece, end in pieces(turn, script):
            *longer, last = _cut(piece, limits.characters)
            for part in longer:
                yield part, "closed", begins
                begins = False
            yield last, end, begins
            begins = False


def _cut(text: str, maximum: int) -> Iterator[str]:
    """Split the text into parts of limited length, at white space if there is any."""
    begin = 0
    while len(text) - begin > maximum:
        space = text.rfind(" ", begin + 1, begin + maximum + 1)
        end = space if space > begin else last_border(text, begin + maximum, begin)
        end = end if end > begin else begin + maximum
        yield text[begin:end].strip()
        begin = end
    yield text[begin:].strip()


def _common(metadata: list[Mapping[str, object]]) -> Mapping[str, object]:
    """Return the values that the cues have in common."""
    first, *others = metadata
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
