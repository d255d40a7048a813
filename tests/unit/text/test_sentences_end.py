"""Where a text is cut: at the last end of a sentence or a word within a limit."""

import pytest

from conspectus.text.sentences import sentence_end_before


def test_a_text_is_cut_at_its_last_sentence():
    text = "First sentence. Second one! Third goes on and on"
    assert text[: sentence_end_before(text, 30)] == "First sentence. Second one!"
    assert text[: sentence_end_before(text, 40)] == "First sentence. Second one!"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("all of it", 9, "all of it"),
        ("all of it", 100, "all of it"),
        ("anything", 0, ""),
        ("anything", -5, ""),
        ("", 3, ""),
        ("one two three", 9, "one two"),
        ("version 1.25 is out now", 11, "version"),
        ("A. word after word after word", 20, "A. word after word"),
        ("一つ目の文。二つ目の文", 8, "一つ目の文。"),
        ("unbroken", 4, "unbr"),
        ("line one\nline two goes on", 14, "line one"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301"),
    ],
)
def test_where_a_text_is_cut(text, limit, expected):
    assert text[: sentence_end_before(text, limit)] == expected


@pytest.mark.parametrize("piece", ["x", "e\u0301", "\u0301", ". ", "\n", " \u0301", "🇩🇪"])
def test_huge_texts_are_cut_within_the_limit(piece):
    text = piece * 1_000_000
    assert 900_000 - 2_100 <= sentence_end_before(text, 900_000) <= 900_000


@pytest.mark.parametrize(
    ("text", "limit", "beginning"),
    [
        ("One two. Three", 8, "One two."),
        ("One two. Three", 9, "One two."),
        ("One two. Three", 7, "One two"),
        ("One. Two three four", 8, "One. Two"),
        ("One. Two three four", 7, "One."),
        ("One two three", 7, "One two"),
        ("One two three", 6, "One tw"),
        ("ab cdefgh", 6, "ab cde"),
        ("ab cdefgh", 3, "ab"),
        ("x", 0, ""),
        ("xy", 1, "x"),
    ],
)
def test_a_cut_comes_after_the_last_sentence_or_word_of_the_second_half(
    text: str, limit: int, beginning: str
) -> None:
    assert text[: sentence_end_before(text, limit)] == beginning
