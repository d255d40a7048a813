"""SubStation Alpha: lines of dialogue with a markup of their own."""

import pytest

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


def dialogue_line(text: str, *, start: str = "0:00:01.50", end: str = "0:00:02.25", name: str = "") -> str:
    return f"Dialogue: 0,{start},{end},Default,{name},0,0,0,,{text}\n"


@pytest.mark.parametrize(("written", "spoken"), SHOWN)
def test_what_players_show_of_a_dialogue_line(written: str, spoken: str) -> None:
    track = read_caption_file(SCRIPT + dialogue_line(written, name="Ann"), "a.ass")
    assert [(caption.text, caption.start, caption.end, caption.speaker) for caption in track.captions] == [
        (spoken, 1.5, 2.25, "Ann")
    ]
    assert track.title == "My show"


def test_what_is_not_shown_is_counted() -> None:
    events = [
        dialogue_line("twice"), dialogue_line("twice"), dialogue_line(r"{\p1}m 0 0"),
        dialogue_line("when?", start="later"),
        "Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,aside\n", "Movie: x\n",
    ]  # fmt: skip
    track = read_caption_file(SCRIPT + "".join(events), "a.txt")
    assert [(caption.text, caption.start) for caption in track.captions] == [("twice", 1.5), ("when?", None)]
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
    track = read_caption_file(script + "Dialogue: 0:00:01.00,,early,0:00:02.00\n", "a.ssa")
    assert [(caption.text, caption.start, caption.end, caption.speaker) for caption in track.captions] == [
        ("early", 1.0, 2.0, None),
        ("late", 5.0, 35999.99, "Bo"),
    ]
