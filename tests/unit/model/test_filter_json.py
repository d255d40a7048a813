"""Filters survive the way through JSON; anything else is refused with a reason."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.filters import build_leaves

from conspectus.errors import InvalidInput
from conspectus.model.filter import (
    EVERYTHING,
    FIELDS,
    And,
    Between,
    Contains,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
)
from conspectus.model.filter_json import (
    DEEPEST,
    MAX_FILTER_LENGTH,
    MAX_PARTS,
    filter_from_json,
    filter_from_mapping,
    filter_to_json,
    parse_filter,
    parse_filters,
)
from conspectus.model.filter_operands import MetadataPath

MAY = datetime(2024, 5, 1, tzinfo=UTC)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(timezones=ZONES)
SCALARS = st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TIMES
NAMES = st.sampled_from(sorted(FIELDS)) | st.lists(st.text(max_size=4), min_size=1, max_size=3).map(tuple)
LEAVES = st.one_of(
    build_leaves(Eq, NAMES, SCALARS),
    build_leaves(In, NAMES, st.lists(SCALARS, max_size=4).map(tuple)),
    build_leaves(Between, NAMES, st.none() | SCALARS, st.none() | SCALARS),
    build_leaves(Overlaps, st.none() | TIMES, st.none() | TIMES),
    build_leaves(Exists, NAMES),
    build_leaves(Contains, NAMES, st.text(min_size=1, max_size=3)),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=12,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["field", "eq", "in", "from", "to", "not", "and", "or", "overlaps", "time", "exists"]
            ),
            inner | st.sampled_from(["kind", "metadata.a"]),
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(FILTERS)
def test_a_filter_survives_the_way_through_json(condition: Filter) -> None:
    text = json.dumps(filter_to_json(condition), allow_nan=False)
    assert parse_filter(text) == condition


@given(JSON)
def test_any_json_is_a_filter_or_refused(value: object) -> None:
    try:
        condition = filter_from_json(value)
    except InvalidInput as error:
        assert error.field == "filter"
        return
    assert filter_from_json(filter_to_json(condition)) == condition


@given(st.text())
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    try:
        parse_filter(text)
    except InvalidInput as error:
        assert error.field == "filter"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("kind=page", Eq("kind", "page")),
        ("sequence=3", Eq("sequence", 3)),
        ("metadata.lang=de", Eq(("lang",), "de")),
        ("metadata.a.b=true", Eq(("a", "b"), True)),
        ("metadata.price=1.5", Eq(("price",), 1.5)),
        ('metadata.version="3"', Eq(("version",), "3")),
        ("metadata.x=null", Eq(("x",), "null")),
        ("metadata.x=[1]", Eq(("x",), "[1]")),
        ("metadata.x=a=b", Eq(("x",), "a=b")),
        ("metadata.x=", Eq(("x",), "")),
        ("metadata.x=NaN", Eq(("x",), "NaN")),
        ("author= Ann ", Eq("author", " Ann ")),
        ("occurred=2024-05-01..", Overlaps(MAY, None)),
        ("occurred=..2024-05-01T02:00:00+02:00", Overlaps(None, MAY)),
        ("recorded=2024-05-01", Eq("recorded", MAY)),
        ("recorded=2024-05-01..", Between("recorded", MAY)),
        ("title~=back=up", Contains("title", "back=up")),
        ("metadata.lang ~= en ", Contains(("lang",), "en")),
        ('{"field": "file", "contains": "MENU"}', Contains("file", "MENU")),
        ("thread=3", Eq("thread", "3")),
        ('title="3"', Eq("title", "3")),
        ("folder=docs/old", Eq("folder", "docs/old")),
        ("file=a..b", Eq("file", "a..b")),
        ("metadata.n=1..5", Between(("n",), 1, 5)),
        ("metadata.n=..0.5", Between(("n",), None, 0.5)),
        ("sequence= 3 .. ", Between("sequence", 3)),
        ('metadata.n="1..5"', Eq(("n",), "1..5")),
        ("metadata.file=../x", Eq(("file",), "../x")),
        ("metadata.x=..", Eq(("x",), "..")),
        ("metadata.x=a..z", Eq(("x",), "a..z")),
        ("metadata.day=2024-05-01..", Or((Between(("day",), "2024-05-01"), Between(("day",), MAY)))),
        ("metadata.metadata.team=ops", Eq(MetadataPath(("metadata", "team")), "ops")),
        ('{"field": ["metadata", "a.b"], "exists": true}', Exists(("a.b",))),
        ('{"field": "recorded", "from": {"time": "2024-05-01T00:00:00Z"}}', Between("recorded", MAY)),
        (' {"not": {"or": []}}', Not(Or())),
    ],
)
def test_what_a_person_would_type(text: str, condition: Filter) -> None:
    assert parse_filter(text) == condition


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "neither field=value nor"),
        ("page", "neither field=value nor"),
        ("colour=red", "is not a field; use metadata.KEY or one of author"),
        ("metadata=x", "is not a field"),
        ("metadata.=x", "is not a field"),
        ("occurred=2024", "occurred=START..END"),
        ("occurred=x..y", "is not an ISO 8601 time"),
        ("{", "is not JSON"),
        ("{}", "is not a field"),
        ('{"field": "kind"}', "needs one of eq, in"),
        ('{"field": "kind", "eq": "a", "in": []}', "needs one of eq, in"),
        ('{"field": "kind", "eq": null}', "expected a string, a number"),
        ('{"field": "kind", "eq": NaN}', "finite"),
        ('{"field": "kind", "exists": false}', "needs one of"),
        ('{"field": "recorded", "eq": {"time": "2024-05-01"}}', "with a zone"),
        ('{"overlaps": {"start": "2024-05-01T00:00:00Z"}}', "takes from and to"),
        ('{"and": {}}', "expected a list"),
        ('{"not": [], "and": []}', "is not a field"),
        ('{"not":' * 40 + "{}" + "}" * 40, "nested more than 32 deep"),
        ('{"not":' * 10_000 + "{}" + "}" * 10_000, "nested"),
        ('{"or": [' + ",".join(['{"or": []}'] * 1000) + "]}", "more than 1000 parts"),
        ('{"field": "kind", "in": [' + ",".join(["1"] * 1000) + "]}", "more than 1000 parts"),
        ("kind=" + "x" * 100_000, "longer than"),
        ('{"field": "sequence", "eq": ' + "9" * 5_000 + "}", "is not JSON"),
    ],
)
def test_what_cannot_be_a_filter_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason.replace("(", r"\(")) as caught:
        parse_filter(text)
    assert len(str(caught.value)) < 400


def test_several_filters_hold_together() -> None:
    assert parse_filters([]) == EVERYTHING
    assert parse_filters(["kind=page"]) == Eq("kind", "page")
    assert parse_filters(["kind=page", "role=user"]) == And((Eq("kind", "page"), Eq("role", "user")))


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(InvalidInput, match="finite"):
        filter_to_json(Eq("sequence", float("inf")))


def test_a_filter_may_be_as_deep_as_the_limit_says() -> None:
    def nested(depth: int) -> dict[str, object]:
        condition: dict[str, object] = {"or": []}
        for level in range(depth):
            condition = [{"not": condition}, {"and": [condition]}, {"or": [condition]}][level % 3]  # type: ignore[list-item]
        return condition

    assert filter_to_json(filter_from_json(nested(DEEPEST))) == nested(DEEPEST)
    with pytest.raises(InvalidInput, match=f"nested more than {DEEPEST} deep"):
        filter_from_json(nested(DEEPEST + 1))


@pytest.mark.parametrize("operator", ["and", "or"])
def test_a_filter_may_have_as_many_parts_as_the_limit_says(operator: str) -> None:
    part = {"field": "kind", "eq": "page"}
    values = list(range(MAX_PARTS - 1))
    assert filter_to_json(filter_from_json({operator: [part] * (MAX_PARTS - 1)}))
    assert filter_from_json({"field": "sequence", "in": values}) == In("sequence", tuple(values))
    with pytest.raises(InvalidInput, match=f"more than {MAX_PARTS} parts"):
        filter_from_json({operator: [part] * MAX_PARTS})
    with pytest.raises(InvalidInput, match=f"more than {MAX_PARTS} parts"):
        filter_from_json({operator: [{"field": "sequence", "in": values[1:]}, part]})


def test_the_text_of_a_filter_may_be_as_long_as_the_limit_says() -> None:
    value = "x" * (MAX_FILTER_LENGTH - len("thread="))
    assert parse_filter(f"thread={value}") == Eq("thread", value)
    with pytest.raises(InvalidInput, match=f"longer than {MAX_FILTER_LENGTH} characters"):
        parse_filter(f"thread={value}x")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        (" kind =page", Eq("kind", "page")),
        ("occurred= 2024-05-01 .. 2024-05-01T02:00+02:00 ", Overlaps(MAY, MAY)),
        ("occurred=..", Overlaps()),
        ("occurred= .. ", Overlaps()),
        ("recorded= 2024-05-01T00:00Z ", Eq("recorded", MAY)),
        ("recorded=", Exists("recorded")),
        ('metadata.x={"time": "2024-05-01T00:00Z"}', Eq(("x",), MAY)),
        ('metadata.x={"time": "2024-05-01"}', Eq(("x",), '{"time": "2024-05-01"}')),
        ("metadata.x=" + "[" * 50_000, Eq(("x",), "[" * 50_000)),
    ],
)
def test_white_space_around_names_and_times_does_not_count(text: str, condition: Filter) -> None:
    assert parse_filter(text) == condition


@pytest.mark.parametrize(
    "field", ["metadata", "other.x", ["metadata"], ["other", "x"], ["metadata", 1], [], None, 5]
)
def test_a_field_is_a_name_or_a_path_in_the_metadata(field: object) -> None:
    with pytest.raises(InvalidInput, match="is not a field"):
        filter_from_json({"field": field, "eq": 1})


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (("a",), "metadata.a"),
        (("a", "b"), "metadata.a.b"),
        (("a.b",), ["metadata", "a.b"]),
        (("a", ""), ["metadata", "a", ""]),
        (("a", "b.c", "d"), ["metadata", "a", "b.c", "d"]),
    ],
)
def test_a_path_is_written_with_dots_only_if_it_is_read_again_so(
    path: tuple[str, ...], written: object
) -> None:
    assert filter_to_json(Exists(path)) == {"field": written, "exists": True}
    assert filter_from_json({"field": written, "exists": True}) == Exists(path)


@pytest.mark.parametrize(
    ("mapping", "condition"),
    [
        ({}, And()),
        ({"kind": "page"}, Eq("kind", "page")),
        ({"kind": ["page", "task"]}, In("kind", ("page", "task"))),
        ({"kind": ("page",)}, In("kind", ("page",))),
        ({"kind": "page", "metadata.n": 1}, And((Eq("kind", "page"), Eq(("n",), 1)))),
        ({"not": {"or": []}}, Not(Or())),
        ({"field": "kind", "eq": "page"}, Eq("kind", "page")),
        ({"overlaps": {"from": "2024-05-01T00:00Z"}}, Overlaps(MAY)),
    ],
)
def test_a_mapping_is_a_filter_or_fields_that_all_have_a_value(
    mapping: dict[str, object], condition: Filter
) -> None:
    assert filter_from_mapping(mapping) == condition


@pytest.mark.parametrize(
    "mapping",
    [{"color": "red"}, {"kind": None}, {"kind": {"a": 1}}, {"and": [], "kind": "page"}, {"kind": [None]}],
)
def test_a_mapping_that_is_no_filter_is_refused(mapping: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        filter_from_mapping(mapping)
    assert refused.value.field == "filter"
