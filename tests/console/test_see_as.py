"""See as: a question as another user, what is missing, and which grant gives it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import conspectus
from conspectus.model.access import SCOPES, Principal
from tests.console.conftest import ROOT, WIDTHS, Opened, Site, running_site, scrolls_sideways, violations

ADDRESS = "/see-as?collection=docs&user=bob&query=how+do+we+restore+a+backup%3F"


@dataclass(frozen=True)
class Shared:
    """A server with the users ann (manager of docs) and bob (viewer of one source), and their keys."""

    site: Site
    ann: str
    bob: str


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    """The handbook, which both see, and the runbooks, which only ann sees."""
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        engine.documents.add_files(
            [ROOT / "docs" / "reference" / "cli.md"], collection="docs", source="handbook"
        )
        engine.documents.add_files(
            [ROOT / "docs" / "operate" / "backup.md"], collection="docs", source="runbooks"
        )
        keys = {}
        for name in ("ann", "bob"):
            engine.people.create_user(name)
            keys[name] = engine.keys.create(name, scopes=SCOPES).secret
        engine.access.grant("docs", Principal("user", "ann"), "manager")
        engine.access.grant("docs", Principal("user", "bob"), "viewer", source="handbook")
    with running_site(tmp_path) as site:
        yield Shared(site, **keys)


def expect_missing(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text("not exist for bob")


def test_a_grant_shows_what_was_missing(visit: Opened, shared: Shared) -> None:
    page = visit(shared.site, ADDRESS, key=shared.ann)
    expect_missing(page)
    expect(page.get_by_role("status").first).to_contain_text("You are seeing as bob")
    expect(page.locator(".block.lost").first).to_be_visible()
    expect(page.get_by_role("list", name="Your ranking")).to_contain_text("no role")
    page.get_by_role("button", name="Grant …").click()
    page.get_by_role("button", name="Grant viewer").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("bob sees all that is in your window.")
    expect(page.locator(".block.lost")).to_have_count(0)


@pytest.mark.slow
def test_readers_of_a_document_are_listed(visit: Opened, shared: Shared) -> None:
    page = visit(shared.site, ADDRESS, key=shared.ann)
    page.get_by_label("Who can see").select_option(label="backup.md")
    readers = page.locator("section", has=page.get_by_label("Who can see")).get_by_role("listitem")
    expect(readers.filter(has_text="ann")).to_contain_text("manager")
    expect(readers.filter(has_text="bob")).to_have_count(0)


@pytest.mark.slow
def test_roles_on_everything_are_listed(visit: Opened, shared: Shared) -> None:
    page = visit(shared.site, ADDRESS, key=shared.ann)
    expect_missing(page)
    page.get_by_role("group", name="Roles on").get_by_role("button", name="Everything").click()
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows.filter(has_text="all of docs")).to_contain_text("none")
    expect(rows.filter(has_text="handbook")).to_contain_text("managerviewer")


@pytest.mark.slow
def test_a_document_says_who_can_see_it(visit: Opened, shared: Shared) -> None:
    page = visit(shared.site, "/documents?collection=docs", key=shared.ann)
    page.locator(".document-row", has_text="backup.md").click()
    readers = page.get_by_role("list", name="Readers").get_by_role("listitem")
    expect(readers.filter(has_text="ann")).to_contain_text("manager")
    expect(readers.filter(has_text="bob")).to_have_count(0)


def test_a_name_that_one_may_not_know_says_what_to_do(visit: Opened, shared: Shared) -> None:
    page = visit(shared.site, ADDRESS.replace("user=bob", "user=nobody"), key=shared.ann)
    expect(page.get_by_role("status")).to_contain_text("no user 'nobody'; by name you reach only people with")


def test_a_viewer_may_not_see_as_others(visit: Opened, shared: Shared) -> None:
    page = visit(shared.site, ADDRESS.replace("user=bob", "user=ann"), key=shared.bob)
    expect(page.locator(".state")).to_be_visible()
    expect(page.locator(".map")).to_have_count(0)
    expect(page.get_by_text("Restore")).to_have_count(0)


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, shared: Shared, narrow: bool) -> None:
    page = visit(shared.site, ADDRESS, key=shared.ann, narrow=narrow)
    expect_missing(page)
    expect(page.get_by_role("table")).to_be_visible()
    assert not scrolls_sideways(page)
    assert violations(page) == []
