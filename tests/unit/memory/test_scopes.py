"""Scopes of memories: which scope reads which, their names, and the limits of rules and selections."""

import inspect
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Unpack, get_args, get_origin, get_type_hints
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.samples import prepared

from conspectus.engine.memory import MemoryService
from conspectus.engine.retention import RetentionService
from conspectus.errors import InvalidInput
from conspectus.memory.retention import (
    COUNTED,
    add_receipts,
    check_forgetting,
    check_retention,
    counts_of,
    oldest,
    selection_filter,
)
from conspectus.memory.scopes import (
    MAX_LENGTH,
    applies_in,
    check_scope,
    common_prefix,
    end_of_prefix,
    graph_name,
    includes_scope,
    readable,
    scope_of,
    source_name,
)
from conspectus.model.filter import matches
from conspectus.model.memory import MemoryReceipt, MemorySelection, Retention, Scope, ScopeNames
from conspectus.model.records import Document, Period

FEW = st.none() | st.sampled_from(["a", "ab", "a/b", "%", "%2F", "~", "ü", "*", "."])
NAMES = FEW | st.text(min_size=1, max_size=5)
SCOPES, FEW_SCOPES = st.builds(Scope, NAMES, NAMES, NAMES), st.builds(Scope, FEW, FEW, FEW)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def matches_name(name: str | None, memory_name: str | None) -> bool:
    """Whether a name that is given or left open is that of a memory."""
    return name is None or name == memory_name


@given(FEW_SCOPES, FEW_SCOPES)
def test_a_scope_reads_its_user_and_what_it_leaves_open(scope: Scope, memory_scope: Scope) -> None:
    expected = (
        scope.user == memory_scope.user
        and matches_name(scope.agent, memory_scope.agent)
        and matches_name(scope.conversation, memory_scope.conversation)
    )
    assert includes_scope(scope, memory_scope) is expected


def test_no_user_is_a_user_of_its_own_and_an_open_agent_is_any() -> None:
    assert not includes_scope(Scope(), Scope("ann"))
    assert not includes_scope(Scope("ann"), Scope())
    assert includes_scope(Scope("ann"), Scope("ann", "bot", "monday"))
    assert includes_scope(Scope("ann", None, "monday"), Scope("ann", "bot", "monday"))
    assert not includes_scope(Scope("ann", "bot"), Scope("ann", None, "monday"))
    assert not includes_scope(Scope("ann", "bot", "monday"), Scope("ann", "bot"))


@given(SCOPES | FEW_SCOPES, SCOPES | FEW_SCOPES)
def test_names_of_sources_say_what_scopes_say(scope: Scope, memory_scope: Scope) -> None:
    name, begins = source_name(memory_scope), common_prefix(scope)
    assert readable(scope)(name) is includes_scope(scope, memory_scope)
    if includes_scope(scope, memory_scope):
        assert begins <= name < end_of_prefix(begins)
        assert name.startswith(begins)


@given(FEW_SCOPES, FEW_SCOPES)
def test_between_the_bounds_of_a_scope_stand_memories_of_its_user_only(
    scope: Scope, memory_scope: Scope
) -> None:
    begins = common_prefix(scope)
    if begins <= source_name(memory_scope) < end_of_prefix(begins):
        assert memory_scope.user == scope.user


@given(FEW_SCOPES, st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=9))
def test_the_bounds_of_a_scope_hold_the_names_that_begin_so(scope: Scope, rest: str) -> None:
    begins = common_prefix(scope)
    for name in (begins + rest, begins[:-1] + rest, rest):
        assert (begins <= name < end_of_prefix(begins)) is name.startswith(begins)


@pytest.mark.parametrize(
    ("scope", "begins"),
    [
        (Scope("ann"), "memory/ann/"),
        (Scope("ann", None, "monday"), "memory/ann/"),
        (Scope("ann", "bot"), "memory/ann/bot/"),
        (Scope("ann", "bot", "monday"), "memory/ann/bot/monday"),
        (Scope(), "memory//"),
        (Scope("a/b", "*", "ü"), "memory/a%2Fb/%2A/%C3%BC"),
    ],
)
def test_names_of_a_scope_begin_with_what_it_names(scope: Scope, begins: str) -> None:
    assert common_prefix(scope) == begins
    assert common_prefix(scope, "graph") == begins.replace("memory", "graph", 1)


@pytest.mark.parametrize(
    "name",
    ["memory/ann", "memory/ann/bot", "memory/ann/bot/monday/more", "other/ann/bot", "", "memory", "///"],
)
def test_a_name_of_other_parts_is_no_source_of_memories(name: str) -> None:
    assert not readable(Scope("ann"))(name)
    with pytest.raises(InvalidInput, match="holds no memories") as refused:
        scope_of(name)
    assert refused.value.field == "source"


@given(SCOPES | FEW_SCOPES)
def test_a_scope_is_read_from_the_name_of_its_source_and_graph(scope: Scope) -> None:
    assert scope_of(source_name(scope)) == scope_of(graph_name(scope)) == scope
    assert source_name(scope).partition("/")[2] == graph_name(scope).partition("/")[2]
    assert source_name(scope).isascii() and source_name(scope).count("/") == 3


@given(SCOPES | FEW_SCOPES, SCOPES | FEW_SCOPES)
def test_two_scopes_never_share_a_source(one: Scope, other: Scope) -> None:
    assert (source_name(one) == source_name(other)) is (one == other)


def test_a_note_reaches_all_that_its_scope_leaves_open() -> None:
    names = (None, "a", "b")
    for note, scope in product(product(names, repeat=3), repeat=2):
        expected = note[0] == scope[0] and all(
            mine is None or theirs is None or mine == theirs
            for mine, theirs in zip(note[1:], scope[1:], strict=True)
        )
        assert applies_in(Scope(*note), Scope(*scope)) is expected


@pytest.mark.parametrize("field", ["user", "agent", "conversation"])
@pytest.mark.parametrize(
    "name", ["", " ", "\n\t", "a\0", "\ud800", "a\udfff", "x" * (MAX_LENGTH + 1), "ü" * 51]
)
def test_a_name_that_cannot_be_stored_is_refused_with_its_field(field: str, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_scope(Scope(**{field: name}))
    assert refused.value.field == field


@pytest.mark.parametrize(
    "name", ["x" * MAX_LENGTH, "ü" * 50, "/" * 100, " a ", "a\u0085", "*", "~" * MAX_LENGTH]
)
def test_a_name_may_be_as_long_as_its_encoded_form_may_be(name: str) -> None:
    assert len(quote(name, safe="")) <= MAX_LENGTH
    assert check_scope(Scope(name, name, name)) == Scope(name, name, name)


@pytest.mark.parametrize(
    ("days", "maximum", "field"),
    [
        (None, None, "days"), (-0.001, None, "days"), (365_000 + 1, 1, "days"), (float("nan"), None, "days"),
        (float("inf"), None, "days"), (None, -1, "max_count"), (None, 1_000_000_000 + 1, "max_count"),
        (1, -1, "max_count"),
    ],
)  # fmt: skip
def test_a_rule_beyond_its_limits_is_refused(days: float | None, maximum: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_retention(Retention(days, maximum))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("days", "maximum"), [(0, None), (365_000, None), (0.5, 0), (None, 0), (None, 1_000_000_000)]
)
def test_a_rule_at_its_limits_is_one(days: float | None, maximum: int | None) -> None:
    assert check_retention(Retention(days, maximum)) == Retention(days, maximum)


@pytest.mark.parametrize(
    "criteria",
    [
        {}, {"pinned": True}, {"ids": ("a",), "everything": True}, {"before": NOON, "older_than_days": 1.0},
        {"ids": ("a",), "before": NOON}, {"older_than_days": 0.0, "everything": True},
    ],
)  # fmt: skip
def test_a_selection_has_one_criterion(criteria: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="exactly one of") as refused:
        check_forgetting(MemorySelection(**criteria))  # type: ignore[arg-type]
    assert refused.value.field == "ids"


@pytest.mark.parametrize(
    "criteria",
    [
        {"ids": ("a",)}, {"before": NOON}, {"older_than_days": 0.0}, {"older_than_days": 365_000},
        {"everything": True}, {"everything": True, "pinned": True},
    ],
)  # fmt: skip
def test_a_selection_with_one_criterion_is_one(criteria: dict[str, object]) -> None:
    selection = MemorySelection(**criteria)  # type: ignore[arg-type]
    assert check_forgetting(selection) is selection


@pytest.mark.parametrize("days", [-1.0, 365_000 + 0.5])
def test_a_selection_of_impossible_days_is_refused(days: float) -> None:
    with pytest.raises(InvalidInput, match="must be from 0 to 365000") as refused:
        MemorySelection(older_than_days=days)
    assert refused.value.field == "older_than_days"


@pytest.mark.parametrize(
    ("criteria", "selected"),
    [
        ({"everything": True}, {"old", "new", "future"}),
        ({"everything": True, "pinned": True}, {"old", "new", "future", "pinned"}),
        ({"before": NOON}, {"old"}),
        ({"before": NOON - DAY}, set()),
        ({"older_than_days": 0.5}, {"old"}),
        ({"older_than_days": 0.5, "pinned": True}, {"old", "pinned"}),
        ({"older_than_days": 1.0}, set()),
        ({"older_than_days": 0.0}, {"old"}),
    ],
)  # fmt: skip
def test_a_selection_takes_what_was_said_before_and_is_not_pinned(
    criteria: dict[str, object], selected: set[str]
) -> None:
    starts = {"old": NOON - DAY, "pinned": NOON - DAY, "new": NOON, "future": NOON + DAY}
    rows = {
        name: {"occurred": Period(start, start), "metadata": {"pinned": True} if name == "pinned" else {}}
        for name, start in starts.items()
    }
    condition = selection_filter(MemorySelection(**criteria), NOON)  # type: ignore[arg-type]
    assert {name for name, row in rows.items() if matches(condition, row)} == selected


def make_turn(name: str, day: int | None) -> Document:
    at = None if day is None else Period(NOON + day * DAY, NOON + day * DAY)
    return prepared(name, "x", occurred=at).document


@pytest.mark.parametrize(
    ("before", "beyond", "gone"),
    [
        (None, None, []),
        (None, 0, ["c", "d", "b", "a"]),
        (None, 3, ["a"]),
        (None, 4, []),
        (1, None, ["a"]),
        (2, None, ["b", "a"]),
        (9, 9, ["c", "d", "b", "a"]),
        (1, 2, ["b", "a"]),
    ],
)
def test_the_oldest_turns_go_by_age_and_by_number(
    before: int | None, beyond: int | None, gone: list[str]
) -> None:
    turns = [
        make_turn("b", 1),
        make_turn("undated", None),
        make_turn("d", 2),
        make_turn("a", 0),
        make_turn("c", 3),
    ]
    limit = None if before is None else NOON + before * DAY
    assert oldest(turns, before=limit, beyond=beyond) == gone


def test_receipts_add_up_in_every_count() -> None:
    one = MemoryReceipt(ids=("a",), **{name: count for count, name in enumerate(COUNTED, 1)})
    other = MemoryReceipt(ids=("b", "c"), **dict.fromkeys(COUNTED, 10))
    both = add_receipts(one, other)
    assert [getattr(both, name) for name in COUNTED] == [11, 12, 13, 14, 15, 16, 17]
    assert both.ids == ("a", "b", "c")


def test_a_result_without_counts_counts_nothing() -> None:
    assert counts_of(None) == counts_of({}) == dict.fromkeys(COUNTED, 0)
    assert counts_of({"memories": 3, "facts": "4", "other": 5})["memories"] == 3
    assert counts_of({"memories": 3, "facts": "4", "other": 5})["facts"] == 0


SCOPED = [
    method
    for service in (MemoryService, RetentionService)
    for name, method in inspect.getmembers(service, inspect.iscoroutinefunction)
    if not name.startswith("_") and "scope" in inspect.signature(method).parameters
]


@pytest.mark.parametrize("method", SCOPED)
def test_every_method_of_a_scope_takes_its_names(method: Any) -> None:
    (options,) = (
        hint for hint in get_type_hints(inspect.unwrap(method)).values() if get_origin(hint) is Unpack
    )
    assert get_type_hints(get_args(options)[0]).keys() >= {field.name for field in fields(Scope)}


def test_the_names_of_a_scope_are_those_of_its_fields() -> None:
    hints = get_type_hints(Scope)
    assert get_type_hints(ScopeNames) == {field.name: hints[field.name] for field in fields(Scope)}
