"""Which rules of a wiki concern a page: pages of one chain are read by the same people."""

import pytest

from conspectus_connectors.dokuwiki import markdown_headings
from conspectus_connectors.dokuwiki_api import PageRules, viewers_by_page


@pytest.mark.parametrize(
    ("page", "chain"),
    [
        ("start", ("*",)),
        ("team:plan", ("team:*", "*")),
        ("team:plan:old", ("team:*", "*")),
        ("team:secret:plan", ("team:secret:*", "team:*", "*")),
        ("team:open", ("team:open", "team:*", "*")),
        ("user:ann:notes", None),
        ("user:ann", None),
        ("users:ann", ("*",)),
    ],
)
def test_the_rules_of_a_page(page: str, chain: tuple[str, ...] | None) -> None:
    scopes = {"*", "team:*", "team:secret:*", "team:open", "user:%USER%:*", "user:%USER%"}
    assert PageRules(frozenset(scopes)).chain_of(page) == chain


def test_pages_of_one_chain_have_the_same_viewers() -> None:
    rules = PageRules(frozenset({"*", "team:*", "user:%USER%:*"}))
    pages = ["start", "team:a", "team:b", "user:ann:notes"]
    readers = {"start": ("ann", "ben"), "team:a": ("ann",)}
    assert viewers_by_page(pages, rules, readers) == {
        "start": ("ann", "ben"),
        "team:a": ("ann",),
        "team:b": ("ann",),
        "user:ann:notes": (),
    }


def test_headings_become_markdown() -> None:
    text = "====== Plan ======\n\nwords = more\n\n== Detail ==\n"
    assert markdown_headings(text) == "# Plan\n\nwords = more\n\n##### Detail\n"
