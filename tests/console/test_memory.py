"""Memory: what was known when, what held when, and what is forgotten."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Opened, Site, demo, scrolls_sideways, violations

JULY = "/memory?at=2026-07-16T00:00:00Z&query=when+do+releases+go+out%3F"


@pytest.fixture
def changeable(tmp_path: Path) -> Iterator[Site]:
    """An example store that the test may change."""
    with demo(tmp_path / "demo") as site:
        yield site


def test_it_shows_what_was_known_at_a_time(visit: Opened, example: Site) -> None:
    page = visit(example, JULY, key=example.key)
    expect(page.get_by_role("heading", level=1)).to_have_text("What helper knew about ann on 16 Jul 2026")
    expect(page.locator(".out-of-date")).to_contain_text("held from 13 Jul 2026")
    recalled = page.get_by_role("region", name="Recall").get_by_role("listitem")
    expect(recalled.first).to_contain_text("Releases go out on Tuesdays, after the smoke tests.")
    page.get_by_label("As of").press("End")
    expect(page.locator(".out-of-date")).to_have_count(0)
    expect(recalled.first).to_contain_text("Tuesdays and Thursdays")
    assert "at=2026-07-16" not in page.url


def test_a_memory_is_forgotten_with_a_receipt(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/memory", key=changeable.key)
    rows = page.locator(".memory-row")
    expect(rows).to_have_count(9)
    rows.filter(has_text="I moved to Cologne").get_by_role("button", name="Forget …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("Purge")).check()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog).to_contain_text("purgedyes")
    expect(dialog).not_to_contain_text("Cologne")
    dialog.get_by_role("button", name="Close").click()
    expect(rows).to_have_count(8)


def test_a_rule_is_previewed(visit: Opened, example: Site) -> None:
    page = visit(example, "/memory", key=example.key)
    rule = page.locator("section", has=page.get_by_role("heading", name="What a rule would delete"))
    rule.get_by_label(re.compile("Known before")).fill("2026-01-01")
    expect(rule.locator(".figure").first).to_have_text("0memories")
    rule.get_by_label(re.compile("Known before")).fill("2026-12-01")
    expect(rule.locator(".figure").first).to_have_text("8memories")


def test_a_store_without_memories_says_so(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/memory")
    expect(page.get_by_role("heading", name="Nobody remembers anything yet")).to_be_visible()


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_it_is_accessible_at_any_width(visit: Opened, example: Site, narrow: bool) -> None:
    page = visit(example, JULY, key=example.key, narrow=narrow)
    expect(page.get_by_role("region", name="Recall").get_by_role("listitem").first).to_be_visible()
    assert not scrolls_sideways(page)
    assert violations(page) == []
