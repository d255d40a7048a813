"""Metadata are looked for exactly, whatever JSON they are."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from conspectus.facades.video.metadata import from_stored, metadata_filter, to_stored
from conspectus.model.filter import matches

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=3)
NAMES = st.sampled_from(["a", "b", "whole", "stream"]) | TEXT
PLAIN = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -0.0]) | TEXT
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
FACTS = st.dictionaries(NAMES, VALUES, max_size=4)


def canonical(value: Any) -> Any:
    """Something that is equal for equal JSON: truth values are no numbers, 1 and 1.0 are one."""
    if isinstance(value, dict):
        return {name: canonical(member) for name, member in value.items()}
    if isinstance(value, list):
        return [canonical(member) for member in value]
    return (isinstance(value, bool), value)


@given(FACTS, FACTS)
@example({"a": ["x"]}, {"a": "x"})
@example({"a": "x"}, {"a": ["x"]})
@example({"a": [1]}, {"a": [1.0]})
@example({"a": [True]}, {"a": [1]})
@example({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}})
@example({}, {"a": None})
def test_a_filter_matches_what_is_equal(facts: dict[str, Any], conditions: dict[str, Any]) -> None:
    row = {"kind": "caption", "metadata": to_stored(facts)}
    expected = all(canonical(facts.get(name)) == canonical(value) for name, value in conditions.items())
    assert matches(metadata_filter(conditions, {}), row) is expected


@given(FACTS)
def test_everything_is_found_by_what_it_has_and_given_back(facts: dict[str, Any]) -> None:
    stored = to_stored(facts)
    assert matches(metadata_filter(facts, {}), {"kind": "caption", "metadata": stored})
    assert from_stored(stored) == facts
    assert json.loads(json.dumps(stored)) == stored
