"""Recordings are transcribed in a child process; sounds that are no speech give no text."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.recordings import FIRST, SECOND, encode, needs_speech, talk, wav

from conspectus.errors import TooLarge, UnreadableFile
from conspectus.ports.streams import ignore_progress
from conspectus.settings import Settings
from conspectus.sources.speech.transcriber import transcribe
from conspectus.sources.speech.transcripts import Transcript

SECONDS = np.arange(8 * 16_000) / 16_000


def words_of(transcript: Transcript) -> str:
    return "".join(word.text for utterance in transcript.utterances for word in utterance.words).strip()


@pytest.fixture(scope="module")
def sentences() -> NDArray[np.float32]:
    return talk(FIRST, SECOND)


@needs_speech
@pytest.mark.parametrize(
    ("name", "container", "codec", "video"),
    [("a.mp3", "mp3", "mp3", False), ("a.webm", "webm", "libopus", False), ("a.mp4", "mp4", "aac", True)],
)
def test_a_recording_says_what_was_said_and_when(
    sentences: NDArray[np.float32], name: str, container: str, codec: str, video: bool
) -> None:
    transcript = transcribe(
        encode(sentences, container, codec, video=video), name, Settings(), ignore_progress
    )
    assert words_of(transcript).lower() == f"{FIRST} {SECOND}".lower()
    assert (transcript.language, transcript.title) == ("en", "Harbor meeting")
    assert transcript.utterances[0].start == pytest.approx(1.5, abs=0.3)
    # The voice itself ends with some silence.
    assert transcript.utterances[-1].words[-1].end == pytest.approx(len(sentences) / 24_000 - 2, abs=0.5)


@needs_speech
def test_two_lines_of_a_call_are_two_speakers() -> None:
    first, second = talk(FIRST), talk(SECOND)
    lines = np.zeros((len(first) + len(second), 2), np.float32)
    lines[: len(first), 0], lines[len(first) :, 1] = first, second
    transcript = transcribe(wav(lines), "call.wav", Settings(), ignore_progress)
    assert [utterance.speaker for utterance in transcript.utterances] == ["channel 1", "channel 2"]


@needs_speech
def test_both_channels_of_a_room_are_one_voice(sentences: NDArray[np.float32]) -> None:
    room = np.stack([sentences, sentences / 2], axis=1)[::3]
    transcript = transcribe(wav(room, 8_000), "room.wav", Settings(), ignore_progress)
    assert words_of(transcript).lower() == f"{FIRST} {SECOND}".lower()
    assert {utterance.speaker for utterance in transcript.utterances} == {None}


@needs_speech
@pytest.mark.parametrize(
    "sound",
    [
        pytest.param(0 * SECONDS, id="silence"),
        pytest.param(np.random.default_rng(0).normal(0, 0.1, len(SECONDS)), id="noise"),
        pytest.param(sum(np.sin(2 * np.pi * f * SECONDS) for f in (220, 277.2, 329.6)) / 6, id="chord"),
    ],
)
def test_sounds_without_speech_have_no_text(sound: NDArray[np.float64]) -> None:
    transcript = transcribe(wav(sound.astype(np.float32), 16_000), "sound.wav", Settings(), ignore_progress)
    assert (transcript.utterances, transcript.seconds) == ((), 8.0)


def huge_header() -> bytes:
    """A WAV file whose header claims 74 hours."""
    data = bytearray(wav(np.zeros(16_000, np.float32), 16_000))
    data[4:8] = data[40:44] = (0xFFFFFFF0).to_bytes(4, "little")
    return bytes(data)


@needs_speech
def test_a_header_that_claims_more_than_there_is_changes_nothing() -> None:
    transcript = transcribe(huge_header(), "huge.wav", Settings(max_recording_seconds=60), ignore_progress)
    assert transcript.seconds == 1.0


@needs_speech
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (wav(np.zeros(0, np.float32)), "has no sound"),
        (b"Notes of the meeting.\n" * 100, "a damaged recording, or of another format"),
        (b"#EXTM3U\n#EXTINF:1\nfile:///etc/passwd\n", "a damaged recording, or of another format"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "a damaged recording, or of another format"),
        (wav(np.zeros(9_000, np.float32))[:30], "a damaged recording, or of another format"),
    ],
)
def test_what_is_no_recording_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        transcribe(data, "a.mp3", Settings(), ignore_progress)


@needs_speech
def test_limits_are_kept(tmp_path: Path) -> None:
    recording = tmp_path / "a.wav"
    recording.write_bytes(wav(np.zeros(5 * 16_000, np.float32), 16_000))
    with pytest.raises(TooLarge) as long:
        transcribe(recording, "a.wav", Settings(max_recording_seconds=4), ignore_progress)
    assert (long.value.limit, long.value.size) == (4, 5)
    with pytest.raises(TooLarge):
        transcribe(recording, "a.wav", Settings(max_recording_bytes=100), ignore_progress)
    with pytest.raises(UnreadableFile, match="200000000 bytes of memory"):
        transcribe(recording, "a.wav", Settings(speech_max_memory_bytes=200_000_000), ignore_progress)
    with pytest.raises(UnreadableFile, match="is no model of Whisper"):
        transcribe(recording, "a.wav", Settings(speech_model=str(tmp_path)), ignore_progress)
    with pytest.raises(UnreadableFile, match="Whisper does not know 'english'"):
        transcribe(recording, "a.wav", Settings(speech_language="english"), ignore_progress)


class CallerIsGone(Exception):
    """Ends a reading."""


def speech_processes() -> set[int]:
    """The children of this process that transcribe a recording."""
    processes = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            ours = path.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
            if ours and b"speech_process" in (path.parent / "cmdline").read_bytes():
                processes.add(int(path.parent.name))
        except OSError:
            continue
    return processes


@needs_speech
def test_the_child_ends_with_its_caller() -> None:
    running: list[set[int]] = []

    def leave(_: float, __: float) -> None:
        running.append(speech_processes())
        if running[-1]:
            raise CallerIsGone

    with pytest.raises(CallerIsGone):
        transcribe(wav(np.zeros(16_000, np.float32), 16_000), "a.wav", Settings(), leave)
    assert len(running[-1]) == 1
    assert speech_processes() == set()


@needs_speech
def test_progress_is_told(sentences: NDArray[np.float32]) -> None:
    reports: list[tuple[float, float]] = []
    main_thread = threading.get_ident()

    def watch(seconds: float, total: float) -> None:
        assert threading.get_ident() == main_thread
        reports.append((seconds, total))

    transcribe(wav(sentences), "a.wav", Settings(), watch)
    assert reports[0] == (0, 0)
    assert all(seconds <= total for seconds, total in reports)
    assert reports == sorted(reports)
