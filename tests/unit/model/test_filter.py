"""The meaning of filters, on the cases where stores usually disagree."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.support.samples import prepared

from conspectus.model.filter import (
    EVERYTHING,
    FIELDS,
    And,
    Between,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
    document_row,
    leaves,
    matches,
    value_at,
    with_min_trust,
)
from conspectus.model.records import Period
from conspectus.model.trust import TRUST

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


@pytest.mark.parametrize(
    ("value", "bound", "inside"),
    [
        ("a", ("a", "b"), True),
        ("b", ("a", "b"), False),
        ("B", ("a", "b"), False),
        (1, (0.5, 1.5), True),
        (True, (0, 2), False),
        (True, (False, None), True),
        (False, (False, True), True),
        (2**70, (2**70, 2**70 + 1), True),
        ("2026-01-05T12:00:00Z", (NOON, NOON + HOUR), True),
        ("2026-01-05T12:00:00", (NOON, NOON + HOUR), False),
        ("2026-01-05T11:59:59.999999Z", (NOON, None), False),
        (float("nan"), (0, None), False),
    ],
)
def test_a_range_holds_its_low_end_and_not_its_high_one(
    value: object, bound: tuple[object, object], inside: bool
) -> None:
    condition = Between(("x",), *bound)  # type: ignore[arg-type]
    assert matches(condition, {"metadata": {"x": value}}) is inside
    assert matches(condition, {"metadata": {"x": ["other", value]}}) is inside


def test_a_naive_instant_equals_none() -> None:
    naive = NOON.replace(tzinfo=None)
    assert not matches(Eq("recorded", naive), ROW)
    assert not matches(Eq("recorded", NOON), {"recorded": naive})
    assert not matches(Eq("recorded", NOON), {"recorded": datetime.max.replace(tzinfo=timezone(-HOUR))})


@pytest.mark.parametrize(
    ("value", "exists"), [(0, True), (False, True), ("", True), ([], True), (None, False)]
)
def test_only_null_does_not_exist(value: object, exists: bool) -> None:
    assert matches(Exists(("x",)), {"metadata": {"x": value}}) is exists


def test_a_row_of_a_document_has_each_field() -> None:
    document = prepared(
        "k", "text", author="ann", role="user", thread="t", sequence=3, trust="standard"
    ).document
    row = document_row(document, 5)
    assert set(row) == FIELDS | {"metadata"}
    assert {name: row[name] for name in FIELDS - {"document", "position"}} == {
        name: getattr(document, name) for name in FIELDS - {"document", "position"}
    }
    assert (row["document"], row["position"]) == (document.id, 5)
    assert document_row(document)["position"] is None


@pytest.mark.parametrize("level", [None, *TRUST])
def test_a_demand_of_trust_lets_those_levels_through_that_are_as_high(level: object) -> None:
    condition = with_min_trust(Eq("kind", "page"), level)  # type: ignore[arg-type]
    admitted = [trust for trust in TRUST if matches(condition, {"kind": "page", "trust": trust})]
    lowest = TRUST.index(level) if level in TRUST[:2] else len(TRUST) - 1  # type: ignore[arg-type]
    assert admitted == list(TRUST[: lowest + 1])
    assert not matches(condition, {"kind": "task", "trust": TRUST[0]})


def test_the_leaves_of_a_filter_come_in_its_order() -> None:
    one, two, three = Eq("kind", "a"), Exists("author"), Overlaps()
    assert list(leaves(And((Not(one), Or((two, And((three,)))))))) == [one, two, three]
    assert list(leaves(one)) == [one]
    assert list(leaves(EVERYTHING)) == []
