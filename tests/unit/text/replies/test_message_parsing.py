"""Features of a parsed message, and the memory of a channel's past."""

import math

import numpy as np
import pytest

from conspectus.text.replies.forest import Forest
from conspectus.text.replies.message_parsing import (
    MAX_TEXT_LENGTH,
    MessageParser,
    NameMatcher,
    Participants,
    read,
)
from conspectus.text.replies.past import NO_PERSON, STRANGER, Past


def make_participants(*authors: str) -> Participants:
    people = Participants()
    for author in authors:
        people.join(author)
    return people


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("bob: hello", NameMatcher.ADDRESSED),
        ("BOB, hello", NameMatcher.ADDRESSED),
        ("@bob hello", NameMatcher.ADDRESSED),
        ("<@bob> hello", NameMatcher.ADDRESSED),
        ("bob : hello", NameMatcher.ADDRESSED),
        ("bob hello", NameMatcher.FIRST),
        ("ask @bob please", NameMatcher.MARKED),
        ("thanks, bob", NameMatcher.LAST),
        ("I saw bob there", NameMatcher.INSIDE),
        ("bobby: hello", NameMatcher.NOT),
        ("rebob hello", NameMatcher.NOT),
        ("", NameMatcher.NOT),
    ],
)
def test_a_name_is_found_with_how_it_is_used(text: str, how: NameMatcher) -> None:
    assert read(text, make_participants("Bob"), {}).named.get(0, NameMatcher.NOT) == how


def test_names_of_several_words_count_as_a_whole() -> None:
    people = make_participants("Mary Ann Lee", "mary")
    assert read("Mary Ann Lee: hello", people, {}).named == {0: NameMatcher.ADDRESSED, 1: NameMatcher.FIRST}
    assert read("@Mary Ann", people, {}).named == {1: NameMatcher.ADDRESSED}


def test_a_name_in_common_use_needs_a_mark() -> None:
    usage = {"usual": [1, 2, 3, 4, 5]}
    people = make_participants("usual")
    assert read("usual, as ever", people, usage).named == {0: NameMatcher.ADDRESSED}
    assert read("usual things as usual", people, usage).named == {}
    assert read("usual things as usual", people, {}).named == {0: NameMatcher.FIRST}


def test_somebody_who_is_not_there_is_a_stranger() -> None:
    reading = read("kate: look at this", make_participants("bob"), {})
    assert reading.stranger and reading.surest == NameMatcher.ADDRESSED and reading.words == ("look",)
    assert not read("so: look", make_participants("bob"), {}).stranger


@pytest.mark.parametrize("typed", ["cooldduudde:", "cooldduuuddee:", "@cooldduuudd", "cooldduuXdde:"])
def test_names_with_one_slip_are_known(typed: str) -> None:
    assert read(f"{typed} hello", make_participants("ann", "cooldduuudde"), {}).named == {
        1: NameMatcher.ADDRESSED
    }


def test_scripts_without_spaces_have_words_too() -> None:
    assert {"検索", "索文"} <= set(read("検索文書", Participants(), {}).words)


def test_only_the_beginning_is_read() -> None:
    assert read("x " * MAX_TEXT_LENGTH + "?", Participants(), {}).asks is False
    assert len(read("\u4e00" * 10_000, Participants(), {}).words) <= MAX_TEXT_LENGTH


def remember(past: Past, author: str | None, text: str, answers: str | None = None) -> MessageParser:
    reading = read(text, past.people, past.usage)
    past.add(str(past.first + len(past)), author, math.nan, reading=reading, answers=answers)
    return reading


def test_what_is_forgotten_leaves_nothing_behind() -> None:
    past = Past(4)
    for number in range(100):
        remember(past, f"author{number}", f"author{number - 1}: word{number} again")
    assert len(past) == len(past.keys) == len(past["author"]) == 4
    assert len(past.people) <= 5
    assert set(past.usage) == {"again", *(f"word{number}" for number in range(96, 100))}
    assert sum(len(named) for named in past.naming.values()) <= 4


def test_the_number_of_one_who_left_is_never_taken_for_the_next() -> None:
    past = Past(2)
    remember(past, "ann", "hello")
    remember(past, "bob", "ann: hello")
    remember(past, "bob", "still there?")
    remember(past, "cat", "hello")
    assert past.people.find("ann") == -1
    assert past.people.find("cat") not in (NO_PERSON, past.people.find("bob"))
    assert STRANGER not in past["addressee"]
    past = Past(2)
    remember(past, "ann", "hello")
    remember(past, "bob", "ann: hello")
    remember(past, "cat", "hello")
    assert past["addressee"].tolist() == [STRANGER, NO_PERSON]


def test_later_messages_are_counted() -> None:
    past = Past(10)
    remember(past, "ann", "hello")
    remember(past, "bob", "ann: hi", answers="0")
    remember(past, "ann", "how are you?", answers="1")
    assert past["later_by_author"].tolist() == [1, 0, 0]
    assert past["later_to_author"].tolist() == [1, 0, 0]
    assert past["later_in_thread"].tolist() == [2, 1, 0]
    assert past.roots == ["0", "0", "0"]
    assert past["partner"].tolist() == [NO_PERSON, 0, 1]


def test_a_forest_adds_its_trees() -> None:
    forest = Forest(
        ["a", "b"],
        [[0, 1], [1, 1]],
        thresholds=[[0.5, 10.0], [0.0, 20.0]],
        leaves=[[1, 2, 4, 8], [0.25, 0.5, 0.125, 0.0625]],
    )
    figures = {"a": np.array([0.0, 1.0, 0.5, math.nan]), "b": np.array([11.0, 11.0, -1.0, 21.0])}
    assert forest.sum_trees(figures, 4).tolist() == [2.125, 8.125, 1.25, 2.0625]
