"""Times in queries about a recording, as rows of query, range and rest."""

from datetime import UTC, datetime, timedelta

import pytest

from conspectus.text.stream_clocks import StreamClock
from conspectus.text.times import EPOCH
from conspectus.time_expressions import ClockFace, describe, find_time

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def recorded_clock(seconds: float, *, first: float = 0.0, live: bool = False) -> ClockFace:
    start, end = EPOCH + timedelta(seconds=first), EPOCH + timedelta(seconds=seconds)
    return ClockFace(StreamClock(), wall=False, first=start, last=end, now=NOW, live=live)


HOUR = recorded_clock(3_600)


def read_range(question: str, face: ClockFace) -> str | None:
    expression = find_time(question, face)
    return None if expression is None else describe(expression, face).partition(" (")[0]


TIMES = """
What happened before 12:30?            | until 00:12:30
What happened prior to 12:30?          | until 00:12:30
earlier than 12:30                     | until 00:12:30
What is shown until 5:00?              | until 00:05:00
What had they found by 12:30?          | until 00:12:30
up to 10 minutes                       | until 00:10:00
What happens after 12:30?              | from 00:12:30 on
later than 12:30                       | from 00:12:30 on
since 0:02:03                          | from 00:02:03 on
What happens from 12:30 on?            | from 00:12:30 on
from 12:30 onwards                     | from 00:12:30 on
starting at 12:30                      | from 00:12:30 on
after 90 seconds                       | from 00:01:30 on
after 1 hour and 20 minutes            | from 01:20:00 on
What happened around 12:30?            | 00:12:00 to 00:13:01
What is said about 12:30               | 00:12:00 to 00:13:01
near 12:30                             | 00:12:00 to 00:13:01
~12:30                                 | 00:12:00 to 00:13:01
at around 12:30                        | 00:12:00 to 00:13:01
around the 12:30 mark                  | 00:12:00 to 00:13:01
around minute 12                       | 00:10:00 to 00:15:00
about five minutes in                  | 00:03:00 to 00:08:00
at about 5 minutes                     | 00:03:00 to 00:08:00
What happens at 12:30?                 | 00:12:30 to 00:12:31
at exactly 12:30                       | 00:12:30 to 00:12:31
right at 12:30                         | 00:12:30 to 00:12:31
@ 12:30                                | 00:12:30 to 00:12:31
at time 12:30                          | 00:12:30 to 00:12:31
timestamp 12:30                        | 00:12:30 to 00:12:31
at minute 12:30                        | 00:12:30 to 00:12:31
the 12:30 mark                         | 00:12:30 to 00:12:31
(12:30)                                | 00:12:30 to 00:12:31
at 0:00                                | 00:00:00 to 00:00:01
at 1:02:03                             | 01:02:03 to 01:02:04
What is shown, 1:02:03                 | 01:02:03 to 01:02:04
at 00:12:30.5                          | 00:12:30.500 to 00:12:31.500
at 99:00                               | 01:39:00 to 01:39:01
at 1h2m                                | 01:02:00 to 01:03:00
at 90s                                 | 00:01:30 to 00:01:31
at 5min                                | 00:05:00 to 00:06:00
at 2.5 minutes                         | 00:02:30 to 00:02:31
at 1 minute and 30 seconds             | 00:01:30 to 00:01:31
in minute 12                           | 00:12:00 to 00:13:00
at second 45                           | 00:00:45 to 00:00:46
in hour 0                              | 00:00:00 to 01:00:00
in the 12th minute                     | 00:11:00 to 00:12:00
in the second minute                   | 00:01:00 to 00:02:00
at the 5 minute mark                   | 00:05:00 to 00:06:00
at the five-minute mark                | 00:05:00 to 00:06:00
at the 1 hour 20 minute mark           | 01:20:00 to 01:21:00
What happens 5 minutes in?             | 00:05:00 to 00:06:00
5 minutes into the video               | 00:05:00 to 00:06:00
half an hour in                        | 00:30:00 to 00:31:00
twenty-five minutes in                 | 00:25:00 to 00:26:00
a hundred seconds in                   | 00:01:40 to 00:01:41
a quarter of an hour into the talk     | 00:15:00 to 00:16:00
three quarters of an hour in           | 00:45:00 to 00:46:00
shortly before 12:30                   | 00:11:30 to 00:12:30
right after 12:30                      | 00:12:30 to 00:13:30
2 minutes after 12:30                  | 00:14:30 to 00:15:30
in the 2 minutes before 12:30          | 00:10:30 to 00:12:30
in the minute after 12:30              | 00:12:30 to 00:13:30
within 2 minutes of 12:30              | 00:10:30 to 00:14:31
5 minutes before the end               | 00:55:00 to 00:56:00
in the 5 minutes before the end        | from 00:55:00 on
5 minutes after the start              | 00:05:00 to 00:06:00
"""

RANGES = """
between 12:30 and 13:00                | 00:12:30 to 00:13:00
between 13:00 and 12:30                | 00:12:30 to 00:13:00
between 12:30 and 12:30                | 00:12:30 to 00:12:31
from 12:30 to 13:00                    | 00:12:30 to 00:13:00
from 0:30 until 1:30                   | 00:00:30 to 00:01:30
12:30 - 13:00                          | 00:12:30 to 00:13:00
12:30\u201313:00                       | 00:12:30 to 00:13:00
12:30 to 12:45                         | 00:12:30 to 00:12:45
from 5 minutes to 10 minutes           | 00:05:00 to 00:10:00
between 3 and 5 minutes                | 00:03:00 to 00:05:00
between three and five minutes         | 00:03:00 to 00:05:00
between minutes 3 and 5                | 00:03:00 to 00:05:00
between minute 3 and minute 5          | 00:03:00 to 00:05:00
minutes 3 to 5                         | 00:03:00 to 00:05:00
minutes 3-5                            | 00:03:00 to 00:05:00
in minutes 3 to 5 of the talk          | 00:03:00 to 00:05:00
seconds 10 to 20                       | 00:00:10 to 00:00:20
3-5 minutes in                         | 00:03:00 to 00:05:00
from 1h to 1h30m                       | 01:00:00 to 01:30:00
between 1 minute and 30 seconds and 2 minutes | 00:01:30 to 00:02:00
between 1 minute and 30 seconds        | 00:00:30 to 00:01:00
between 2 minutes and the end          | from 00:02:00 on
from the beginning to 5:00             | 00:00:00 to 00:05:00
from 50:00 to the end                  | from 00:50:00 on
after 12:00 and before 12:30           | 00:12:00 to 00:12:30
after 2:00 in the first five minutes   | 00:02:00 to 00:05:00
"""

PARTS = """
how does the video end?                 | from 00:55:00 on
how did the talk begin                  | 00:00:00 to 00:05:00
in the first five minutes              | 00:00:00 to 00:05:00
the first five minutes                 | 00:00:00 to 00:05:00
during the first 5 minutes of the video | 00:00:00 to 00:05:00
within the first 90s                   | 00:00:00 to 00:01:30
in the first one and a half minutes    | 00:00:00 to 00:01:30
in the first minute and a half         | 00:00:00 to 00:01:30
in the first half an hour              | 00:00:00 to 00:30:00
in the first couple of minutes         | 00:00:00 to 00:02:00
in the first few minutes               | 00:00:00 to 00:03:00
in the opening minutes                 | 00:00:00 to 00:03:00
in the first minute                    | 00:00:00 to 00:01:00
the second ten minutes                 | 00:10:00 to 00:20:00
after the first five minutes           | from 00:05:00 on
in the last ten minutes                | from 00:50:00 on
in the final minute                    | from 00:59:00 on
before the last five minutes           | until 00:55:00
in the past hour                       | from 00:00:00 on
in the last two hours                  | from 00:00:00 on
Summarise the first half               | 00:00:00 to 00:30:00
the second half of the video           | from 00:30:00 on
in the last third                      | from 00:40:00 on
the middle third                       | 00:20:00 to 00:40:00
during the third quarter               | 00:30:00 to 00:45:00
halfway                                | 00:25:00 to 00:35:00
halfway through the video              | 00:25:00 to 00:35:00
in the middle of the video             | 00:25:00 to 00:35:00
at the beginning                       | 00:00:00 to 00:05:00
at the very start of the recording     | 00:00:00 to 00:05:00
at the end                             | from 00:55:00 on
near the end of the talk               | from 00:55:00 on
"""

NOTHING = """
What is this about?
what is a 5 minute timer
the 3 pm meeting was mentioned
What happens at 3pm?
version 12.30
What is new in version 1.2.3?
score 3:1
ratio 16:9
Apollo 13
John 3:16
first five rules
the first time
before the explosion
after lunch
what happened before
What happened before, and after?
What happened 10 minutes before the explosion?
after 5 minutes of boiling
What to do after 5 minutes in the oven?
boil for between 5 and 10 minutes
it takes between 5 and 10 minutes
how long is it, about 5 minutes?
in 5 minutes
a 5 minutes break
5 minutes long
wait 5 minutes
delayed by 5 minutes
after a second explosion
he dodges at the last second
in the end, who won?
the last minute change
first half of the book
in the second half of the 19th century
after the first minute of silence
halfway through the recipe
Q3: the third quarter results
who stands in the middle?
who stands at the start line?
how does the fight end?
how does the video end up like that?
how do I start the recording?
half past eight
at 8 in the morning
how can i restart from the beginning?
cook flipping midway up the rock
bake for 55 minutes 1 hour when it is done
there 's three to four a week
in the 90s
from 9 to 5
between 3 and 5 people
the time 12:30 is written on the board
Is it 12:30?
at 1:75
at 1:5
until the end
by the end
yesterday
on Monday
this morning
on 5 March
after 2026-01-05T14:00
10 minutes ago
in the last two days
between 10:30 and
between and 10:30
from to at in
 \t\n
"""


def read_rows(table: str) -> list[tuple[str, str]]:
    lines = (line.partition("|") for line in table.strip().split("\n"))
    return [(question.strip(), expected.strip()) for question, _, expected in lines]


@pytest.mark.parametrize(("question", "expected"), read_rows(TIMES) + read_rows(RANGES) + read_rows(PARTS))
def test_times_become_ranges(question: str, expected: str) -> None:
    assert read_range(question, HOUR) == expected


@pytest.mark.parametrize(("question", "_"), read_rows(NOTHING))
def test_what_is_no_time_of_the_recording_is_not_taken(question: str, _: str) -> None:
    assert read_range(question, HOUR) is None


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What happened before 12:30?", ""),
        ("Summarise the first five minutes.", ""),
        ("Tell me about the first five minutes", ""),
        ("[12:30 - 13:00]", ""),
        (
            "What does he say about eigenvectors in the first five minutes?",
            "What does he say about eigenvectors?",
        ),
        (
            "In the first five minutes, what does he say about eigenvectors?",
            "what does he say about eigenvectors?",
        ),
        ("Who enters in the first five minutes of the video and why?", "Who enters and why?"),
        ("What is in the box at 12:30, and who opens it?", "What is in the box, and who opens it?"),
        ("What did they discuss (12:30 - 13:00)?", "What did they discuss?"),
        ("What does he say about X after 12:00 and before 12:30?", "What does he say about X?"),
        ("Où est la tour à 12:30 — before 12:30 ?", "Où est la tour à 12:30 —?"),
        ("What does she draw between 5:00 and 6:30 minutes?", "What does she draw?"),
        ("What happened at 12:30 in the kitchen?", "What happened in the kitchen?"),
    ],
)
def test_the_rest_is_still_a_question(question: str, rest: str) -> None:
    expression = find_time(question, HOUR)
    assert expression is not None
    assert expression.rest == rest


@pytest.mark.parametrize(
    ("seconds", "first", "question", "expected"),
    [
        (24 * 3_600, 0, "at 12:30", "12:30:00 to 12:31:00"),
        (24 * 3_600, 0, "from 0:45 to 13:00", "00:45:00 to 13:00:00"),
        (20 * 3_600, 0, "from 12:30 to 25:00", "00:12:30 to 00:25:00"),
        (2 * 3_600, 0, "at 1:30", "00:01:30 to 00:01:31"),
        (11 * 3_600, 10 * 3_600, "at 10:30", "10:30:00 to 10:31:00"),
        (11 * 3_600, 10 * 3_600, "in the first five minutes", "10:00:00 to 10:05:00"),
        (100, 0, "at 12:30", "00:12:30 to 00:12:31"),
        (100, 0, "at the beginning", "00:00:00 to 00:00:30"),
        (10, 0, "at the beginning", "00:00:00 to 00:00:30"),
        (0, 0, "in the last ten minutes", "from 00:00:00 on"),
    ],
)
def test_the_length_of_the_recording_decides(seconds: int, first: int, question: str, expected: str) -> None:
    assert read_range(question, recorded_clock(seconds, first=first)) == expected


def test_a_stream_without_captions_has_times_too() -> None:
    empty = ClockFace(StreamClock(), wall=False, first=None, last=None, now=NOW)
    assert read_range("before 12:30", empty) == "until 00:12:30"
    assert read_range("in the last five minutes", empty) == "from 00:00:00 on"


def test_a_live_recording_ends_with_its_captions() -> None:
    assert read_range("in the past minute", recorded_clock(600, live=True)) == "from 00:09:00 on"
    assert read_range("2 minutes ago", recorded_clock(600, live=True)) == "00:08:00 to 00:09:00"


def test_times_that_contradict_each_other_are_named() -> None:
    expression = find_time("Compare the first five minutes with the last ten minutes", HOUR)
    assert expression is not None
    assert expression.unused == ("the last ten minutes",)
    description = "00:00:00 to 00:05:00 (the first five minutes, but not the last ten minutes)"
    assert describe(expression, HOUR) == description


def test_ranges_that_hold_together_are_one() -> None:
    expression = find_time("after 12:00 and before 12:30", HOUR)
    assert expression is not None
    assert (expression.phrase, expression.relation, expression.unused) == (
        "after 12:00, before 12:30",
        "after, before",
        (),
    )


def test_times_far_beyond_the_calendar_stay_in_it() -> None:
    assert read_range("after minute 999999999", HOUR) == "from 16666666:39:00 on"
    expression = find_time("in the first 999999999 hours", HOUR)
    assert expression is not None
    assert expression.end is not None
    assert expression.end.year == 9998


def test_only_the_beginning_of_an_endless_question_is_read() -> None:
    assert read_range("x" * 5_000 + " before 12:30", HOUR) is None
    assert read_range("before 12:30 " + "x" * 1_000_000, HOUR) == "until 00:12:30"
