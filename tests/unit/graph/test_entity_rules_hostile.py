import json
from itertools import pairwise

import pytest

from conspectus.graph.entity_rules import names_in, phrases
from conspectus.graph.gazetteer import Gazetteer

KNOWN = Gazetteer({"a": ["a a", "a", "A.", "C++"], "the": ["The Who"], "x": ["x" * 150]})
HOSTILE = {
    "capital words": "Capital " * 10_000,
    "distinct capital words": " ".join(f"Word{number}" for number in range(10_000)),
    "punctuation": ".,;:!?-_'\"`" * 100_000,
    "quotation marks": '"\u201c\u2018' * 60_000,
    "one long word": "A" * 1_000_000,
    "full stops between letters": "A." * 60_000,
    "joined by of": "A of " * 20_000,
    "possessives": "Ab's " * 10_000,
    "lines": "A\n" * 40_000,
    "slashes": "/a" * 60_000,
    "underscores": "a_" * 60_000,
    "at signs": "a@" * 60_000,
    "digits": "1." * 60_000,
    "spaced digits": "1 " * 20_000,
    "months": "May " * 10_000,
    "accents": "A" + "\u0301" * 60_000,
    "emoji": "👩‍👩‍👧‍👦" * 10_000,
    "directions": "\u202eA\u202c" * 20_000,
    "surrogates": "\ud800A " * 10_000,
    "no spaces": "東京都" * 20_000,
    "sharp s and dotted i": "İẞ " * 10_000,
    "nul": "A\0B " * 10_000,
}


def check_positions(text, mentions):
    assert all(
        text[mention.start : mention.end] == mention.text and mention.text and mention.key
        for mention in mentions
    )
    assert all(left.end <= right.start for left, right in pairwise(mentions))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_take_no_more_than_their_length(text):
    check_positions(text, names_in(text, KNOWN, with_numbers=True))


def test_long_runs_of_capitals_are_no_names():
    assert names_in(HOSTILE["capital words"]) == []


def test_phrases_of_a_long_text_are_bounded_by_its_words():
    assert len(phrases("Word " * 10_000)) <= 5
    assert len(phrases(" ".join(map(str, range(2_000))))) <= 10_000


@pytest.mark.data
def test_naughty_strings(evaluation):
    texts = json.loads((evaluation("naughty_strings") / "blns.json").read_text(encoding="utf-8"))
    for text in [*texts, "\n".join(texts)]:
        check_positions(text, names_in(text, KNOWN, with_numbers=True))
