"""Levels of origins: the least trusted, and limits."""

import pytest

from conspectus.model.trust import HIGHEST, ORIGINS, highest_in, least, least_trusted, origin_in


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
