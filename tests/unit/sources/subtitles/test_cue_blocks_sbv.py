"""Blocks of .sbv, the format of YouTube."""

from conspectus.sources.subtitles.caption_import import read_caption_file


def test_sbv_lines_may_be_broken_and_torn_times_are_counted() -> None:
    text = (
        "0:00:01.000,0:00:02.500\none[br]more\n\n0:00:0x.000,0:00:09.000\nlost\n\n0:00:03,0:00:04\ntwo, 3\n"
    )
    track = read_caption_file(text, "captions")
    assert [(caption.text, caption.start, caption.end) for caption in track.captions] == [
        ("one\nmore", 1.0, 2.5),
        ("two, 3", 3.0, 4.0),
    ]
    assert track.notice == "lines outside of captions, skipped: 2"
