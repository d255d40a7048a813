"""The partitions that a filter needs."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index_strategies import filters
from tests.support.journal import make_chunk

from conspectus.index.milvus.connection import compile_tenants, tenant
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not, Or, document_row, matches
from conspectus.model.ids import SourceId

A, BC = Eq("source", "a"), In("source", ("b", "c"))
MOMENT = datetime(2024, 5, 1, tzinfo=UTC)
NAMES = ("a", "b", "c", "2024-05-01T00:00:00Z", '"] or ["')
sources = st.sampled_from(NAMES)
bounding = st.one_of(
    st.builds(Eq, st.just("source"), sources | st.just(MOMENT)),
    st.builds(In, st.just("source"), st.lists(sources | st.just(MOMENT), max_size=3).map(tuple)),
)
nested = st.recursive(
    bounding | filters,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@given(nested, sources)
def test_whatever_matches_is_within(condition: Filter, source: str) -> None:
    chunk = make_chunk(1, "fox")
    document = replace(chunk.document, source=SourceId(source))
    expression = compile_tenants(condition)
    if matches(condition, document_row(document, 0)):
        assert expression is None or f'"{tenant(source)}"' in expression


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (EVERYTHING, None),
        (A, "a"),
        (BC, "bc"),
        (Or((A, BC)), "abc"),
        (And((Or((A, BC)), In("source", ("a", "c", "z")))), "ac"),
        (And((Exists("author"), A)), "a"),
        (Or((Exists("author"), A)), None),
        (Not(A), None),
        (Eq("source", MOMENT), None),
        (In("source", ("a", MOMENT)), None),
        (In("source", tuple(map(str, range(33)))), None),
        (And((A, BC)), None),
    ],
)
def test_filters_that_bound_the_sources(condition: Filter, expected: str | None) -> None:
    tenants = compile_tenants(condition)
    assert (tenants is None) == (expected is None)
    assert set((tenants or "").replace('"', "").removeprefix("tenant in [").rstrip("]").split(",")) - {
        ""
    } == {tenant(name) for name in expected or ""}
