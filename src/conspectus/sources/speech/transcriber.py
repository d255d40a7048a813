"""Recordings transcribed in a child process, whose progress is told and which ends with its caller."""

import contextlib
import json
import os
import select
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import IO, Any

from conspectus.errors import MissingExtra, TooLarge, UnreadableFile, UnsupportedContent
from conspectus.ports.streams import Watch
from conspectus.settings import Settings
from conspectus.sources.child_process import ChildProcess, ProcessEnd
from conspectus.sources.speech.model_files import INSTALL, is_installed, model_folder
from conspectus.sources.speech.transcripts import SpokenWord, Transcript, Utterance

SPEECH_MODULE = "conspectus.sources.speech.speech_process"
START_SECONDS = 60
POLL_SECONDS = 0.2
READ_BYTES = 1 << 16
MAX_ANSWER_BYTES_PER_SECOND = 4_000
"""Of the recording: nobody says more than 20 words a second, each of which takes 100 bytes or so."""
MIN_ANSWER_BYTES = 1_000_000


def transcribe(recording: bytes | Path, name: str, settings: Settings, watch: Watch) -> Transcript:
    """Return what is said in a recording.

    Raises UnsupportedContent without the extra `audio`, TooLarge over a limit, UnreadableFile, and what
    `watch` raises.
    """
    if not is_installed(settings.speech_model):
        raise UnsupportedContent(name, f"a recording, which the extra `audio` transcribes: {INSTALL}")
    size = len(recording) if isinstance(recording, bytes) else recording.stat().st_size
    if not size:
        raise UnreadableFile(name, "the file is empty")
    if size > settings.max_recording_bytes:
        raise TooLarge("recording", size=size, limit=settings.max_recording_bytes)
    try:
        folder = model_folder(settings.speech_model)
    except (ValueError, MissingExtra) as error:
        raise UnreadableFile(name, str(error)) from error
    with _open_recording(recording, name) as file:
        return _SpeechChild(file, folder, settings, name).transcript(watch)


@contextlib.contextmanager
def _open_recording(recording: bytes | Path, name: str) -> Iterator[IO[bytes]]:
    """Yield the recording as an open file. Raises UnreadableFile."""
    with contextlib.ExitStack() as files:
        try:
            if isinstance(recording, Path):
                file: IO[bytes] = files.enter_context(recording.open("rb"))
            else:
                file = files.enter_context(tempfile.TemporaryFile())
                file.write(recording)
                file.seek(0)
        except OSError as error:
            raise UnreadableFile(name, error.strerror or str(error)) from error
        yield file


class _SpeechChild:
    """One process, for one recording."""

    def __init__(self, file: IO[bytes], folder: Path, settings: Settings, name: str) -> None:
        self._settings = settings
        self._name = name
        request = {
            "model": str(folder),
            "language": settings.speech_language,
            "threads": settings.speech_threads,
            "seconds": settings.speech_timeout_seconds,
            "memory_bytes": settings.speech_max_memory_bytes,
            "max_seconds": settings.max_recording_seconds,
        }
        threads = str(settings.speech_threads)
        self._process = ChildProcess(
            SPEECH_MODULE,
            [json.dumps(request)],
            stdin=file,
            environment={"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )
        self._is_ready = False
        self._seconds = self._total_seconds = 0.0

    def transcript(self, watch: Watch) -> Transcript:
        """Return what the child heard; it ends in any case."""
        utterances: list[Utterance] = []
        end: ProcessEnd | None = None
        try:
            for message in self._messages(watch):
                match message:
                    case {"words": list(words), "speaker": speaker}:
                        spoken = tuple(SpokenWord(*word) for word in words)
                        utterances += [Utterance(spoken, speaker)] if spoken else []
                    case {"seconds": float(seconds), "notices": list(notices)}:
                        language, title = message["language"], message["title"]
                        return Transcript(tuple(utterances), seconds, language, title, tuple(notices))
                    case {"too_long": True}:
                        limit = self._settings.max_recording_seconds
                        raise TooLarge("recording", size=limit + 1, limit=limit, unit="seconds")
                    case {"refused": str(reason)}:
                        raise UnreadableFile(self._name, reason)
        finally:
            end = self._process.end()
        raise UnreadableFile(self._name, self._reason(end))

    def _messages(self, watch: Watch) -> Iterator[Mapping[str, Any]]:
        """Yield the messages of the child, until it ends or is too late."""
        for line in self._lines(lambda: watch(self._seconds, self._total_seconds)):
            message = json.loads(line)
            if message.get("ready"):
                self._is_ready = True
            self._seconds = message.get("done", self._seconds)
            self._total_seconds = message.get("total", self._total_seconds)
            watch(self._seconds, self._total_seconds)
            yield message

    def _lines(self, look: Callable[[], None]) -> Iterator[bytes]:
        """Yield the lines that the child writes; `look` is called several times a second."""
        output = self._process.stdout
        if output is None:
            return
        settings = self._settings
        deadline = monotonic() + START_SECONDS + settings.speech_timeout_seconds
        allowed = MIN_ANSWER_BYTES + MAX_ANSWER_BYTES_PER_SECOND * settings.max_recording_seconds
        rest = b""
        while allowed > 0:
            look()
            if monotonic() > deadline:
                self._process.expired = True
                return
            if not select.select([output], [], [], POLL_SECONDS)[0]:
                continue
            part = os.read(output.fileno(), READ_BYTES)
            if not part:
                return
            allowed -= len(part)
            *lines, rest = (rest + part).split(b"\n")
            yield from lines

    def _reason(self, end: ProcessEnd) -> str:
        settings = self._settings
        memory = f"{settings.speech_max_memory_bytes} bytes of memory"
        if self._process.expired or end.code == -signal.SIGXCPU:
            return f"takes more than {settings.speech_timeout_seconds} seconds to transcribe"
        if end.lacked_memory:
            return f"takes more than {memory} to transcribe"
        if not self._is_ready:
            return f"its reader could not be started ({end.stopped_by}): {end.last_complaint}"
        if end.code < 0:
            return f"its reader crashed ({end.stopped_by}): damaged, or over {memory}"
        return f"its reader failed: {end.last_complaint}"
