"""Captions: every cue with text becomes a document at its time, and what is left out is said."""

from datetime import UTC, datetime, timedelta

import pytest

from conspectus.errors import UnreadableFile
from conspectus.model.records import Period
from conspectus.sources.parsers import parse_text
from conspectus.sources.subtitles import captions, read_cues

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


def test_srt_cues_become_captions_in_order() -> None:
    documents, notice = captions(SRT, "talks/a.srt", "a")
    first, last = documents
    assert notice is None
    assert first.text == "Hello & welcome\nto the show"
    assert last.text == "2<3 and 5>4 <b>"
    assert [one.key for one in documents] == ["talks/a.srt#1", "talks/a.srt#3"]
    assert [one.sequence for one in documents] == [1, 3]
    assert {(one.kind, one.thread, one.title) for one in documents} == {("caption", "talks/a.srt", "a")}
    assert first.metadata == {"start": 1.5, "end": 4.0}
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert last.occurred == Period(
        start + timedelta(hours=1, seconds=7.25), start + timedelta(hours=1, seconds=8)
    )


def test_vtt_notes_styles_and_names_are_not_text() -> None:
    documents, notice = captions(VTT, "b.vtt", "b")
    assert [(one.text, one.author) for one in documents] == [("Hi there", "Mary Ann"), ("- one\n- two", None)]
    assert notice is None


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("00:00:01 --> 00:00:10", (1.0, 10.0)),
        ("0:01.5-->0:02.25", (1.5, 2.25)),
        ("00:00:01.000 -> 00:00:02.000", (1.0, 2.0)),
        ("  120:00.000  -->  120:10.000  ", (7200.0, 7210.0)),
        ("100:00:00,000 --> 100:00:01,000", (360000.0, 360001.0)),
        ("00:05.000 --> 00:01.000", (5.0, 5.0)),
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
    documents, notice = captions(text, "a.srt", "a")
    assert [one.text for one in documents] == ["one"]
    assert notice == "5 lines belong to no caption and were left out"


def test_a_header_alone_is_empty_and_rubbish_is_an_error() -> None:
    assert parse_text("WEBVTT\n\nNOTE nothing", name="a.vtt", path="a.vtt") == (
        (),
        "the file has no captions",
    )
    with pytest.raises(UnreadableFile, match="no caption was found"):
        parse_text("some words\nand more", name="a.srt", path="a.srt")
    with pytest.raises(UnreadableFile, match="no caption was found"):
        parse_text("1\n00:01,000 --> 00:02,000\n\n", name="a.srt", path="a.srt")


def test_a_file_of_many_cues_keeps_each() -> None:
    text = "".join(
        f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:59:59,000\nline {n}\n\n" for n in range(3000)
    )
    documents, _ = captions(text, "long.srt", "long")
    assert [one.text for one in documents] == [f"line {n}" for n in range(3000)]
