"""Recordings become streams of captions with seconds, whichever way they come."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.recordings import FIRST, SECOND, needs_speech, talk, wav

import conspectus
from conspectus.engine import Engine
from conspectus.model.jobs import Upload
from conspectus.settings import Settings
from conspectus.streams.caption_format import line_of

SUBTITLES = "1\n00:00:01,000 --> 00:00:04,000\nWelcome to the harbor.\n"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=Settings(embedder="none")) as opened:
        yield opened


@needs_speech
async def test_a_recording_is_found_and_cited_with_its_second(engine: Engine, tmp_path: Path) -> None:
    recording = tmp_path / "meeting.wav"
    recording.write_bytes(wav(talk(FIRST, SECOND)))
    steps: list[str] = []
    report = await engine.documents.add_files([recording], progress=lambda step, _, __: steps.append(step))
    assert (report.streams, report.failures) == ({"meeting": 2}, ())
    assert "transcribing meeting.wav" in steps
    hit = (await engine.search("fuel pump")).hits[0]
    assert (hit.document.read_by, hit.document.kind) == ("speech", "caption")
    window = await engine.window("fuel pump", 200)
    assert window.citations[0].read_by == "speech"
    _, caption = (await engine.streams.list_captions(stream="meeting")).captions
    assert caption.start is not None and 6 < caption.start < 8
    assert '"read_by":"speech"' in line_of(caption)
    again = await engine.documents.add_files([recording])
    assert (again.unchanged, again.added) == (2, 0)


@needs_speech
async def test_an_upload_becomes_the_same_stream(engine: Engine) -> None:
    job = await engine.jobs.ingest_files([Upload("call.wav", wav(talk(FIRST)))])
    ended = await engine.jobs.wait(job.id, timeout=120)
    assert ended.result is not None and ended.result["streams"] == 1
    [caption] = (await engine.streams.list_captions(stream="call")).captions
    assert caption.text.lower() == FIRST.lower()


async def test_captions_beside_a_recording_are_its_captions(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "talk.mp4").write_bytes(b"no video")
    (folder / "talk.srt").write_text(SUBTITLES)
    report = await engine.documents.add_files([folder])
    assert report.streams == {"talk": 1}
    assert report.skipped_files == {
        "talk.mp4": "not transcribed: its captions are in a file of the same name"
    }


@needs_speech
async def test_a_broken_recording_is_a_failure_and_the_others_are_read(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "a.mp3").write_bytes(b"Notes of the meeting. " * 50)
    (folder / "talk.srt").write_text(SUBTITLES)
    report = await engine.documents.add_files([folder])
    assert report.streams == {"talk": 1}
    [failure] = report.failures
    assert failure.name == "a.mp3" and "damaged recording" in failure.reason
