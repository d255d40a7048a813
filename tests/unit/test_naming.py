"""Names of who and what is seen: which are one, and which texts say them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.streams.naming import common_names, folded, says


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ann", "ANN waits"),
        ("Ann", "that is Ann's bag"),
        ("Ann", "Mary-Ann"),
        ("the red  car", "The\nRED car stops"),
        ("Zoë", "Zoe\u0308 waves"),
        ("STRASSE", "die Straße"),
        ("C++", "written in C++."),
        ("東京", "東京都に行く"),
        ("🔥", "oh🔥no"),
        ("a.b*c", "see a.b*c"),
    ],
)
def test_a_text_says_a_name(name: str, text: str) -> None:
    assert says(name)(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ann", "Annabel"),
        ("ann", "joann"),
        ("ann", "ann_7"),
        ("ann", ""),
        ("a.b*c", "aXbbc"),
        ("red car", "the car is red"),
        ("", "anything"),
        ("   ", "any   thing"),
    ],
)
def test_a_text_does_not_say_it(name: str, text: str) -> None:
    assert not says(name)(text)


def test_the_most_frequent_spelling_stands_for_all() -> None:
    given_names = {"ANN": 1, "Ann": 5, "ann ": 2, "Bo": 8, "bo": 8, "": 3, " ": 1}
    assert list(common_names(given_names).items()) == [("Bo", 16), ("Ann", 8)]


@given(st.text(max_size=20))
def test_every_text_says_itself(name: str) -> None:
    assert says(name)(name) == bool(folded(name))
    assert folded(folded(name)) == folded(name)
