"""Levels of origins: the least trusted, and limits."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.trust import (
    HIGHEST,
    ORIGINS,
    TRUST,
    Origin,
    Trust,
    highest_in,
    least,
    least_trusted,
    origin_in,
)


@pytest.mark.parametrize(
    ("kind", "role", "origin"),
    [
        ("manual", None, "user"),
        ("manual", "user", "user"),
        ("manual", "", "user"),
        ("manual", "Assistant", "agent"),
        ("manual", "MODEL", "agent"),
        ("manual", "function", "tool"),
        ("web", None, "web"),
        ("web", "assistant", "web"),
        ("wiki", None, "import"),
        ("wiki", "tool", "tool"),
    ],
)
def test_a_text_comes_from_the_least_trusted_of_its_source_and_role(
    kind: str, role: str | None, origin: str
) -> None:
    assert origin_in(kind, role) == origin


def test_without_a_limit_everything_is_trusted() -> None:
    assert (least(), least(None), least_trusted(), least_trusted(None)) == (
        "trusted",
        "trusted",
        "user",
        "user",
    )
    assert least("standard", None, "quarantined", "untrusted") == "quarantined"
    assert least_trusted("tool", "web") == "tool"
    assert set(HIGHEST) == set(ORIGINS)
    assert [highest_in(kind) for kind in ("channel", "stream", "manual", "memory")] == [
        "standard", "standard", "trusted", "trusted",
    ]  # fmt: skip


@given(st.lists(st.sampled_from(TRUST)), st.lists(st.sampled_from(ORIGINS), min_size=1))
def test_what_is_made_of_texts_is_no_more_trusted_than_any(
    levels: Sequence[Trust], origins: Sequence[Origin]
) -> None:
    lowest = least(*levels, None)
    assert all(TRUST.index(lowest) >= TRUST.index(level) for level in levels)
    assert lowest in {*levels, "trusted"}
    assert HIGHEST[least_trusted(*origins, None)] == least(*(HIGHEST[origin] for origin in origins))
