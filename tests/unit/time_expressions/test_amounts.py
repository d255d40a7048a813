"""Amounts of time in a query, and the query without its time."""

from datetime import UTC, datetime, timedelta

import pytest

from conspectus.text.stream_clocks import StreamClock
from conspectus.text.times import EPOCH
from conspectus.time_expressions import ClockFace, find_time
from conspectus.time_expressions.grammar import ENGLISH_GRAMMAR
from conspectus.time_expressions.interpreter import Match, Parse
from conspectus.time_expressions.points import Amount
from conspectus.time_expressions.timeline import Timeline
from conspectus.time_expressions.tokens import split_into_tokens
from conspectus.time_expressions.vocabulary import DAY, HOUR, MINUTE, SECOND

FACE = ClockFace(
    StreamClock(),
    wall=False,
    first=EPOCH,
    last=EPOCH + timedelta(hours=1),
    now=datetime(2026, 1, 5, tzinfo=UTC),
)


def read_rule(rule: str, text: str) -> Match:
    """What a rule of the grammar reads at the start of a text."""
    tokens = split_into_tokens(text)
    return Parse(ENGLISH_GRAMMAR, tokens, Timeline(FACE, tokens, None)).read(rule, 0)


def read_amount(text: str, rule: str = "amount") -> tuple[Amount, str] | None:
    """The amount at the start of a text, and the text after it."""
    match = read_rule(rule, text)
    if match is None:
        return None
    return match[0], " ".join(token.text for token in split_into_tokens(text)[match[1] :])


@pytest.mark.parametrize(
    ("text", "seconds", "unit"),
    [
        ("5 minutes", 300, MINUTE),
        ("5.5 minutes", 330, SECOND),
        ("1.5 hours", 5_400, MINUTE),
        ("1 minute", 60, MINUTE),
        ("a minute", 60, MINUTE),
        ("90s", 90, SECOND),
        ("90S", 90, SECOND),
        ("2hrs", 7_200, HOUR),
        ("3MIN", 180, MINUTE),
        ("3 days", 3 * DAY, DAY),
        ("two weeks", 14 * DAY, 7 * DAY),
        ("1h2m3s", 3_723, SECOND),
        ("1h2m", 3_720, MINUTE),
        ("2m30.5s", 150.5, SECOND),
        ("five minutes", 300, MINUTE),
        ("twenty minutes", 1_200, MINUTE),
        ("twenty-five minutes", 1_500, MINUTE),
        ("twenty five minutes", 1_500, MINUTE),
        ("ninety nine seconds", 99, SECOND),
        ("nineteen seconds", 19, SECOND),
        ("hundred seconds", 100, SECOND),
        ("a hundred seconds", 100, SECOND),
        ("a dozen seconds", 12, SECOND),
        ("a couple of minutes", 120, MINUTE),
        ("couple of minutes", 120, MINUTE),
        ("a few hours", 3 * HOUR, HOUR),
        ("half an hour", 1_800, MINUTE),
        ("half hour", 1_800, MINUTE),
        ("a quarter of an hour", 900, MINUTE),
        ("three quarters of an hour", 2_700, MINUTE),
        ("half a minute", 30, SECOND),
        ("half a day", 12 * HOUR, HOUR),
        ("an hour and a half", 5_400, MINUTE),
        ("two and a half hours", 9_000, MINUTE),
        ("2 and a half minutes", 150, SECOND),
        ("2 hours and a half", 9_000, MINUTE),
        ("2 days & a half", 2.5 * DAY, HOUR),
        ("1 hour and 20 minutes", 4_800, MINUTE),
        ("1 hour 20 minutes and 5 seconds", 4_805, SECOND),
        ("1 hour, 20 minutes", 3_600, HOUR),
        ("0 seconds", 0, SECOND),
    ],
)
def test_an_amount_is_read_in_seconds_with_its_finest_unit(text: str, seconds: float, unit: float) -> None:
    amount = read_amount(text)
    assert amount is not None
    assert (amount[0].seconds, amount[0].unit, amount[0].attributive) == (seconds, unit, False)
    assert amount[1] in {"", ", 20 minutes"}


@pytest.mark.parametrize(
    ("text", "seconds", "left"),
    [
        ("5 minutes 10 minutes", 300, "10 minutes"),
        ("5 minutes and 1 hour", 300, "and 1 hour"),
        ("5 minutes and a dog", 300, "and a dog"),
        ("5 minutes and half", 300, "and half"),
        ("5 minutes a half", 300, "a half"),
        ("5 minutes and the half", 300, "and the half"),
        ("5 minutes of fire", 300, "of fire"),
        ("half of it", None, ""),
        ("twenty ten seconds", None, ""),
        ("five apples", None, ""),
        ("minutes", None, ""),
        ("5", None, ""),
        ("-5 minutes", None, ""),
        ("", None, ""),
    ],
)
def test_an_amount_ends_where_its_units_do(text: str, seconds: float | None, left: str) -> None:
    amount = read_amount(text)
    assert (None if amount is None else amount[0].seconds) == seconds
    assert amount is None or amount[1] == left


def test_only_a_whole_amount_has_smaller_units() -> None:
    assert read_amount("1 hour 20 minutes", "simple_amount") == (Amount(HOUR, HOUR, HOUR), "20 minutes")
    assert read_amount("1 hour 20 minutes") == (Amount(4_800, MINUTE, HOUR), "")


@pytest.mark.parametrize(
    ("text", "attributive"),
    [
        ("a five minute timer", True),
        ("5-minute timer", True),
        ("5-minutes", True),
        ("5 minute timer", True),
        ("1 minute", False),
        ("one hour", False),
        ("5 minutes", False),
    ],
)
def test_a_singular_or_a_dash_makes_it_describe_a_thing(text: str, attributive: bool) -> None:
    amount = read_amount(text.removeprefix("a "))
    assert amount is not None
    assert amount[0].attributive is attributive


def test_what_describes_takes_no_smaller_unit() -> None:
    assert read_amount("5 hour 20 minutes") == (Amount(5 * HOUR, HOUR, HOUR, True), "20 minutes")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("minute", (Amount(60, MINUTE, MINUTE), 1)),
        ("minutes", (Amount(180, MINUTE, MINUTE), 1)),
        ("minute and a half", (Amount(90, SECOND, SECOND), 4)),
        ("week and a half", (Amount(10.5 * DAY, DAY, DAY), 4)),
        ("second", (Amount(1, SECOND, SECOND), 1)),
        ("h", (Amount(3 * HOUR, HOUR, HOUR), 1)),
        ("five", None),
    ],
)
def test_a_unit_alone_is_one_and_in_the_plural_a_few(text: str, expected: object) -> None:
    assert read_rule("lone_unit", text) == expected


@pytest.mark.parametrize(
    ("text", "number", "after"),
    [
        ("7", 7, 1),
        ("7 and a half", 7.5, 4),
        ("twenty-one", 21, 3),
        ("ten and a half", 10.5, 4),
        ("7th", None, 0),
    ],
)
def test_numbers_stand_in_digits_and_words(text: str, number: float | None, after: int) -> None:
    expected = None if number is None else (number, after)
    assert read_rule("count", text) == expected


@pytest.mark.parametrize(
    ("question", "phrase", "rest"),
    [
        ("Who is at the beginning of the video?", "at the beginning of the video", ""),
        ("a red car at the start, then a dog", "at the start", "a red car, then a dog"),
        ("a red car at the very end and a dog", "at the very end", "a red car and a dog"),
        ("a red car in the middle of the video", "in the middle of the video", "a red car"),
        ("a red car halfway through the video", "halfway through the video", "a red car"),
        ("a red car halfway through, what color?", "halfway through", "a red car, what color?"),
        ("how does the film end?", "how does the film end", ""),
        ("how did the film begin?", "how did the film begin", ""),
        ("a red car around the 5 minute mark crashes", "around the 5 minute mark", "a red car crashes"),
        ("five minutes in, a red car crashes", "five minutes in", "a red car crashes"),
        ("a red car five minutes into the recording", "five minutes into the recording", "a red car"),
        ("a red car in the first five minutes", "in the first five minutes", "a red car"),
        ("a red car in the last third", "in the last third", "a red car"),
        ("a red car in the second half of the talk", "in the second half of the talk", "a red car"),
        ("a red car in the last minute and a half", "in the last minute and a half", "a red car"),
        ("a red car (at 12:30) crashes", "at 12:30", "a red car crashes"),
        ("a red car at 12:30 and at 12:31", "at 12:30", "a red car"),
        ("before 12:30, after 12:00, a red car", "before 12:30, after 12:00", "a red car"),
        ("at 12:30 seconds a red car", "at 12:30 seconds", "a red car"),
        ("what happens between 2 and 3 minutes in the film", "between 2 and 3 minutes in the film", ""),
    ],
)
def test_a_time_is_taken_out_of_the_query_word_for_word(question: str, phrase: str, rest: str) -> None:
    expression = find_time(question, FACE)
    assert expression is not None
    assert (expression.phrase, expression.rest) == (phrase, rest)


@pytest.mark.parametrize(
    "question",
    [
        "the start line of the race",
        "a last minute change",
        "the last minute changes",
        "how does the fight end",
        "halfway through the recipe",
        "the middle of the road",
        "first half wins",
        "the fourth third",
        "a five minute timer",
        "take five minutes",
        "half of the people",
        "the end product",
        "three days in",
        "the first 3 days",
        "5 minute eggs",
    ],
)
def test_what_only_sounds_like_a_time_is_left_in_the_query(question: str) -> None:
    assert find_time(question, FACE) is None
