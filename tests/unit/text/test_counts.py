"""Numbers with their nouns."""

import pytest

from conspectus.text.counts import format_count, plural_of


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "chunk", "0 chunks"),
        (1, "chunk", "1 chunk"),
        (1_024, "chunk", "1,024 chunks"),
        (1, "memory", "1 memory"),
        (2, "memory", "2 memories"),
        (2, "match", "2 matches"),
        (2, "index", "2 indexes"),
        (1.0, "day", "1 day"),
        (1.5, "day", "1.5 days"),
        (2, "reply chain", "2 reply chains"),
    ],
)
def test_a_noun_is_in_the_plural_unless_the_number_is_one(number: int, noun: str, text: str) -> None:
    assert format_count(number, noun) == text


def test_a_vowel_before_y_keeps_it() -> None:
    assert [plural_of(noun) for noun in ("key", "day", "entity")] == ["keys", "days", "entities"]
