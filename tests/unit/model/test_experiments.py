"""Options of runs: what is stored of them, and what they are as the defaults of a collection."""

from dataclasses import fields
from datetime import UTC, datetime

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.experiments import (
    RunQuery,
    RunQueryOptions,
    default_options,
    run_options_from_json,
    run_options_to_json,
    with_default_options,
)
from conspectus.model.filter import And, Eq
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import Query, QueryContext

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
EVERY_OPTION: RunQueryOptions = {
    "filter": And((Eq("key", "a"), Eq(("team",), "ops"))),
    "limit": 3,
    "min_similarity": 0.4,
    "min_confidence": 0.2,
    "retrievers": ("vector",),
    "rerank": False,
    "query_context": QueryContext(channel="ops", at=NOON, profile="multiplicative"),
    "thread_messages": 2,
    "as_of": NOON,
    "graph": GraphExpansion(alpha=0.7, graphs=("people",)),
    "min_trust": "trusted",
    "current": True,
}


def test_every_option_comes_back_as_stored() -> None:
    assert run_options_from_json(run_options_to_json(EVERY_OPTION)) == EVERY_OPTION
    assert EVERY_OPTION.keys() == RunQueryOptions.__annotations__.keys()


def test_a_run_has_every_option_of_a_query_that_its_set_does_not_decide() -> None:
    decided = {"query", "collection", "vector"}
    assert {field.name for field in fields(Query)} - decided == RunQueryOptions.__annotations__.keys()


def test_only_what_differs_from_a_plain_search_is_stored() -> None:
    plain = {name: getattr(RunQuery(), name) for name in RunQueryOptions.__annotations__}
    assert run_options_to_json(plain) == {}  # type: ignore[arg-type]
    assert run_options_to_json({"graph": GraphExpansion()}) == {"graph": {}}
    assert run_options_from_json({"graph": {}}) == {"graph": GraphExpansion()}


@pytest.mark.parametrize("name", ["filter", "limit", "as_of", "min_trust", "query_context"])
def test_what_decides_which_texts_are_searched_is_no_default(name: str) -> None:
    stored = run_options_to_json(EVERY_OPTION)
    with pytest.raises(InvalidInput, match=f"{name} cannot be a default"):
        default_options({name: stored[name]})
    assert default_options({"query_context": {"profile": "multiplicative"}}) != {}


def test_defaults_replace_the_built_in_options_only() -> None:
    defaults = run_options_to_json(
        {
            "retrievers": ("keyword",),
            "min_similarity": 0.4,
            "query_context": QueryContext(profile="multiplicative"),
        }
    )
    plain = with_default_options(Query("quince"), defaults)
    assert (plain.retrievers, plain.min_similarity) == (("keyword",), 0.4)
    assert plain.query_context == QueryContext(profile="multiplicative")
    query = Query("quince", min_similarity=0.1, query_context=QueryContext(channel="ops"))
    changed = with_default_options(query, defaults)
    assert (changed.min_similarity, changed.retrievers) == (0.1, ("keyword",))
    assert changed.query_context == QueryContext(channel="ops", profile="multiplicative")
    assert with_default_options(query, {}) is query
