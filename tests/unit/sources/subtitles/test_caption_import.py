"""Captions of subtitle files: every cue with text becomes a document at its time, the rest is counted."""

import pytest

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.sources.subtitles.caption_import import read_caption_file
from conspectus.sources.subtitles.cue_blocks import SUBRIP, Block, read_blocks

SRT = """1
00:00:01,500 --> 00:00:04,000
<i>Hello</i> &amp; {\\an8}welcome
to the show

2
00:00:05,000 --> 00:00:06,000

3
01:00:07,250 --> 01:00:08,000 X1:10 X2:20
2<3 and 5>4 &lt;b&gt;
"""
VTT = """WEBVTT - a title
Kind: captions

NOTE
not spoken --

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start
<v.loud Mary Ann>Hi <00:01.500><c.red>there</c></v>

00:03.000 --> 00:04.500
- one
- two
"""


def read_cues(text: str) -> tuple[list[Block], int]:
    return read_blocks(text, SUBRIP)


def test_srt_cues_become_captions_in_order() -> None:
    track = read_caption_file(SRT, "talks/a.srt")
    first, last = track.captions
    assert track.notice == "captions without text, skipped: 1"
    assert first.text == "Hello & welcome\nto the show"
    assert last.text == "2<3 and 5>4 <b>"
    assert [caption.index for caption in track.captions] == [1, 3]
    assert (first.start, first.end, last.start, last.end) == (1.5, 4.0, 3607.25, 3608.0)


def test_vtt_notes_styles_and_names_are_not_text() -> None:
    track = read_caption_file(VTT, "b.vtt")
    assert [(caption.text, caption.speaker) for caption in track.captions] == [
        ("Hi there", "Mary Ann"),
        ("- one\n- two", None),
    ]
    assert track.notice is None


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("00:00:01 --> 00:00:10", (1.0, 10.0)),
        ("0:01.5-->0:02.25", (1.5, 2.25)),
        ("00:00:01.000 -> 00:00:02.000", (1.0, 2.0)),
        ("  120:00.000  -->  120:10.000  ", (7200.0, 7210.0)),
        ("100:00:00,000 --> 100:00:01,000", (360000.0, 360001.0)),
        ("00:05.000 --> 00:01.000", (5.0, 1.0)),
        ("-00:00:01.000 --> 00:00:01.000", (-1.0, 1.0)),
        ("99999999:00:00 --> 99999999:00:01", (359999996400.0, 359999996401.0)),
        ("00:00:00,1234567 --> 00:00:00,0010", (0.123456, 0.001)),
    ],
)
def test_unusual_times_are_understood(line: str, times: tuple[float, float]) -> None:
    cues, stray = read_cues(f"{line}\ntext")
    assert [(cue.start, cue.end, cue.lines) for cue in cues] == [(*times, ["text"])]
    assert stray == 0


def test_cues_without_a_blank_line_between_them_stay_apart() -> None:
    cues, stray = read_cues(
        "1\n00:01,0 --> 00:02,0\none\n2\n00:02,0 --> 00:03,0\ntwo\n00:03,0 --> 00:04,0\nthree"
    )
    assert [cue.lines for cue in cues] == [["one"], ["two"], ["three"]]
    assert stray == 0


def test_text_after_a_blank_line_still_belongs_to_its_cue() -> None:
    cues, stray = read_cues("1\n00:01,000 --> 00:02,000\none\n\nmore\n\n2\n00:03,000 --> 00:04,000\ntwo")
    assert [cue.lines for cue in cues] == [["one", "more"], ["two"]]
    assert stray == 0


def test_a_cue_without_readable_times_is_counted_not_hidden() -> None:
    text = "1\n00:01,000 --> 00:02,000\none\n\n2\nno times\n\n3\n00:aa --> 00:bb\nbad\n"
    track = read_caption_file(text, "a.srt")
    assert [caption.text for caption in track.captions] == ["one"]
    assert track.notice == "lines outside of captions, skipped: 5"


def test_a_file_says_its_title_and_language() -> None:
    track = read_caption_file(
        "WEBVTT - My talk\nKind: captions\nLanguage: de\n\n00:01.000 --> 00:02.000\nJa.", "a"
    )
    assert (track.title, track.language) == ("My talk", "de")
    named = read_caption_file("WEBVTT\nTitle: Other: one\n\n00:01.000 --> 00:02.000\nJa.", "a.vtt")
    assert (named.title, named.language, named.notice) == ("Other: one", None, None)


def test_each_voice_of_a_cue_is_a_caption() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi!</v> <v Bo &amp; Co>Hey</v>\n<v Bo &amp; Co>you."
    track = read_caption_file(text, "a.vtt")
    assert [(caption.speaker, caption.text, caption.start) for caption in track.captions] == [
        ("Ann", "Hi!", 1.0),
        ("Bo & Co", "Hey\nyou.", 1.0),
    ]
    assert [caption.key for caption in track.captions] == ["a.vtt#1", "a.vtt#2"]


def test_a_note_in_subrip_is_text_but_not_in_webvtt() -> None:
    cue = "00:00:01,000 --> 00:00:02,000\none\n\nNOTE two\n"
    assert [caption.text for caption in read_caption_file(cue, "a.srt").captions] == ["one\nNOTE two"]
    assert [caption.text for caption in read_caption_file(f"WEBVTT\n\n{cue}", "a.srt").captions] == ["one"]


def test_times_that_no_clock_holds_are_changed_and_counted() -> None:
    times = [
        "-00:00:01,000 --> 00:00:02,000",
        "99999999:00:00 --> 99999999:00:01",
        "00:00:09,000 --> 00:00:05,000",
    ]
    track = read_caption_file("\n\n".join(f"{time}\ntext {time}" for time in times), "a.srt")
    assert [(caption.start, caption.end) for caption in track.captions] == [
        (0.0, 2.0),
        (None, None),
        (9.0, 9.0),
    ]
    assert track.notice == (
        "captions with times before 0, kept at 0: 1; "
        "captions with times beyond a million hours, kept without times: 2; "
        "captions that end before they start, kept as instants: 1"
    )


def test_the_same_caption_twice_stands_once() -> None:
    cue = "00:00:01,000 --> 00:00:02,000\nYes.\n\n"
    track = read_caption_file(cue + cue + cue.replace("02,", "03,"), "a.srt")
    assert [(caption.text, caption.end) for caption in track.captions] == [("Yes.", 2.0), ("Yes.", 3.0)]
    assert track.notice == "duplicate captions with equal times, kept once: 1"


def test_a_header_alone_is_empty_and_rubbish_is_an_error() -> None:
    assert read_caption_file("WEBVTT\n\nNOTE nothing", "a.vtt").captions == ()
    with pytest.raises(UnreadableFile, match="no caption was found"):
        read_caption_file("1\n00:01,000 --> 00:02,000\n\n", "a.srt")
    with pytest.raises(UnsupportedContent, match="unknown format of captions"):
        read_caption_file("some words\nand more", "a.txt")


def test_a_file_of_many_cues_keeps_each() -> None:
    text = "".join(
        f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:59:59,000\nline {n}\n\n" for n in range(3000)
    )
    track = read_caption_file(text, "long.srt")
    assert [caption.text for caption in track.captions] == [f"line {n}" for n in range(3000)]
