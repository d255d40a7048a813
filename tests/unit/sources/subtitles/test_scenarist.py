"""Scenarist captions: codes that show, roll up, paint and clear."""

import pytest

from conspectus.model.captions import CaptionTrack
from conspectus.sources.subtitles.caption_import import read_caption_file


def read_scc(*lines: str) -> CaptionTrack:
    return read_caption_file("Scenarist_SCC V1.0\n\n" + "\n\n".join(lines), "a.scc")


def test_pop_on_captions_are_shown_by_one_code_and_cleared_by_another() -> None:
    track = read_scc(
        "00:00:01:00\t9420 9420 9470 9470 c8e9 2180 942f 942f",
        "00:00:03:00\t942c 942c",
        "00:00:04:00\t9420 9420 1340 1340 4c6f 13b0 91b7 91b7 942f",
    )
    assert [(caption.text, caption.start, caption.end) for caption in track.captions] == [
        ("Hi!", 1.201, 3.003),
        ("LÄ♪", 4.271, None),
    ]


def test_rolling_up_gives_each_line_once() -> None:
    line = "9425 9425 94ad 94ad 9470 9470"
    track = read_scc(f"00:00:01:00\t{line} 4f6e e580", f"00:00:02:00\t{line} 54f7 ef80", "00:00:03;00\t942c")
    assert [(caption.text, caption.start) for caption in track.captions] == [("One", 1.201), ("Two", 2.202)]
    assert [caption.end for caption in track.captions] == [2.069, 3.003]


def test_painted_captions_begin_with_their_first_letter() -> None:
    track = read_scc("00:00:01:00\t9429 9429 9470 c8e9", "00:00:02:00\t942c")
    assert [(caption.text, caption.start, caption.end) for caption in track.captions] == [
        ("Hi", 1.101, 2.002)
    ]


def test_drop_frame_timecodes_follow_the_wall_clock() -> None:
    track = read_scc("01:00:00;00\t9429 9470 c8e9", "01:00:01;00\t942c")
    assert track.captions[0].start == pytest.approx(3600.06, abs=0.02)


def test_codes_that_mean_nothing_are_counted() -> None:
    track = read_scc("00:00:01:00\t9429 c8e9 zzzz 12", "nonsense", "00:00:02:00\t9420 9470 c8e9")
    assert [caption.text for caption in track.captions] == ["Hi"]
    assert track.notice == (
        "invalid codes, skipped: 2; lines outside of captions, skipped: 1; "
        "captions that are never shown, skipped: 1"
    )
