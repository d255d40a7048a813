"""Runs of a query's words in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval.phrases import (
    MAX_PHRASE_WORDS,
    MIN_PHRASE_WORDS,
    MIN_QUOTATION_WORDS,
    longest_run,
    phrase_boost,
    phrase_words,
)

TEXT = "The quick, brown fox\njumps over the lazy dog; the quick cat sleeps."


@pytest.mark.parametrize(
    ("question", "run"),
    [
        ("brown FOX jumps over the", "brown fox jumps over the"),
        ("did the quick brown fox jump", ""),
        ("who said that the lazy dog the quick cat sleeps", "the lazy dog the quick cat sleeps"),
        ("lazy dog the", "lazy dog the"),
        ("lazy cat sleeps", ""),
        ("ick brown fox jumps over", ""),
        ("jumps over lazy dog the quick", ""),
        ("fox 7 jumps over a lazy the lazy", ""),
        ("brown fox a jumps over the", "brown fox jumps over the"),
    ],
)
def test_the_longest_run_counts(question: str, run: str) -> None:
    words = phrase_words(question)
    start, end = longest_run(words, TEXT)
    assert " ".join(words[start:end]) == run


@pytest.mark.parametrize("words", [0, MIN_PHRASE_WORDS - 1, MAX_PHRASE_WORDS + 1, 5_000])
def test_questions_of_another_length_hold_no_run(words: int) -> None:
    assert phrase_words("word " * words) == ()


@given(
    st.lists(st.sampled_from(["aa", "bb", "cc", "x"]), max_size=30),
    st.lists(st.sampled_from(["aa", "bb", "cc"]), min_size=3, max_size=12),
)
def test_a_run_is_the_longest_that_there_is(text: list[str], words: list[str]) -> None:
    starts = range(len(words))
    spoken = " ".join(text)
    text = [word for word in text if word != "x"]
    runs = [words[start:end] for start in starts for end in range(start + 1, len(words) + 1)]
    lengths = [len(run) for run in runs if any(text[at : at + len(run)] == run for at in range(len(text)))]
    longest = max(lengths, default=0)
    expected = longest if longest >= min(MIN_QUOTATION_WORDS, len(words)) else 0
    start, end = longest_run(words, spoken)
    assert end - start == expected


def test_a_share_is_the_run_of_all_words_that_say_something() -> None:
    words = phrase_words("who said that brown fox jumps over the hedge")
    share = pytest.approx(0.9 * (4 / 6) ** 3)
    assert phrase_boost(words, [TEXT, "nothing"], weight=0.9).tolist() == [share, 0.0]
    assert phrase_boost(words, []).tolist() == []
    assert phrase_boost(phrase_words("to be or not to be"), ["to be or not to be"]).tolist() == [0.0]
