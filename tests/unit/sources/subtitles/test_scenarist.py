"""Formats with a markup of their own: SubStation Alpha, .sbv, SAMI and Scenarist captions."""

import pytest

from conspectus.errors import UnreadableFile
from conspectus.model.streams import CaptionTrack
from conspectus.sources.subtitles.caption_import import read_caption_file

SCRIPT = r"""[Script Info]
; made by hand
Title: My show
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""
SHOWN = [
    (r"{\i1}Hi{\i0},\Nthere\hyou, and {note}you", "Hi,\nthere you, and you"),
    (r"a\nb \{c\}", "a\nb {c}"),
    (r"{\p1}m 0 0 l 1 1{\p0}end {\pos(1,2)\pbo2}here", "end here"),
    (r"{\k20}ka{\kf30}ra{\ko10}o{\k20}ke", "karaoke"),
    ("{never closed", "{never closed"),
]
SAMI = """<SAMI><HEAD><TITLE>A &amp; B</TITLE><STYLE TYPE="text/css"><!--
.ENCC {Name: English; lang: en-US;} .FRCC { lang: fr-FR }
--></STYLE></HEAD><BODY>
<SYNC Start=1000><P Class=ENCC>One<br>more &lt;3<P Class=FRCC>Un
<SYNC Start=2500><P Class=ENCC>&nbsp;
<!-- <SYNC Start=2700><P Class=ENCC>not this -->
<SYNC Start='3000ms'><p class="ENCC"><i>Two</i></p><p class="FRCC">Deux</p>
</BODY></SAMI>
"""


def read_track(text: str, name: str) -> CaptionTrack:
    return read_caption_file(text, name)


def dialogue(text: str, *, start: str = "0:00:01.50", end: str = "0:00:02.25", name: str = "") -> str:
    return f"Dialogue: 0,{start},{end},Default,{name},0,0,0,,{text}\n"


@pytest.mark.parametrize(("written", "spoken"), SHOWN)
def test_what_players_show_of_a_dialogue_line(written: str, spoken: str) -> None:
    track = read_track(SCRIPT + dialogue(written, name="Ann"), "a.ass")
    assert [(caption.text, caption.start, caption.end, caption.speaker) for caption in track.captions] == [
        (spoken, 1.5, 2.25, "Ann")
    ]
    assert track.title == "My show"


def test_what_is_not_shown_is_counted() -> None:
    events = [
        dialogue("twice"), dialogue("twice"), dialogue(r"{\p1}m 0 0"), dialogue("when?", start="later"),
        "Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,aside\n", "Movie: x\n",
    ]  # fmt: skip
    track = read_track(SCRIPT + "".join(events), "a.txt")
    assert [(one.text, one.start) for one in track.captions] == [("twice", 1.5), ("when?", None)]
    assert track.notice is not None
    assert sorted(track.notice.split("; ")) == [
        "captions with invalid times, kept without times: 1",
        "comments, skipped: 1",
        "drawings, skipped: 1",
        "duplicate captions with equal times, kept once: 1",
        "lines outside of captions, skipped: 1",
    ]


def test_the_format_line_says_where_the_text_is_and_time_orders() -> None:
    script = "[Events]\nFormat: Start, Actor, Text, End\nDialogue: 0:00:05.00,Bo,late,9:59:59.99\n"
    track = read_track(script + "Dialogue: 0:00:01.00,,early,0:00:02.00\n", "a.ssa")
    assert [(one.text, one.start, one.end, one.speaker) for one in track.captions] == [
        ("early", 1.0, 2.0, None),
        ("late", 5.0, 35999.99, "Bo"),
    ]


def test_sbv_lines_may_be_broken_and_torn_times_are_counted() -> None:
    text = (
        "0:00:01.000,0:00:02.500\none[br]more\n\n0:00:0x.000,0:00:09.000\nlost\n\n0:00:03,0:00:04\ntwo, 3\n"
    )
    track = read_track(text, "captions")
    assert [(one.text, one.start, one.end) for one in track.captions] == [
        ("one\nmore", 1.0, 2.5),
        ("two, 3", 3.0, 4.0),
    ]
    assert track.notice == "lines outside of captions, skipped: 2"


def test_sami_shows_each_language_until_its_next_text() -> None:
    track = read_track(SAMI, "a.smi")
    assert [(one.text, one.start, one.end, one.metadata["language"]) for one in track.captions] == [
        ("One\nmore <3", 1.0, 2.5, "en-US"),
        ("Un", 1.0, 3.0, "fr-FR"),
        ("Two", 3.0, None, "en-US"),
        ("Deux", 3.0, None, "fr-FR"),
    ]
    assert (track.title, track.language, track.notice) == ("A & B", None, None)


def read_scc(*lines: str) -> CaptionTrack:
    return read_track("Scenarist_SCC V1.0\n\n" + "\n\n".join(lines), "a.scc")


def test_pop_on_captions_are_shown_by_one_code_and_cleared_by_another() -> None:
    track = read_scc(
        "00:00:01:00\t9420 9420 9470 9470 c8e9 2180 942f 942f",
        "00:00:03:00\t942c 942c",
        "00:00:04:00\t9420 9420 1340 1340 4c6f 13b0 91b7 91b7 942f",
    )
    assert [(one.text, one.start, one.end) for one in track.captions] == [
        ("Hi!", 1.201, 3.003),
        ("LÄ♪", 4.271, None),
    ]


def test_rolling_up_gives_each_line_once() -> None:
    line = "9425 9425 94ad 94ad 9470 9470"
    track = read_scc(f"00:00:01:00\t{line} 4f6e e580", f"00:00:02:00\t{line} 54f7 ef80", "00:00:03;00\t942c")
    assert [(one.text, one.start) for one in track.captions] == [("One", 1.201), ("Two", 2.202)]
    assert [one.end for one in track.captions] == [2.069, 3.003]


def test_painted_captions_begin_with_their_first_letter() -> None:
    track = read_scc("00:00:01:00\t9429 9429 9470 c8e9", "00:00:02:00\t942c")
    assert [(one.text, one.start, one.end) for one in track.captions] == [("Hi", 1.101, 2.002)]


def test_drop_frame_timecodes_follow_the_wall_clock() -> None:
    track = read_scc("01:00:00;00\t9429 9470 c8e9", "01:00:01;00\t942c")
    assert track.captions[0].start == pytest.approx(3600.06, abs=0.02)


def test_codes_that_mean_nothing_are_counted() -> None:
    track = read_scc("00:00:01:00\t9429 c8e9 zzzz 12", "nonsense", "00:00:02:00\t9420 9470 c8e9")
    assert [one.text for one in track.captions] == ["Hi"]
    assert track.notice == (
        "invalid codes, skipped: 2; lines outside of captions, skipped: 1; "
        "captions that are never shown, skipped: 1"
    )


@pytest.mark.parametrize("name", ["a.ass", "a.sbv", "a.smi", "a.scc", "a.bin", "noend"])
def test_what_holds_no_captions_is_an_error(name: str) -> None:
    with pytest.raises(UnreadableFile, match=r"no caption was found|unknown format of captions"):
        read_track("nothing of the kind\n", name)
