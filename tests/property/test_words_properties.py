import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.text.analyzer import MAX_TERM_LENGTH, Analyzer

EVAL = Path(os.environ.get("CONSPECTUS_EVAL", Path(__file__).parents[3] / "shared" / "eval"))
FRAGMENTS = [
    "HTTP",
    "404",
    "_",
    ".",
    "-",
    "'",
    "\u2019",
    "@",
    "::",
    "://",
    ",000",
    "v2",
    "the",
    "É",
    "İ",
    "ß",
    "猫",
    "👍",
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=20).map("".join)
shared = Analyzer()
everything = Analyzer(None, stop_words=False)


@settings(max_examples=tries(500), deadline=None)
@given(TEXTS)
@example("HTTP://::")
def test_terms_are_bounded_not_empty_and_the_same_every_time(text):
    terms = shared.terms(text)
    assert terms == Analyzer().terms(text)
    assert all(0 < len(term) <= MAX_TERM_LENGTH for term in terms)
    assert not any(character.isspace() for term in terms for character in term)


@settings(max_examples=tries(300), deadline=None)
@given(TEXTS, TEXTS)
def test_terms_of_two_texts_are_those_of_each_in_order(one, other):
    assert everything.terms(f"{one} {other}") == everything.terms(one) + everything.terms(other)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=MAX_TERM_LENGTH))
def test_case_makes_no_difference_to_a_word(word):
    assert (
        everything.terms(word) == everything.terms(word.upper()) == everything.terms(word.title()) == [word]
    )


@settings(max_examples=tries(300), deadline=None)
@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12))
def test_letters_and_digits_are_never_lost(word):
    assert everything.terms(word)


@pytest.mark.data
def test_naughty_strings():
    file = EVAL / "naughty_strings" / "blns.json"
    if not file.exists():
        pytest.skip(f"evaluation data not found: {file}")
    for text in json.loads(file.read_text(encoding="utf-8")):
        terms = everything.terms(text)
        assert bool(terms) or not any(character.isalnum() for character in text)
