"""A child process that transcribes one recording: `python -m …speech.speech_process REQUEST`.

The recording is its standard input, a file. It writes lines of JSON: that it is `ready`, how far it is, what
it heard, and at last a summary, or why it was refused. After its limits are set, it cannot open files or
connections.
"""

import codecs
import encodings
import json
import os
import pkgutil
import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from conspectus.errors import optional
from conspectus.sources.files.extract import Refused
from conspectus.sources.speech.audio import SAMPLE_RATE, Recording, TooLong
from conspectus.sources.speech.model_files import EXTRA
from conspectus.sources.speech.recognizer import Recognizer, load_recognizer
from conspectus.text.counts import format_count

Message: TypeAlias = Mapping[str, Any]

COMPLAINTS = 100_000
LATE_MODULES = ("multiprocessing.synchronize", "numpy.ma")
"""Modules that libraries load at their first use."""
FIRST_FREE_DESCRIPTOR = 3


def main() -> None:
    """Transcribe the recording of standard input, and write what was heard."""
    request = json.loads(sys.argv[1])
    _load_all_modules()
    recognizer = load_recognizer(
        Path(request["model"]), language=request["language"], threads=request["threads"]
    )
    _limit(request)
    _write({"ready": True})
    try:
        for message in transcribe(Recording(sys.stdin.buffer, request["max_seconds"]), recognizer):
            _write(message)
    except TooLong:
        _write({"too_long": True})
    except Refused as error:
        _write({"refused": str(error)})


def _load_all_modules() -> None:
    """Load what is otherwise loaded when it is needed: later on no module can be."""
    for module in pkgutil.iter_modules(encodings.__path__):
        with suppress(LookupError):
            codecs.lookup(module.name)
    decoders = pkgutil.walk_packages(optional("av", EXTRA, "av").__path__, "av.")
    for name in (*LATE_MODULES, *(module.name for module in decoders)):
        if not name.endswith("__main__"):
            import_module(name)


def transcribe(recording: Recording, recognizer: Recognizer) -> Iterator[Message]:
    """Yield what is said in a recording, how far it was read, and at last a summary.

    Raises TooLong and Refused.
    """
    voices = recording.voices()
    seconds = unclear = 0.0
    total = recording.claimed_seconds * len(voices)
    for number, voice in enumerate(voices):
        voice_seconds = 0.0
        for start, samples in recording.blocks(voice):
            voice_seconds = start + len(samples) / SAMPLE_RATE
            for heard in recognizer.hear(samples, start):
                unclear += heard.unclear_seconds
                done = number * recording.claimed_seconds + heard.end
                yield {
                    "done": round(done, 1),
                    "total": round(max(done, total), 1),
                    "speaker": voice.speaker,
                    "words": [list(asdict(word).values()) for word in heard.words],
                }
        seconds = max(seconds, voice_seconds)
    if not seconds:
        damaged = recording.damaged_packets
        raise Refused("is damaged: none of its sound can be decoded" if damaged else "has no sound")
    yield {
        "seconds": round(seconds, 2),
        "language": recognizer.language or None,
        "title": recording.title,
        "notices": list(_notices(recording, unclear, len(voices))),
    }


def _notices(recording: Recording, unclear: float, voices: int) -> Iterator[str]:
    """Yield what a reader should know about the transcript."""
    if recording.damaged_packets:
        yield f"left out: {format_count(recording.damaged_packets, 'damaged part')} of the recording"
    if len(recording.titles) > 1 and voices == 1:
        yield f"the first of {len(recording.titles)} tracks was read"
    if unclear >= 1:
        yield f"left out: {format_count(round(unclear), 'second')} of speech that could not be understood"


def _limit(request: Message) -> None:
    """Set the limits of this process; the descriptors that it has stay open."""
    seconds = request["seconds"] * max(1, request["threads"])
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (COMPLAINTS, COMPLAINTS))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FIRST_FREE_DESCRIPTOR, FIRST_FREE_DESCRIPTOR))
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"], resource.RLIM_INFINITY))


def _write(message: Message) -> None:
    os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
