"""The documentation, as `make docs` builds it: it is read and searched under the policy of the console."""

import os

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import ROOT, Opened, Site, scrolls_sideways, violations

BUILT = ROOT / "src" / "conspectus" / "web" / "docs" / "index.html.gz"


@pytest.fixture
def reader(site: Site, visit: Opened) -> Page:
    """A browser that has opened the documentation. Skips where it is not built, but not under CI."""
    if not BUILT.exists() and os.environ.get("CI") != "true":
        pytest.skip("run `make docs`")
    return visit(site, "/docs")


def test_a_page_is_read(reader: Page) -> None:
    heading = reader.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Conspectus")
    reader.get_by_role("link", name="Guides").first.click()
    expect(heading).to_contain_text("Guides")
    assert reader.url.endswith("/console/docs/guides/index.html")
    assert violations(reader) == []


def test_a_search_finds_pages_and_shows_where(reader: Page) -> None:
    reader.get_by_role("textbox", name="Search").fill("backup")
    reader.keyboard.press("Enter")
    first_page = reader.locator("ul.search li").first
    expect(first_page).to_contain_text("backup", ignore_case=True)
    expect(reader.locator("ul.search p.context").first).to_contain_text("backup", ignore_case=True)
    first_page.get_by_role("link").first.click()
    expect(reader.locator("article")).to_contain_text("backup", ignore_case=True)


@pytest.mark.parametrize("status", [200, pytest.param(404, marks=pytest.mark.slow)])
def test_help_leads_to_what_there_is_to_read(site: Site, visit: Opened, status: int) -> None:
    page = visit(site, "/documents")
    page.route("**/console/docs/", lambda route: route.fulfill(status=status))
    page.get_by_role("button", name="Help").click()
    dialog = page.get_by_role("dialog", name="Help")
    expect(dialog.get_by_role("link", name="Reference of the API")).to_have_attribute("href", "/docs")
    expect(dialog.get_by_role("link", name="Documentation")).to_have_count(int(status == 200))
    assert violations(page) == []


def test_a_page_fits_a_narrow_window(site: Site, visit: Opened, reader: Page) -> None:
    page = visit(site, "/docs/reference/settings.html", narrow=True)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Settings")
    assert not scrolls_sideways(page)


@pytest.mark.slow
def test_the_page_of_the_api_shows_examples_and_tries_them(site: Site, visit: Opened) -> None:
    page = visit(site, "/../docs#/questions/search")
    opened = page.locator(".opblock.is-open")
    expect(opened.locator(".body-param__example")).to_contain_text(
        "When does the backup run?", timeout=120_000
    )
    expect(opened.locator(".response").first).to_contain_text("The backup runs every night at two.")
    opened.get_by_role("button", name="Try it out").click()
    opened.get_by_role("button", name="Execute").click()
    expect(opened.locator(".live-responses-table .response-col_status").last).to_contain_text("404")
