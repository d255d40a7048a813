"""The meaning of filters, on the cases where stores usually disagree."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from conspectus.model.filter import (
    EVERYTHING,
    And,
    Between,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
    matches,
    value_at,
)
from conspectus.model.records import Period

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SUMMER = timezone(timedelta(hours=2))

ROW = {
    "kind": "page",
    "author": None,
    "sequence": 7,
    "occurred": Period(NOON, NOON + HOUR),
    "recorded": NOON,
    "metadata": {
        "count": 1,
        "share": 1.0,
        "text": "1",
        "flag": True,
        "none": None,
        "tags": ["a", "b", 3],
        "deep": {"er": {"name": "Zoë"}},
        "when": "2026-01-05T14:00:00+02:00",
        "huge": 2**70,
        "last": "9999-12-31T23:59:59-05:00",
    },
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (EVERYTHING, True),
        (Or(), False),
        (In("kind", ()), False),
        (Eq("kind", "page"), True),
        (Eq("author", "x"), False),
        (Not(Eq("author", "x")), True),
        (Exists("author"), False),
        (Exists(("none",)), False),
        (Exists(("missing", "deeper")), False),
        (Eq(("count",), 1), True),
        (Eq(("count",), 1.0), True),
        (Eq(("count",), "1"), False),
        (Eq(("count",), True), False),
        (Eq(("flag",), True), True),
        (Eq(("flag",), 1), False),
        (Eq(("text",), 1), False),
        (Eq(("tags",), "b"), True),
        (In(("tags",), ("x", 3)), True),
        (Not(Eq(("tags",), "c")), True),
        (Eq(("deep", "er", "name"), "Zoë"), True),
        (Eq(("deep", "er"), "Zoë"), False),
        (Eq(("text", "deeper"), "1"), False),
        (Eq(("huge",), 2**70), True),
        (Between(("huge",), 2**69, float("inf")), True),
        (Between(("count",), 1, 2), True),
        (Between(("count",), 0, 1), False),
        (Between(("count",), None, None), True),
        (Between(("missing",), None, None), False),
        (Between(("text",), 0, 9), False),
        (Between(("count",), float("nan"), None), False),
        (Between("recorded", NOON, NOON + HOUR), True),
        (Between("recorded", NOON - HOUR, NOON), False),
        (Eq(("when",), NOON.astimezone(SUMMER)), True),
        (Eq(("text",), NOON), False),
        (Between(("last",), NOON, None), False),
        (Overlaps(NOON + HOUR, None), False),
        (Overlaps(None, NOON), False),
        (Overlaps(NOON + HOUR / 2, NOON + 2 * HOUR), True),
        (And((Eq("kind", "page"), Or((Eq("sequence", 8), Eq("sequence", 7))))), True),
    ],
)
def test_matches_says_what_each_filter_means(condition: Filter, expected: bool) -> None:
    assert matches(condition, ROW) is expected


def test_an_instant_overlaps_the_range_that_starts_with_it_but_not_the_one_that_ends_there() -> None:
    row = {"occurred": Period(NOON, NOON)}
    assert matches(Overlaps(NOON, NOON + HOUR), row)
    assert not matches(Overlaps(NOON - HOUR, NOON), row)


def test_a_row_without_event_time_overlaps_nothing_not_even_an_open_range() -> None:
    assert not matches(Overlaps(None, None), {"occurred": None})
    assert matches(Overlaps(None, None), ROW)


def test_a_path_through_something_that_is_no_mapping_is_missing() -> None:
    assert value_at(ROW, ("tags", "0")) is None
    assert value_at({}, ("anything",)) is None
