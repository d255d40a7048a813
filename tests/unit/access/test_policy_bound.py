"""The sources that a filter is bound to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.access.policy import bound
from conspectus.model.filter import EVERYTHING, And, Eq, Filter, In, Not, Or, matches

NAMES = st.sampled_from("abcd")
LEAVES = st.one_of(
    NAMES.map(lambda name: Eq("source", name)),
    st.lists(NAMES, max_size=3).map(lambda names: In("source", tuple(names))),
    NAMES.map(lambda name: Eq("thread", name)),
    NAMES.map(lambda name: In(("source",), (name,))),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda filters: And(tuple(filters))),
        st.lists(inner, max_size=3).map(lambda filters: Or(tuple(filters))),
    ),
)


@given(FILTERS, NAMES, NAMES)
def test_what_a_filter_leaves_in_stands_in_the_sources_that_it_is_bound_to(
    condition: Filter, source: str, thread: str
) -> None:
    row = {"source": source, "thread": thread, "metadata": {"source": thread}}
    within = bound(condition)
    if matches(condition, row) and within is not None:
        assert source in within


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (EVERYTHING, None),
        (Or(), set()),
        (Not(Eq("source", "a")), None),
        (And((Eq("source", "a"), Eq("kind", "page"))), {"a"}),
        (And((In("source", ("a", "b")), In("source", ("b", "c")))), {"b"}),
        (Or((Eq("source", "a"), In("source", ("b",)))), {"a", "b"}),
        (Or((Eq("source", "a"), Eq("kind", "page"))), None),
        (In(("source",), ("a",)), None),
    ],
)
def test_bounds_are_as_narrow_as_the_filter_says(condition: Filter, expected: set[str] | None) -> None:
    assert bound(condition) == expected
