"""Times in queries about streams with a wall clock: days, time zones, live streams."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from conspectus.engine.video_query import may_name_time
from conspectus.text.stream_clocks import StreamClock, zone_by_name
from conspectus.text.times import EPOCH
from conspectus.time_expressions import ClockFace, describe, find_time


def wall_clock(first: str, last: str, now: str, *, live: bool = False, zone: str = "UTC") -> ClockFace:
    start, end, current = (
        datetime.fromisoformat(instant).replace(tzinfo=zone_by_name(zone)) for instant in (first, last, now)
    )
    return ClockFace(
        StreamClock(EPOCH, zone_by_name(zone)), wall=True, first=start, last=end, now=current, live=live
    )


MONDAY = wall_clock("2026-01-05T08:00", "2026-01-05T20:00", "2026-01-06T10:00")
DAYS = wall_clock("2026-01-02T08:00", "2026-01-06T10:00", "2026-01-06T10:00", live=True)


def read_range(question: str, face: ClockFace) -> str | None:
    expression = find_time(question, face)
    return None if expression is None else describe(expression, face).partition(" (")[0]


def read_rows(table: str) -> list[tuple[str, str]]:
    lines = (line.partition("|") for line in table.strip().split("\n"))
    return [(question.strip(), expected.strip()) for question, _, expected in lines]


ONE_DAY = """
at 14:05                          | 2026-01-05 14:05:00 to 14:06:00 UTC
at 14:05:30                       | 2026-01-05 14:05:30 to 14:05:31 UTC
after 14:05:30                    | from 2026-01-05 14:05:30 UTC on
before 14:00                      | until 2026-01-05 14:00:00 UTC
around 14:30                      | 2026-01-05 14:28:00 to 14:33:00 UTC
around 3pm                        | 2026-01-05 14:30:00 to 16:30:00 UTC
at 3pm                            | 2026-01-05 15:00:00 to 16:00:00 UTC
at 3 p.m.                         | 2026-01-05 15:00:00 to 16:00:00 UTC
at 3:15 pm                        | 2026-01-05 15:15:00 to 15:16:00 UTC
at 3:15pm                         | 2026-01-05 15:15:00 to 15:16:00 UTC
at 12 am                          | 2026-01-05 00:00:00 to 01:00:00 UTC
at 12pm                           | 2026-01-05 12:00:00 to 13:00:00 UTC
at 9 o'clock                      | 2026-01-05 09:00:00 to 10:00:00 UTC
at 3 o'clock                      | 2026-01-05 15:00:00 to 16:00:00 UTC
at 9 in the morning               | 2026-01-05 09:00:00 to 10:00:00 UTC
at 8:15 in the evening            | 2026-01-05 20:15:00 to 20:16:00 UTC
at 12 in the afternoon            | 2026-01-05 12:00:00 to 13:00:00 UTC
at 10 at night                    | 2026-01-05 22:00:00 to 23:00:00 UTC
on Monday at 2 at night           | 2026-01-05 02:00:00 to 03:00:00 UTC
at half past nine                 | 2026-01-05 09:30:00 to 09:31:00 UTC
at half past three                | 2026-01-05 15:30:00 to 15:31:00 UTC
at a quarter to ten               | 2026-01-05 09:45:00 to 09:46:00 UTC
at quarter past 7 in the evening  | 2026-01-05 19:15:00 to 19:16:00 UTC
yesterday afternoon at 3          | 2026-01-05 15:00:00 to 16:00:00 UTC
last night at 2                   | 2026-01-06 02:00:00 to 03:00:00 UTC
this morning at 3                 | 2026-01-06 05:00:00 to 12:00:00 UTC
how does the recording start?     | 2026-01-05 08:00:00 to 08:05:00 UTC
at noon                           | 2026-01-05 12:00:00 to 12:01:00 UTC
between 2 and 3 pm                | 2026-01-05 14:00:00 to 15:00:00 UTC
from 2 to 3pm                     | 2026-01-05 14:00:00 to 15:00:00 UTC
2-3pm                             | 2026-01-05 14:00:00 to 15:00:00 UTC
between 11 and 1pm                | 2026-01-05 11:00:00 to 13:00:00 UTC
from 23:00 to 1:00                | 2026-01-05 23:00:00 to 2026-01-06 01:00:00 UTC
within 10 minutes of 3pm          | 2026-01-05 14:50:00 to 15:10:00 UTC
the minute before noon            | 2026-01-05 11:59:00 to 12:00:00 UTC
in the first five minutes         | 2026-01-05 08:00:00 to 08:05:00 UTC
5 minutes in                      | 2026-01-05 08:05:00 to 08:06:00 UTC
in the past hour                  | from 2026-01-05 19:00:00 UTC on
in the last ten minutes           | from 2026-01-05 19:50:00 UTC on
in the second half                | from 2026-01-05 14:00:00 UTC on
2 hours ago                       | 2026-01-06 08:00:00 to 09:00:00 UTC
yesterday                         | 2026-01-05 00:00:00 to 2026-01-06 00:00:00 UTC
yesterday afternoon               | 2026-01-05 12:00:00 to 18:00:00 UTC
yesterday at 3pm                  | 2026-01-05 15:00:00 to 16:00:00 UTC
between 14:00 and 15:00 yesterday | 2026-01-05 14:00:00 to 15:00:00 UTC
today                             | 2026-01-06 00:00:00 to 2026-01-07 00:00:00 UTC
this morning                      | 2026-01-06 05:00:00 to 12:00:00 UTC
last night                        | 2026-01-05 20:00:00 to 2026-01-06 06:00:00 UTC
in the morning                    | 2026-01-05 05:00:00 to 12:00:00 UTC
in the afternoon after 3 pm       | 2026-01-05 15:00:00 to 18:00:00 UTC
on Monday                         | 2026-01-05 00:00:00 to 2026-01-06 00:00:00 UTC
on Monday at 14:30                | 2026-01-05 14:30:00 to 14:31:00 UTC
at 14:30 on Monday                | 2026-01-05 14:30:00 to 14:31:00 UTC
before 14:30 on Monday            | 2026-01-05 00:00:00 to 14:30:00 UTC
on Friday                         | 2026-01-02 00:00:00 to 2026-01-03 00:00:00 UTC
since Monday                      | from 2026-01-05 00:00:00 UTC on
on Sunday and Monday              | 2026-01-04 00:00:00 to 2026-01-06 00:00:00 UTC
at 14:30 UTC                      | 2026-01-05 14:30:00 to 14:31:00 UTC
before Monday                     | until 2026-01-05 00:00:00 UTC
after Monday                      | from 2026-01-06 00:00:00 UTC on
until Monday                      | until 2026-01-06 00:00:00 UTC
from Monday to Wednesday          | 2026-01-05 00:00:00 to 2026-01-08 00:00:00 UTC
from 23:00 on Sunday to 09:00 on Monday | 2026-01-04 23:00:00 to 2026-01-05 09:00:00 UTC
on 5 March                        | 2025-03-05 00:00:00 to 2025-03-06 00:00:00 UTC
on 29 February                    | 2024-02-29 00:00:00 to 2024-03-01 00:00:00 UTC
on January 5th, 2026              | 2026-01-05 00:00:00 to 2026-01-06 00:00:00 UTC
on the 5th of January at 9:00     | 2026-01-05 09:00:00 to 09:01:00 UTC
from 5 January 9:00 until 10:00   | 2026-01-05 09:00:00 to 10:00:00 UTC
on the evening of 4 January       | 2026-01-04 18:00:00 to 2026-01-05 00:00:00 UTC
on 2026-01-05                     | 2026-01-05 00:00:00 to 2026-01-06 00:00:00 UTC
after 2026-01-05T14:00            | from 2026-01-05 14:00:00 UTC on
at 2026-01-05T14:00:00+02:00      | 2026-01-05 12:00:00 to 12:00:01 UTC
between 2026-01-05 14:00 and 2026-01-05 15:00 | 2026-01-05 14:00:00 to 15:00:00 UTC
"""

LIVE = """
at 9:00                           | 2026-01-06 09:00:00 to 09:01:00 UTC
at 14:30                          | 2026-01-05 14:30:00 to 14:31:00 UTC
on Friday at 9:00                 | 2026-01-02 09:00:00 to 09:01:00 UTC
from 23:00 to 1:00                | 2026-01-05 23:00:00 to 2026-01-06 01:00:00 UTC
after midnight                    | from 2026-01-06 00:00:00 UTC on
in the past hour                  | from 2026-01-06 09:00:00 UTC on
in the last two days              | from 2026-01-04 10:00:00 UTC on
10 minutes ago                    | 2026-01-06 09:50:00 to 09:51:00 UTC
on Tuesday                        | 2026-01-06 00:00:00 to 2026-01-07 00:00:00 UTC
on Saturday night                 | 2026-01-03 20:00:00 to 2026-01-04 06:00:00 UTC
tonight                           | 2026-01-06 18:00:00 to 2026-01-07 06:00:00 UTC
"""

NOTHING = """
the 3 pm meeting was mentioned
What did he say about yesterday's meeting?
What about yesterday?
at 25:00
at 13 pm
at 2026-13-45
on 31 February 2026
may 5 people enter?
who is on the tonight show?
"""


@pytest.mark.parametrize(("question", "expected"), read_rows(ONE_DAY))
def test_times_of_day_and_days_are_those_of_the_stream(question: str, expected: str) -> None:
    assert read_range(question, MONDAY) == expected


@pytest.mark.parametrize(("question", "expected"), read_rows(LIVE))
def test_a_live_stream_of_days_is_read_from_now_back(question: str, expected: str) -> None:
    assert read_range(question, DAYS) == expected


@pytest.mark.parametrize(("question", "_"), read_rows(NOTHING))
def test_what_is_no_time_is_not_taken(question: str, _: str) -> None:
    assert read_range(question, MONDAY) is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("at 1:30", "2026-03-29 01:30:00 to 01:31:00 Europe/Berlin"),
        ("at 2:30", "2026-03-29 03:30:00 to 03:31:00 Europe/Berlin"),
        ("between 1:00 and 4:00", "2026-03-29 01:00:00 to 04:00:00 Europe/Berlin"),
        ("on Sunday", "2026-03-29 00:00:00 to 2026-03-30 00:00:00 Europe/Berlin"),
    ],
)
def test_an_hour_that_the_clocks_leave_out(question: str, expected: str) -> None:
    face = wall_clock("2026-03-29T00:00", "2026-03-29T06:00", "2026-03-29T07:00", zone="Europe/Berlin")
    assert read_range(question, face) == expected


@pytest.mark.parametrize(
    ("question", "hours"), [("at 2am", 2.0), ("at 1am", 1.0), ("at 3am", 1.0), ("on Sunday", 25.0)]
)
def test_an_hour_that_comes_twice_is_meant_twice(question: str, hours: float) -> None:
    face = wall_clock("2026-10-25T00:00", "2026-10-25T06:00", "2026-10-25T07:00", zone="Europe/Berlin")
    expression = find_time(question, face)
    assert expression is not None
    assert expression.start is not None
    assert expression.end is not None
    assert (expression.end - expression.start).total_seconds() == hours * 3_600


def test_times_of_day_are_those_of_the_clocks_zone() -> None:
    face = wall_clock("2026-01-05T08:00", "2026-01-05T20:00", "2026-01-05T21:00", zone="Asia/Tokyo")
    expression = find_time("before 12:30", face)
    assert expression is not None
    assert expression.end == datetime(2026, 1, 5, 12, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert read_range("at 3:30 UTC", face) == "2026-01-05 12:30:00 to 12:31:00 Asia/Tokyo"


def test_the_origin_is_the_beginning_where_the_captions_begin_soon_after() -> None:
    origin = datetime.fromisoformat("2026-01-05T08:00+00:00")
    first, last = (
        datetime.fromisoformat(f"2026-01-05T{time_of_day}+00:00") for time_of_day in ("08:00:30", "09:00")
    )
    face = ClockFace(StreamClock(origin), wall=True, first=first, last=last, now=last)
    assert read_range("in the first minute", face) == "2026-01-05 08:00:00 to 08:01:00 UTC"


def test_of_a_live_stream_that_fell_silent_the_days_are_those_that_it_has() -> None:
    face = wall_clock("2026-01-02T08:00", "2026-01-03T20:00", "2026-03-06T10:00", live=True)
    assert read_range("at 14:30", face) == "2026-01-03 14:30:00 to 14:31:00 UTC"
    assert read_range("on Friday", face) == "2026-01-02 00:00:00 to 2026-01-03 00:00:00 UTC"
    assert read_range("in the past hour", face) == "from 2026-03-06 09:00:00 UTC on"


def test_a_stream_that_has_not_begun_is_of_today() -> None:
    now = datetime.fromisoformat("2026-01-05T08:00+00:00")
    face = ClockFace(StreamClock(), wall=True, first=None, last=None, now=now, live=True)
    assert read_range("at 12:30", face) == "2026-01-05 12:30:00 to 12:31:00 UTC"
    assert read_range("in the last hour", face) == "from 2026-01-05 08:00:00 UTC on"


@pytest.mark.parametrize("year", [1, 2, 9998, 9999])
@pytest.mark.parametrize(
    "question",
    [
        "today",
        "last night",
        "on Monday",
        "from 23:00 to 1:00",
        "in the last week",
        "last week",
        "next year",
        "999999999 days ago",
        "a hundred years ago",
        "the last 1200 months",
    ],
)
def test_streams_at_the_ends_of_the_calendar(year: int, question: str) -> None:
    day = f"{year:04}-06-01T"
    face = wall_clock(f"{day}08:00", f"{day}20:00", f"{day}20:00", zone="Asia/Tokyo")
    assert read_range(question, face) is not None


YEARS = wall_clock(
    "2024-01-05T08:00", "2026-11-29T18:00", "2026-11-29T20:00", live=True, zone="Europe/Berlin"
)
"""The query is asked on a Sunday."""
PERIODS = """
last week                         | 2026-11-16 00:00:00 to 2026-11-23 00:00:00 Europe/Berlin
this week                         | 2026-11-23 00:00:00 to 2026-11-30 00:00:00 Europe/Berlin
since last week                   | from 2026-11-16 00:00:00 Europe/Berlin on
this month                        | 2026-11-01 00:00:00 to 2026-12-01 00:00:00 Europe/Berlin
before last month                 | until 2026-10-01 00:00:00 Europe/Berlin
last year                         | 2025-01-01 00:00:00 to 2026-01-01 00:00:00 Europe/Berlin
in april                          | 2026-04-01 00:00:00 to 2026-05-01 00:00:00 Europe/Berlin
in December                       | 2025-12-01 00:00:00 to 2026-01-01 00:00:00 Europe/Berlin
last december                     | 2025-12-01 00:00:00 to 2026-01-01 00:00:00 Europe/Berlin
april 2024                        | 2024-04-01 00:00:00 to 2024-05-01 00:00:00 Europe/Berlin
between april and june            | 2026-04-01 00:00:00 to 2026-07-01 00:00:00 Europe/Berlin
in 2024                           | 2024-01-01 00:00:00 to 2025-01-01 00:00:00 Europe/Berlin
2024                              | 2024-01-01 00:00:00 to 2025-01-01 00:00:00 Europe/Berlin
from 2024 to 2025                 | 2024-01-01 00:00:00 to 2026-01-01 00:00:00 Europe/Berlin
on the weekend                    | 2026-11-28 00:00:00 to 2026-11-30 00:00:00 Europe/Berlin
last weekend                      | 2026-11-21 00:00:00 to 2026-11-23 00:00:00 Europe/Berlin
on 10.03.2025                     | 2025-03-10 00:00:00 to 2025-03-11 00:00:00 Europe/Berlin
on 1.2.2025 at 3 pm               | 2025-02-01 15:00:00 to 16:00:00 Europe/Berlin
two days ago                      | 2026-11-27 00:00:00 to 2026-11-28 00:00:00 Europe/Berlin
a week ago                        | 2026-11-22 00:00:00 to 2026-11-23 00:00:00 Europe/Berlin
3 days ago at 10:00               | 2026-11-26 10:00:00 to 10:01:00 Europe/Berlin
a month ago                       | 2026-10-01 00:00:00 to 2026-11-01 00:00:00 Europe/Berlin
two years ago                     | 2024-01-01 00:00:00 to 2025-01-01 00:00:00 Europe/Berlin
the last three months             | 2026-08-29 00:00:00 to 2026-11-30 00:00:00 Europe/Berlin
in march 2025                     | 2025-03-01 00:00:00 to 2025-04-01 00:00:00 Europe/Berlin
"""


@pytest.mark.parametrize(("question", "expected"), read_rows(PERIODS))
def test_periods_are_those_of_the_calendar(question: str, expected: str) -> None:
    assert read_range(question, YEARS) == expected


@pytest.mark.parametrize(
    "question",
    [
        "what may happen",
        "after 2000 steps",
        "version 1.2.2025.4",
        "1999",
        "a march through town",
        "last call",
    ],
)
def test_other_words_are_no_periods(question: str) -> None:
    assert read_range(question, YEARS) is None


def test_periods_of_a_recording_are_none() -> None:
    face = ClockFace(StreamClock(), wall=False, first=EPOCH, last=EPOCH, now=YEARS.now)
    assert [read_range(question, face) for question, _ in read_rows(PERIODS)[:12]] == [None] * 12


@pytest.mark.parametrize("at", [datetime.min, datetime.max])
def test_a_query_may_be_asked_at_the_ends_of_the_calendar(at: datetime) -> None:
    instant = at.replace(tzinfo=UTC)
    assert may_name_time("a red car before 12:30", instant)
    assert not may_name_time("a red car", instant)


OTHER_LANGUAGES = """
was geschah letzte Woche                      | 2026-11-16 to 2026-11-23 |
Was war im April?                             | 2026-04-01 to 2026-05-01 |
wer war gestern in der Küche                  | 2026-11-28 to 2026-11-29 | wer war in der Küche
was war am 10. März 2025                      | 2025-03-10 to 2025-03-11 |
wer kam am 10. März                           | 2026-03-10 to 2026-03-11 | wer kam
was war im März 2025                          | 2025-03-01 to 2025-04-01 |
le 10 mars 2025                               | 2025-03-10 to 2025-03-11 |
qui est venu le 1er mars                      | 2026-03-01 to 2026-03-02 | qui est venu
quién vino el 10 de marzo de 2025             | 2025-03-10 to 2025-03-11 | quién vino
was passierte vor zwei Tagen                  | 2026-11-27 to 2026-11-28 |
was passierte vor drei Monaten                | 2026-08-01 to 2026-09-01 |
wer war am Wochenende da                      | 2026-11-28 to 2026-11-30 | wer war da
gestern                                       | 2026-11-28 to 2026-11-29 |
qui était dans la cuisine hier                | 2026-11-28 to 2026-11-29 | qui était dans la cuisine
qui était dans la cuisine avant-hier          | 2026-11-27 to 2026-11-28 | qui était dans la cuisine
wer kam vorgestern                            | 2026-11-27 to 2026-11-28 | wer kam
quién vino anteayer                           | 2026-11-27 to 2026-11-28 | quién vino
la semaine dernière                           | 2026-11-16 to 2026-11-23 |
que s'est-il passé en avril                   | 2026-04-01 to 2026-05-01 | que s'est-il passé
le mois dernier                               | 2026-10-01 to 2026-11-01 |
quién vino ayer                               | 2026-11-28 to 2026-11-29 | quién vino
qué pasó la semana pasada                     | 2026-11-16 to 2026-11-23 |
quién vino hace dos días                      | 2026-11-27 to 2026-11-28 | quién vino
desde el lunes quién vino                     | from 2026-11-23 on       | quién vino
"""


@pytest.mark.parametrize("row", OTHER_LANGUAGES.strip().split("\n"))
def test_calendar_words_of_other_languages(row: str) -> None:
    query, days, rest = (cell.strip() for cell in row.split("|"))
    expression = find_time(query, YEARS)
    assert expression is not None
    read = describe(expression, YEARS).partition(" (")[0]
    assert (read.replace(" 00:00:00", "").replace(" Europe/Berlin", ""), expression.rest) == (days, rest)


@pytest.mark.parametrize(
    "query",
    [
        "Was ist hier passiert?",
        "who went hier",
        "mars rover in the hangar",
        "hay in the barn",
        "el gato negro",
        "la mer en automne",
        "seit wann ist das so",
        "ein Jahr voller Sorgen",
    ],
)
def test_words_that_are_times_in_another_language_only_are_none(query: str) -> None:
    assert find_time(query, YEARS) is None
