"""Rolling captions: each line once, from when it was first shown until the next begins."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from conspectus.sources.subtitles.caption_import import read_caption_file
from conspectus.sources.subtitles.cues import Cue
from conspectus.sources.subtitles.rolling_captions import unroll

YOUTUBE = """WEBVTT
Kind: captions
Language: en

00:00:00.000 --> 00:00:02.000 align:start position:0%
\x20
hello<00:00:00.500><c> world</c>

00:00:02.000 --> 00:00:02.010 align:start position:0%
hello world
\x20

00:00:02.010 --> 00:00:04.000 align:start position:0%
hello world
yeah

00:00:04.000 --> 00:00:04.010 align:start position:0%
yeah
\x20

00:00:04.010 --> 00:00:06.000 align:start position:0%
yeah
yeah<00:00:04.500><c> right</c>

00:00:06.000 --> 00:00:06.010 align:start position:0%
yeah right
\x20

00:00:09.000 --> 00:00:11.000 align:start position:0%
\x20
after<00:00:09.500><c> silence</c>

00:00:11.000 --> 00:00:11.500 align:start position:0%
after silence
\x20
"""
Row = tuple[str, object, object]


def unroll_rows(cues: list[tuple[str, float, float]]) -> list[Row]:
    timed_cues = [
        Cue(start, end, text, position=position) for position, (text, start, end) in enumerate(cues)
    ]
    return [(cue.text, cue.start, cue.end) for cue in unroll(timed_cues, Counter())]


def test_automatic_captions_of_youtube_give_each_line_once() -> None:
    track = read_caption_file(YOUTUBE, "a.vtt")
    assert [(caption.text, caption.start, caption.end) for caption in track.captions] == [
        ("hello world", 0.0, 2.01),
        ("yeah", 2.01, 4.01),
        ("yeah right", 4.01, 6.01),
        ("after silence", 9.0, 11.5),
    ]
    assert track.notice == "rolling captions, repeated lines removed: 6"
    assert [caption.index for caption in track.captions] == [1, 3, 5, 7]


def test_the_same_as_subrip_without_times_of_words() -> None:
    plain = YOUTUBE.partition("en\n\n")[2].replace("<c>", "").replace("</c>", "")
    track = read_caption_file(plain.replace("<00:00:00.500>", ""), "a.srt")
    assert [caption.text for caption in track.captions] == [
        "hello world",
        "yeah",
        "yeah right",
        "after silence",
    ]


def test_three_lines_that_roll_up() -> None:
    lines = [f"line {number}" for number in range(6)]
    rolling = [("\n".join(lines[max(0, n - 2) : n + 1]), float(n), float(n + 1)) for n in range(6)]
    assert unroll_rows(rolling) == [(line, float(n), float(n + 1)) for n, line in enumerate(lines)]


def test_a_chorus_is_left_alone() -> None:
    chorus = [("Yes.", float(n), float(n + 1)) for n in range(20)]
    assert unroll_rows(chorus) == chorus
    two = [("Let it be\nlet it be", float(n), float(n + 1)) for n in range(20)]
    assert unroll_rows(two) == two


def test_a_line_that_is_taken_up_now_and_then_is_left_alone() -> None:
    cues = [(f"a {n}\nb {n}", float(n), float(n + 1)) for n in range(20)]
    cues[5] = ("b 4\nc", 5.0, 6.0)
    cues[10] = ("b 9\nd", 10.0, 11.0)
    assert unroll_rows(cues) == cues


def test_repeated_lines_after_a_pause_are_spoken_again() -> None:
    rolling = [
        ("a", 0.0, 1.0),
        ("a\nb", 1.0, 2.0),
        ("b\nc", 2.0, 3.0),
        ("c\nd", 3.0, 4.0),
        ("d\ne", 9.0, 10.0),
    ]
    assert unroll_rows(rolling)[-2:] == [("d", 3.0, 4.0), ("d\ne", 9.0, 10.0)]


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=5, max_size=40), st.integers(2, 4))
def test_any_lines_rolled_up_come_out_as_they_were_spoken(lines: list[str], height: int) -> None:
    spoken = [f"{number} {line}" for number, line in enumerate(lines)]
    rolling = [
        ("\n".join(spoken[max(0, n - height + 1) : n + 1]), float(n), float(n + 1))
        for n in range(len(spoken))
    ]
    assert unroll_rows(rolling) == [(line, float(n), float(n + 1)) for n, line in enumerate(spoken)]


def roll_like_youtube(lines: list[str]) -> list[tuple[str, float, float]]:
    """Two lines at a time, the new one below; between them a moment with the lower one alone."""
    cues: list[tuple[str, float, float]] = []
    for number, (above, line) in enumerate(zip(["", *lines], lines, strict=False)):
        now = 2.0 * number
        cues.extend([(f"{above}\n{line}".strip(), now, now + 1.99), (line, now + 1.99, now + 2.0)])
    return cues


@given(st.lists(st.sampled_from(["yeah", "no", "[Music]"]), min_size=4, max_size=30))
def test_lines_that_are_spoken_again_stay_as_often_as_they_were_spoken(lines: list[str]) -> None:
    expected = [(line, 2.0 * number, 2.0 * number + 2.0) for number, line in enumerate(lines)]
    assert unroll_rows(roll_like_youtube(lines)) == expected


@given(st.lists(st.text("ab", min_size=1, max_size=2), max_size=30))
def test_cues_of_one_line_are_never_touched(lines: list[str]) -> None:
    cues = [(line, float(n), float(n + 1)) for n, line in enumerate(lines)]
    assert unroll_rows(cues) == cues


def test_many_lines_in_one_cue_take_no_longer_than_their_number() -> None:
    wall = "a\n" * 200_000
    assert len(unroll_rows([(wall, 0.0, 1.0), (wall, 1.0, 2.0), (wall, 2.0, 3.0)])) == 3
