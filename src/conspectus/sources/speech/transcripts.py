"""What was heard in a recording: words with their times and confidence, and the captions made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from conspectus.deferred import dataclass
from conspectus.model.captions import CaptionTrack, NewCaption
from conspectus.sources.subtitles.cues import Cue
from conspectus.sources.subtitles.sentence_ends import Script, pieces
from conspectus.sources.subtitles.sentences import CUES, sentences

MIN_WORD_CONFIDENCE = 50
"""Below, a word is marked as uncertain: of 100."""
MIN_UNCERTAIN_SHARE = 0.05
"""From this share of the words on, a notice counts the uncertain ones."""
MAX_UNCERTAIN_SPANS = 100
TIME_DIGITS = 2
SPEECH = "speech"
"""Metadata field of a caption: its confidence, and the spans of its uncertain words."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word with the seconds at which it starts and ends, and its confidence from 0 to 100."""

    text: str
    start: float
    end: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words that were recognized together, of one speaker if the recording tells them apart."""

    words: tuple[SpokenWord, ...]
    speaker: str | None = None

    @property
    def start(self) -> float:
        """The second at which the first word starts."""
        return self.words[0].start


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was heard in a recording of so many seconds, its language and title, and what to know about it."""

    utterances: tuple[Utterance, ...]
    seconds: float
    language: str | None = None
    title: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _SpokenCue:
    """Part of a sentence, or a whole one, with its words."""

    cue: Cue
    words: tuple[SpokenWord, ...]


def to_captions(transcript: Transcript, name: str, *, by_sentence: bool) -> CaptionTrack:
    """Return captions, each a sentence, or as they were recognized; `name` is the prefix of their keys."""
    utterances = sorted(transcript.utterances, key=lambda utterance: utterance.start)
    script = Script.of(" ".join(_text_of(utterance.words) for utterance in utterances))
    cues = [cue for utterance in utterances for cue in _cues_of(utterance, script, by_sentence=by_sentence)]
    words_by_time = {(one.cue.start, one.cue.end, one.cue.speaker): one.words for one in cues}
    captions = [
        _with_confidence(caption, [words_by_time[*times, caption.speaker] for times in _times_of(caption)])
        for caption in _captions_of([one.cue for one in cues], name, by_sentence=by_sentence)
    ]
    silence = [] if captions else ["no speech was heard in it"]
    notices = [
        *transcript.notices,
        *silence,
        *_uncertain_notice(captions, sum(len(one.words) for one in cues)),
    ]
    return CaptionTrack(tuple(captions), transcript.title, transcript.language, "; ".join(notices) or None)


def _cues_of(utterance: Utterance, script: Script, *, by_sentence: bool) -> Iterator[_SpokenCue]:
    """Yield an utterance divided where sentences end."""
    text = _text_of(utterance.words)
    lengths = [len(part) for part, _ in pieces(text, script)] if by_sentence else [len(text)]
    words = list(utterance.words)
    for length in lengths:
        part: list[SpokenWord] = []
        while words and (not part or len(_text_of(part)) < length):
            part.append(words.pop(0))
        if part:
            yield _spoken_cue(tuple(part), utterance.speaker)


def _spoken_cue(words: tuple[SpokenWord, ...], speaker: str | None) -> _SpokenCue:
    start, end = round(words[0].start, TIME_DIGITS), round(words[-1].end, TIME_DIGITS)
    return _SpokenCue(Cue(start, max(start, end), _text_of(words), speaker, track=speaker or ""), words)


def _captions_of(cues: Sequence[Cue], name: str, *, by_sentence: bool) -> Sequence[NewCaption]:
    """Return the captions in the order of time, numbered from 1."""
    if by_sentence:
        captions = sentences(cues, name)
    else:
        captions = tuple(
            NewCaption(cue.text, start=cue.start, end=cue.end, speaker=cue.speaker) for cue in cues
        )
    in_order = sorted(captions, key=lambda caption: float(str(caption.start)))
    return [
        replace(caption, index=number, key=f"{name}#{number}", read_by="speech")
        for number, caption in enumerate(in_order, 1)
    ]


def _times_of(caption: NewCaption) -> list[tuple[Any, Any]]:
    """Return the times of the cues that a caption was made of."""
    cues: Any = caption.metadata.get(CUES, [[0, caption.start, caption.end]])
    return [(start, end) for _, start, end in cues]


def _with_confidence(caption: NewCaption, parts: Sequence[tuple[SpokenWord, ...]]) -> NewCaption:
    """Add the mean confidence of a caption's words, and the spans of uncertain ones in its text."""
    words = [word for part in parts for word in part]
    spans: list[list[int]] = []
    position = 0
    for word in words:
        text = word.text.strip()
        position = caption.text.find(text, position)
        if position < 0:
            break
        if word.confidence < MIN_WORD_CONFIDENCE:
            spans.append([position, position + len(text)])
        position += len(text)
    confidence = sum(word.confidence for word in words) / len(words)
    speech: dict[str, object] = {"confidence": round(confidence, 1), "words": len(words)}
    if spans:
        speech["uncertain"] = spans[:MAX_UNCERTAIN_SPANS]
    return replace(caption, metadata={**caption.metadata, SPEECH: speech})


def _uncertain_notice(captions: Sequence[NewCaption], words: int) -> Iterator[str]:
    uncertain = 0
    for caption in captions:
        speech: Any = caption.metadata[SPEECH]
        uncertain += len(speech.get("uncertain", ()))
    if uncertain > MIN_UNCERTAIN_SHARE * words:
        yield f"{uncertain} of {words} words of the speech are uncertain"


def _text_of(words: Sequence[SpokenWord]) -> str:
    """Return the text of words, which begin with their spaces, if their script has any."""
    return "".join(word.text for word in words).strip()
