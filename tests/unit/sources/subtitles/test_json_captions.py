"""Captions as JSON: of YouTube and speech recognizers, as lists and as lines."""

import json
from typing import Any

import pytest

from conspectus.errors import UnreadableFile
from conspectus.model.captions import CaptionTrack
from conspectus.sources.files.parsers import is_caption_file
from conspectus.sources.subtitles.caption_import import read_caption_file

EVENTS = {
    "wireMagic": "pb3",
    "events": [
        {"tStartMs": 0, "dDurationMs": 4000, "id": 1, "wpWinPosId": 1},
        {
            "tStartMs": 80,
            "dDurationMs": 3120,
            "segs": [{"utf8": "hello"}, {"utf8": " world", "tOffsetMs": 9}],
        },
        {"tStartMs": 2000, "dDurationMs": 1, "aAppend": 1, "segs": [{"utf8": "\n"}]},
        {"tStartMs": 3201, "segs": [{"utf8": "again"}]},
    ],
}
WHISPER = {
    "text": " Hello there. Go.",
    "language": "en",
    "segments": [
        {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": 2.54,
            "text": " Hello there.",
            "tokens": [1],
            "temperature": 0.0,
        },
        {"id": 1, "start": 2.54, "end": 3.001, "text": " Go.", "speaker": "A", "words": [{"word": "Go"}]},
    ],
}


def read_track(value: object, name: str = "a.json") -> CaptionTrack:
    return read_caption_file(value if isinstance(value, str) else json.dumps(value), name)


def texts_and_times(track: CaptionTrack) -> list[tuple[str, object, object]]:
    return [(caption.text, caption.start, caption.end) for caption in track.captions]


def test_events_of_youtube() -> None:
    track = read_track(EVENTS)
    assert texts_and_times(track) == [("hello world", 0.08, 3.2), ("again", 3.201, None)]
    assert track.notice is None


def test_segments_of_a_recogniser() -> None:
    track = read_track(WHISPER)
    assert texts_and_times(track) == [("Hello there.", 0.0, 2.54), ("Go.", 2.54, 3.001)]
    assert [(caption.speaker, dict(caption.metadata)) for caption in track.captions] == [
        (None, {}),
        ("A", {}),
    ]
    assert track.language == "en"


@pytest.mark.parametrize(
    ("segment", "times"),
    [
        ({"text": "x", "start": 1.1, "duration": 2.2}, (1.1, 3.3)),
        ({"content": "x", "start": "00:00:05,5", "dur": "1"}, (5.5, 6.5)),
        ({"caption": "x", "start_s": 0, "end_s": 7}, (0.0, 7.0)),
        ({"text": "x", "start_time": "1:02:03.004", "end_time": "1h2m4s"}, (3723.004, 3724.0)),
        ({"text": "x", "start": "12340.5", "end": "20260105"}, (12340.5, 20260105.0)),
        ({"text": "x", "startMs": 1500, "endMs": "2500"}, (1.5, 2.5)),
        ({"text": "x", "timestamp": [1.5, None]}, (1.5, None)),
        ({"text": "x", "offsets": {"from": 1500, "to": 2000}}, (1.5, 2.0)),
        ({"text": "x", "start": "2026-01-05T10:00:00Z", "end": "2026-01-05 10:00:05+01:00"},
         ("2026-01-05T10:00:00Z", "2026-01-05T10:00:00Z")),
        ({"text": "x", "start": "2026-01-05T10:00:00+02:00", "dur": 1.5},
         ("2026-01-05T10:00:00+02:00", "2026-01-05T08:00:01.500000Z")),
        ({"text": "x"}, (None, None)),
        ({"text": "x", "start": "", "end": None}, (None, None)),
    ],
)  # fmt: skip
def test_times_of_every_shape(segment: dict[str, Any], times: tuple[object, object]) -> None:
    for value in (
        [segment],
        {"captions": [segment]},
        {"transcript": {"segments": [segment]}},
        {"cues": [segment]},
    ):
        (caption,) = read_track(value).captions
        assert (caption.text, caption.start, caption.end) == ("x", *times)


@pytest.mark.parametrize(
    ("segment", "notice"),
    [
        ({"start": "soon", "end": 2}, "captions with invalid times, kept without times: 1"),
        ({"start": True}, "captions with invalid times, kept without times: 1"),
        ({"start": [1]}, "captions with invalid times, kept without times: 1"),
        (
            {"start": 1e300, "end": 10**400},
            "captions with times beyond a million hours, kept without times: 1",
        ),
        ({"end": 5}, "captions with an end but no start, kept without times: 1"),
    ],
)
def test_times_that_cannot_be_are_left_out_and_counted(segment: dict[str, Any], notice: str) -> None:
    track = read_track([{"text": "x", **segment}])
    assert texts_and_times(track) == [("x", None, None)]
    assert notice in str(track.notice)


def test_numbers_speakers_names_and_other_fields_are_kept() -> None:
    segment = {
        "text": "x",
        "chunk_idx": 7,
        "speaker": "Bo",
        "entities": ["car", 3],
        "cam": "north",
        "deep": {"a": 1},
    }
    (caption,) = read_track([segment]).captions
    assert (caption.index, caption.key, caption.speaker, caption.entities) == (7, None, "Bo", ("car",))
    assert caption.metadata == {"cam": "north", "deep": {"a": 1}}


def test_what_a_stream_exports_comes_back_as_it_was() -> None:
    row = {
        "text": " Not. Two.", "start": 1.0, "end": 2.0, "index": 3, "speaker": "Bo", "entities": ["car"],
        "metadata": {"cues": [[0, 1.0, 2.0]], "shot": None}, "vector": [0, 0.5],
    }  # fmt: skip
    lines = [json.dumps({**row, "key": key}) for key in ("k", "l")]
    for text in ("\n".join(lines), f"[{','.join(lines)}]"):
        first, second = read_caption_file(text, "a.ndjson", sentences=True).captions
        assert (first.key, second.key, first.index, first.vector) == ("k", "l", 3, (0.0, 0.5))
        assert (first.text, first.start, first.end, first.speaker) == (" Not. Two.", 1.0, 2.0, "Bo")
        assert first.metadata == row["metadata"]


def test_keys_that_stand_twice_are_not_used() -> None:
    track = read_track([{"text": "x", "key": "k"}, {"text": "y", "key": "k"}])
    assert [caption.key for caption in track.captions] == ["a.json#1", "a.json#2"]
    assert track.notice == "captions with ambiguous keys, renamed: 2"


def test_numbers_that_do_not_tell_captions_apart_are_not_used() -> None:
    track = read_track([{"text": "x", "i": 3}, {"text": "y", "i": 3}, {"text": "z"}])
    assert [(caption.index, caption.key) for caption in track.captions] == [
        (1, "a.json#1"),
        (2, "a.json#2"),
        (3, "a.json#3"),
    ]
    assert track.notice == "captions with ambiguous numbers, renumbered: 2"


def test_lines_of_several_recordings_count_in_each() -> None:
    lines = [
        json.dumps({"video": video, "i": i, "start_s": i, "text": "t"}) for video in (1, 2) for i in (0, 1)
    ]
    track = read_track("\n".join([*lines, "", "{broken", "[]"]), "a.jsonl")
    assert [(caption.metadata["video"], caption.index, caption.key) for caption in track.captions] == [
        ("1", 0, "a.jsonl#1"),
        ("1", 1, "a.jsonl#2"),
        ("2", 0, "a.jsonl#3"),
        ("2", 1, "a.jsonl#4"),
    ]
    assert track.notice == (
        "lines that are not JSON, skipped: 1; items that are not captions, skipped: 1; "
        "recordings in one file, each named `video` in the metadata: 2"
    )


def test_lines_are_known_without_the_ending() -> None:
    track = read_track('{"text": "a", "start": 1}\n{"text": "b", "start": 2}\n', "captions.txt")
    assert texts_and_times(track) == [("a", 1.0, None), ("b", 2.0, None)]


def test_a_line_alone_may_be_a_caption_or_a_list() -> None:
    assert texts_and_times(read_track('{"text": "a", "start": 1}', "a.jsonl")) == [("a", 1.0, None)]
    assert len(read_track(json.dumps(WHISPER), "a.jsonl").captions) == 2


def test_a_value_that_breaks_off_is_an_error_and_no_shorter_file() -> None:
    file_text = json.dumps([{"text": "a", "start": 1}, {"text": "b", "start": 2}], indent=1)
    for text in (file_text[:-1], file_text[: len(file_text) // 2]):
        with pytest.raises(UnreadableFile, match="not valid JSON"):
            read_track(text)


def test_a_line_that_breaks_off_is_counted() -> None:
    track = read_track('{"text": "a", "start": 1}\n{"text": "b", "sta')
    assert texts_and_times(track) == [("a", 1.0, None)]
    assert track.notice == "lines that are not JSON, skipped: 1"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "{}",
        "[]",
        "[1, 2]",
        '{"captions": []}',
        "{",
        '{"segments": "x"}',
        "null",
    ],
)
def test_json_without_captions_is_an_error(text: str) -> None:
    for name in ("a.json", "a.jsonl"):
        with pytest.raises(UnreadableFile):
            read_caption_file(text, name)


def test_what_cannot_be_stored_is_replaced() -> None:
    track = read_track(
        '[{"text": "a\\u0000b\\ud800", "start": 1, "speaker": "\\u0000", "y": 1e999, "z": NaN}]'
    )
    (caption,) = track.captions
    assert (caption.text, caption.speaker, dict(caption.metadata)) == ("a\ufffdb\ufffd", "\ufffd", {})
    assert track.notice == "captions with characters that cannot be stored, which were replaced: 1"


@pytest.mark.parametrize("value", [EVENTS, WHISPER, [{"text": "x", "start": 0, "duration": 1}]])
def test_a_file_of_captions_is_told_from_records(value: object) -> None:
    assert is_caption_file(json.dumps(value), "a.json")


@pytest.mark.parametrize(
    "value", [[{"text": "x", "start": "Monday"}], {"text": "start"}, [{"text": "x", "from": "Bo"}]]
)
def test_other_records_are_no_captions(value: object) -> None:
    assert not is_caption_file(json.dumps(value), "a.json")
