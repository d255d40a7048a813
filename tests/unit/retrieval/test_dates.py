"""Days and months in a query, and the boost of documents from them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from conspectus.model.records import Period
from conspectus.retrieval.dates import NamedDate, date_boost, find_dates


@pytest.mark.parametrize(
    ("question", "dates"),
    [
        ("When did Mel go camping in June?", (NamedDate(6),)),
        ("what happened in june 2023", (NamedDate(6, year=2023),)),
        ("What did she show on October 13, 2023?", (NamedDate(10, 13, 2023),)),
        ("on 1 February, 2023 or the 3rd of March", (NamedDate(2, 1, 2023), NamedDate(3, 3))),
        ("the July 8 workshop", (NamedDate(7, 8),)),
        ("between 2023-06-02 and 2023-07", (NamedDate(6, 2, 2023), NamedDate(7, year=2023))),
        ("in Sept. 2021", (NamedDate(9, year=2021),)),
    ],
)
def test_dates_are_read(question: str, dates: tuple[NamedDate, ...]) -> None:
    assert find_dates(question) == dates


@pytest.mark.parametrize(
    "question",
    [
        "",
        "May the force be with you",
        "you may march on",
        "version 2023-13-01",
        "1234-56",
        "12:30",
        "mar",
        "१२",
    ],
)
def test_other_words_are_no_dates(question: str) -> None:
    assert find_dates(question) == ()


@pytest.mark.parametrize(
    ("date", "instant", "is_included"),
    [
        (NamedDate(6), datetime(2023, 6, 30, 23, tzinfo=UTC), True),
        (NamedDate(6), datetime(2023, 7, 1, 1, tzinfo=timezone(timedelta(hours=2))), True),
        (NamedDate(6, year=2022), datetime(2023, 6, 3, tzinfo=UTC), False),
        (NamedDate(10, 13, 2023), datetime(2023, 10, 12, 23, 59, tzinfo=UTC), False),
        (NamedDate(10, 13, 2023), datetime(2023, 10, 20, 23, 59, tzinfo=UTC), True),
        (NamedDate(10, 13, 2023), datetime(2023, 10, 21, tzinfo=UTC), False),
        (NamedDate(12, 30), datetime(2024, 1, 2, tzinfo=UTC), True),
        (NamedDate(2, 31), datetime(2024, 3, 1, tzinfo=UTC), False),
        (NamedDate(2, 29), datetime(1, 3, 1, tzinfo=UTC), False),
    ],
)
def test_a_month_and_the_week_from_a_day(date: NamedDate, instant: datetime, is_included: bool) -> None:
    assert date.includes(instant) is is_included


def test_only_what_was_said_then_is_lifted() -> None:
    june, july = (
        Period(day, day) for day in (datetime(2023, 6, 3, tzinfo=UTC), datetime(2023, 7, 3, tzinfo=UTC))
    )
    assert date_boost("in June", [june, july, None], weight=0.2).tolist() == [0.2, 0.0, 0.0]
    assert date_boost("when?", [june], weight=0.2).tolist() == [0.0]
    assert date_boost("in June", [], weight=0.2).tolist() == []
