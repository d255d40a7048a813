"""Sentences across cues: where they end, their times, and that no text is lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.captions import NewCaption
from conspectus.sources.subtitles.cues import Cue
from conspectus.sources.subtitles.sentences import MARKED, UNMARKED, sentences

PIECES = [
    "Hello", "there.", "how", "Are you?", "Dr.", "J.", "3.5", "...", "(music)", "- Yes", ">> No", "嗨。",
    "你好\uff01", "はい",
    "ok", "“Go!”", "he said", "نعم؟", "हाँ।", "MAN:", "♪ la ♪", "\n", "\u3000", "a" * 300,
    "e\u0301" * 9, "\x85", "x\ty",
]  # fmt: skip


def make_cue(text: str, start: float | None, end: float | None, speaker: str | None = None) -> Cue:
    return Cue(start, end, text, speaker)


def cues_of_a_second(*texts: str) -> list[Cue]:
    return [make_cue(text, float(number), float(number + 1)) for number, text in enumerate(texts)]


def texts_of_sentences(cues: list[Cue]) -> list[str]:
    return [caption.text for caption in sentences(cues, "a")]


def letters(text: str) -> str:
    return "".join(text.split())


def test_a_sentence_has_the_times_of_its_cues() -> None:
    first, second, third = sentences(
        cues_of_a_second("It began. Then we", "went", "home. And slept"), "talk.srt"
    )
    assert [(caption.text, caption.start, caption.end) for caption in (first, second, third)] == [
        ("It began.", 0.0, 1.0),
        ("Then we went home.", 0.0, 3.0),
        ("And slept", 2.0, 3.0),
    ]
    assert second.metadata["cues"] == [[0, 0.0, 1.0], [8, 1.0, 2.0], [13, 2.0, 3.0]]
    assert [(caption.index, caption.key) for caption in (first, second, third)] == [
        (1, "talk.srt#1"),
        (2, "talk.srt#2"),
        (3, "talk.srt#3"),
    ]


@pytest.mark.parametrize(
    ("cue_texts", "expected"),
    [
        (["We met Dr.", "Smith. He left."], ["We met Dr. Smith.", "He left."]),
        (["See fig. 3 etc. I said no. He", "left."], ["See fig. 3 etc.", "I said no.", "He left."]),
        (["It costs 3.50 e.g. here. Good."], ["It costs 3.50 e.g. here.", "Good."]),
        (["J. K. Rowling came. This is plan B. Fine."], ["J. K. Rowling came.", "This is plan B.", "Fine."]),
        (["Wait...", "what?", "No!"], ["Wait... what?", "No!"]),
        (["“Go!” he said. “Now.” Then he", "left."], ["“Go!” he said.", "“Now.”", "Then he left."]),
        (["你好。你是", "谁\uff1f我不知道\uff01", "好"], ["你好。", "你是谁\uff1f", "我不知道\uff01", "好"]),
        (["「行こう\uff01」と", "言った。「はい。」"], ["「行こう\uff01」と言った。", "「はい。」"]),
        (["什么?好的!", "走吧"], ["什么?", "好的!", "走吧"]),
        (["هل هذا؟ نعم.", "لا\u06d4 هذا"], ["هل هذا؟", "نعم.", "لا\u06d4", "هذا"]),
        (["यह क्या है। वह", "गया। हाँ"], ["यह क्या है।", "वह गया।", "हाँ"]),
        (["I use", "ポッド and", "日本", "語 です。"], ["I use ポッド and 日本語 です。"]),
        (["everything here. is small. but", "it ends."], ["everything here.", "is small.", "but it ends."]),
        (["- Are you", "- Yes I", "am not"], ["- Are you", "- Yes I am not"]),
        (["I think", ">> You do", "MAN: Stop", "it."], ["I think", ">> You do", "MAN: Stop it."]),
        (["He said", "[music]", "that."], ["He said", "[music]", "that."]),
        (["a well-", "known - thing."], ["a well- known - thing."]),
    ],
)  # fmt: skip
def test_where_sentences_end(cue_texts: list[str], expected: list[str]) -> None:
    assert texts_of_sentences(cues_of_a_second(*cue_texts)) == expected


def test_nothing_goes_on_over_a_change_of_speaker_a_pause_or_a_step_back() -> None:
    assert texts_of_sentences([make_cue("We went", 0, 1, "Ann"), make_cue("home now.", 1, 2, "Bo")]) == [
        "We went",
        "home now.",
    ]
    pause = MARKED.pause
    assert texts_of_sentences([make_cue("We went", 0, 1), make_cue("home.", 1 + pause, 9)]) == [
        "We went home."
    ]
    assert texts_of_sentences([make_cue("We went", 0, 1), make_cue("home.", 1.1 + pause, 9)]) == [
        "We went",
        "home.",
    ]
    assert texts_of_sentences([make_cue("We went", 5, 6), make_cue("home.", 4, 5)]) == ["We went", "home."]
    assert texts_of_sentences([make_cue("We went", 5, 6), make_cue("home.", None, None)]) == [
        "We went",
        "home.",
    ]
    assert texts_of_sentences([make_cue("We went", None, None), make_cue("home.", None, None)]) == [
        "We went home."
    ]


def test_instants_count_as_times_and_stay_as_they_are_given() -> None:
    early, late = "2026-01-05T10:00:00Z", "2026-01-05T11:00:02+01:00"
    (one,) = sentences([Cue(early, early, "We went"), Cue(late, None, "home.")], "a")
    assert (one.start, one.end) == (early, None)
    assert one.metadata["cues"] == [[0, early, early], [8, late, None]]


def test_a_sentence_without_end_is_cut_at_the_borders_of_cues() -> None:
    long = [make_cue(f"Word {number} goes on and", number * 5.0, number * 5.0 + 5) for number in range(100)]
    captions = sentences([make_cue("Fine.", 0, 0), *long, make_cue("Done.", 500, 501)], "a")
    assert all(len(caption.text) <= MARKED.characters for caption in captions)
    assert max(float(str(caption.end)) - float(str(caption.start)) for caption in captions) <= MARKED.seconds
    assert [caption.text.startswith(("Fine", "Word", "Done")) for caption in captions] == [True] * len(
        captions
    )


def test_a_cue_that_is_too_long_is_cut_at_spaces_or_between_letters() -> None:
    captions = sentences([make_cue("Go. " + "word " * 300 + "e\u0301" * 700, 0, 9)], "a")
    assert all(
        len(caption.text) <= MARKED.characters and (caption.start, caption.end) == (0, 9)
        for caption in captions
    )
    assert not any(caption.text.startswith("\u0301") or caption.text.endswith("wor") for caption in captions)


def test_automatic_captions_without_marks_are_cut_at_pauses_and_lengths() -> None:
    spoken = [
        make_cue("so we take the first line here", number * 2.0, number * 2.0 + 2) for number in range(60)
    ]
    captions = sentences([*spoken, make_cue("after a pause", 120 + UNMARKED.pause * 1.1, 125)], "a")
    assert captions[-1].text == "after a pause"
    assert all(60 < len(caption.text) <= UNMARKED.characters for caption in captions[:-1])
    assert all(
        float(str(caption.end)) - float(str(caption.start)) <= UNMARKED.seconds for caption in captions
    )


def test_what_all_cues_of_a_sentence_say_is_kept() -> None:
    one = Cue(0, 1, "We", entities=("Ann", "car"), metadata={"video": "v", "shot": 1})
    two = Cue(1, 2, "go.", entities=("car", "Bo"), metadata={"video": "v", "shot": 2})
    (caption,) = sentences([one, two], "a")
    assert caption.entities == ("Ann", "car", "Bo")
    assert {name: caption.metadata[name] for name in caption.metadata if name != "cues"} == {"video": "v"}


def test_tracks_and_recordings_do_not_mix() -> None:
    cues = [Cue(0, 1, "We", track="en"), Cue(0, 1, "Nous", track="fr"), Cue(1, 2, "go.", track="en")]
    assert texts_of_sentences([*cues, Cue(1, 2, "allons.", track="fr")]) == ["We go.", "Nous allons."]
    videos = [Cue(0, 1, "One.", track=name, metadata={"video": name}) for name in ("a", "b")]
    assert [(caption.index, caption.key) for caption in sentences(videos, "f")] == [(1, "f#1"), (1, "f#2")]


def require_every_letter(captions: tuple[NewCaption, ...], cues: list[Cue]) -> None:
    """Every character is found again in the cue that its sentence says it is of."""
    rest = iter([(letter, cue) for cue in cues for letter in letters(cue.text)])
    for sentence in captions:
        marks = sentence.metadata["cues"]
        assert isinstance(marks, list)
        assert next(mark[0] for mark in marks) == 0
        assert all(mark[0] < following[0] for mark, following in pairwise(marks))
        assert (sentence.start, sentence.end) == (marks[0][1], marks[-1][2])
        for (offset, start, end), (until, *_) in pairwise([*marks, [len(sentence.text)]]):
            for letter in letters(sentence.text[offset:until]):
                expected, cue = next(rest)
                assert (letter, start, end) == (expected, cue.start, cue.end)
    assert next(rest, None) is None


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(PIECES) | st.text(max_size=6), min_size=1, max_size=8).map(" ".join),
            st.floats(0, 8),
            st.floats(-2, 8),
            st.sampled_from([None, "Ann", "Bo"]),
        ),
        max_size=25,
    )
)
def test_nothing_but_white_space_is_lost_and_every_letter_keeps_its_times(
    rows: list[tuple[str, float, float, str | None]],
) -> None:
    now, cues = 0.0, []
    for text, length, gap, speaker in rows:
        now = max(0.0, now + gap)
        cues.append(Cue(now, now + length, text, speaker))
    require_every_letter(sentences(cues, "a"), cues)
