"""The meaning of filters, on the cases where stores usually disagree."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.support.samples import prepared

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
    among_sources,
    document_row,
    leaves,
    matches,
    names_texts,
    require_ids,
    value_at,
    with_min_trust,
)
from conspectus.model.filter_operands import MetadataPath
from conspectus.model.records import Period
from conspectus.model.trust import TRUST
from conspectus.text.hashing import stable_id

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DERIVED = {"document", "position", "file", "folder"}
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
    ("part", "title", "is_contained"),
    [
        ("BACK", "The backup", True),
        ("straße", "STRASSE 7", True),
        ("o\u0308l", "KÖLN", True),
        ("k", "273 \u212a", True),
        ("ol", "Köln", False),
        ("%", "100", False),
        ("a", None, False),
    ],
)
def test_a_part_of_a_text_is_found_whatever_its_case(
    part: str, title: str | None, is_contained: bool
) -> None:
    assert matches(Contains("title", part), {"title": title}) is is_contained
    assert matches(Contains(("names",), part), {"metadata": {"names": [1, title]}}) is is_contained


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
        (Contains(("text",), "A"), False),
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


@pytest.mark.parametrize(
    ("kind", "arguments", "advice"),
    [
        (Eq, [("metadata", "team"), "ops"], r"write \('team',\)"),
        (In, [("metadata", "team"), ("ops",)], r"write \('team',\)"),
        (Between, [("metadata", "n"), 1, 5], r"write \('n',\)"),
        (Exists, [("metadata", "team")], r"write \('team',\)"),
        (Eq, ["metadata.team", "ops"], r"write the path as a tuple: \('team',\)"),
        (Exists, ["team"], r"write the path as a tuple: \('team',\)"),
        (Eq, [(), "x"], "name a key"),
        (Eq, ["occurred", NOON], "use Overlaps"),
        (Between, ["occurred", NOON], "use Overlaps"),
        (Contains, ["author", "a"], "contains is not for author; it is for title, key, file, folder"),
        (Contains, ["title", ""], "at least one character"),
        (Contains, [(), "a"], "is an empty path"),
        (Eq, ["recorded", "2026-01-05"], "time with a zone"),
        (Between, ["recorded", None, 5], "time with a zone"),
        (Eq, ["recorded", NOON.replace(tzinfo=None)], "must have a zone"),
        (Eq, [("when",), NOON.replace(tzinfo=None)], "must have a zone"),
        (Overlaps, [NOON.replace(tzinfo=None)], "must have a zone"),
        (Eq, ["sequence", "7"], "give a number"),
        (In, ["position", (1, True)], "give a number"),
        (Eq, ["kind", 3], "a text, in quotes"),
        (Eq, ["title", True], "a text, in quotes"),
        (Eq, ["trust", "hihg"], "one of trusted, standard"),
        (Eq, ["kind", "pages"], "one of page, message"),
        (Between, [("n",), 1, "5"], "two of one type"),
        (Between, [("n",), True, 5], "two of one type"),
    ],
)
def test_what_can_match_nothing_by_its_form_is_refused(kind: Any, arguments: list[Any], advice: str) -> None:
    with pytest.raises(InvalidInput, match=advice) as refused:
        kind(*arguments)
    assert refused.value.field in {"filter", "start"}


@pytest.mark.parametrize(
    "condition",
    [
        Eq("source", "handbook"),
        Not(In("document", (stable_id("document", "s", "k"), "menu.md"))),
        Or((Eq("kind", "page"), Eq("parent", "menu.md"))),
    ],
)
def test_a_name_where_only_an_id_can_match_is_refused(condition: Filter) -> None:
    with pytest.raises(InvalidInput, match=r"is an id, and '.*' is none"):
        require_ids(condition)
    require_ids(And((Eq("source", stable_id("source", "c", "handbook")), Exists("parent"))))


def test_a_key_that_is_called_metadata_has_a_path() -> None:
    assert matches(Eq(MetadataPath(("metadata", "team")), "ops"), {"metadata": {"metadata": {"team": "ops"}}})
    assert matches(Eq(("metadata",), "x"), {"metadata": {"metadata": "x"}})


@pytest.mark.parametrize("stored", ["Köln", "Ko\u0308ln"])
@pytest.mark.parametrize("asked_city", ["Köln", "Ko\u0308ln"])
def test_composed_and_decomposed_accents_are_equal(stored: str, asked_city: str) -> None:
    row = {"author": stored, "metadata": {"city": [stored]}}
    assert matches(Eq("author", asked_city), row)
    assert matches(In(("city",), ("x", asked_city)), row)
    assert matches(Between("author", asked_city, "Kz"), row) is matches(Between("author", "Köln", "Kz"), row)


def test_a_file_and_its_folders_are_parts_of_the_key() -> None:
    row = document_row(prepared("docs/old/menu.md", "text", title="Menu").document)
    assert (row["file"], row["folder"]) == ("menu.md", ("docs", "docs/old"))
    assert matches(And((Eq("folder", "docs"), Eq("file", "menu.md"), Eq("title", "Menu"))), row)
    assert not matches(Or((Eq("folder", "old"), Eq("file", "docs"), Eq("key", "menu.md"))), row)
    plain = document_row(prepared("menu.md", "text", title="").document)
    assert not matches(Or((Exists("folder"), Exists("title"))), plain)


def test_a_naive_instant_equals_none() -> None:
    naive = NOON.replace(tzinfo=None)
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
    assert {name: row[name] for name in FIELDS - DERIVED} == {
        name: getattr(document, name) for name in FIELDS - DERIVED
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
    one, two, three = Eq("author", "a"), Exists("author"), Overlaps()
    assert list(leaves(And((Not(one), Or((two, And((three,)))))))) == [one, two, three]
    assert list(leaves(one)) == [one]
    assert list(leaves(EVERYTHING)) == []


@pytest.mark.parametrize(
    ("condition", "is_named"),
    [
        (Eq("thread", "t"), True),
        (In("document", ("a", "b")), True),
        (And((Eq("kind", "page"), Eq("document", "a"))), True),
        (Or((Eq("document", "a"), Eq("thread", "t"))), True),
        (Or((Eq("document", "a"), Eq("kind", "page"))), False),
        (Or(), False),
        (Not(Eq("document", "a")), False),
        (Eq("source", "s"), False),
        (Eq(("thread",), "t"), False),
        (And(), False),
    ],
)
def test_a_filter_names_texts_by_document_or_thread(condition: Filter, is_named: bool) -> None:
    assert names_texts(condition) is is_named


def test_many_sources_are_shown_by_their_digest() -> None:
    sources = among_sources(["b", "a"])
    assert sources.values == ("a", "b")
    assert repr(sources) == repr(among_sources(["a", "b"]))
    assert repr(sources) not in {repr(among_sources(["ab"])), repr(In("source", ("a", "b")))}
    rows = [{"source": source} for source in ("a", "b", "aa", "c", None, 1)]
    assert [matches(sources, row) for row in rows] == [True, True, False, False, False, False]
