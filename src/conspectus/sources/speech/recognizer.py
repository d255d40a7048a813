"""Speech to words by Whisper (CTranslate2, eight bits), where a detector of voices (Silero) hears any."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import optional
from conspectus.sources.speech.audio import SAMPLE_RATE, Samples
from conspectus.sources.speech.model_files import EXTRA
from conspectus.sources.speech.transcripts import SpokenWord

MAX_COMPRESSION_RATIO = 2.4
"""Text that repeats itself compresses better; Whisper repeats itself where it understands nothing."""
MIN_LOG_PROBABILITY = -1.0
"""Mean of the tokens of what was heard; below, it was guessed."""
PACKAGE = "faster-whisper"


@dataclass(frozen=True, slots=True)
class Heard:
    """The words of one stretch of speech, and the second at which it ends. An unclear one has no words."""

    end: float
    words: tuple[SpokenWord, ...] = ()
    unclear_seconds: float = 0.0


@dataclass(slots=True)
class Recognizer:
    """Whisper with its detector of voices. The language is that of the first speech, unless it is given."""

    model: Any
    language: str = ""

    def hear(self, samples: Samples, start: float) -> Iterator[Heard]:
        """Yield what is said in a block that starts at that second; nothing if nobody speaks."""
        vad, library = optional("faster_whisper.vad", EXTRA, PACKAGE), _library()
        speech = vad.get_speech_timestamps(samples, vad.VadOptions())
        if not speech:
            return
        chunks, _ = vad.collect_chunks(samples, speech)
        segments, information = self.model.transcribe(
            np.concatenate(chunks),
            language=self.language or None,
            beam_size=1,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
        )
        self.language = information.language
        for segment in library.restore_speech_timestamps(segments, speech, SAMPLE_RATE):
            yield _convert_segment(segment, start)


def load_recognizer(folder: Path, *, language: str = "", threads: int = 1) -> Recognizer:
    """Return Whisper with the weights of a folder. Raises MissingExtra, and ValueError for its language.

    All that is needed is loaded: a child that reads files can open no others later on.
    """
    library = _library()
    model = library.WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
    )
    if language and language not in model.supported_languages:
        raise ValueError(f"speech_language: Whisper does not know {language!r}; use a code such as `de`")
    recognizer = Recognizer(model, language)
    list(recognizer.hear(np.zeros(SAMPLE_RATE, np.float32), 0.0))
    return recognizer


def _library() -> Any:
    return optional("faster_whisper.transcribe", EXTRA, PACKAGE)


def _convert_segment(segment: Any, start: float) -> Heard:
    """Return a segment of Whisper with the times of the recording, without words if it was guessed."""
    end = start + float(segment.end)
    words: Sequence[Any] = segment.words or ()
    repeats = segment.compression_ratio > MAX_COMPRESSION_RATIO
    if repeats or segment.avg_logprob < MIN_LOG_PROBABILITY:
        return Heard(end, unclear_seconds=float(segment.end - segment.start))
    return Heard(
        end,
        tuple(
            SpokenWord(
                word.word,
                start + float(word.start),
                start + float(word.end),
                round(100 * float(word.probability), 1),
            )
            for word in words
        ),
    )
