"""The first screen of who has no session: a key, or an invitation that logs in once."""

import pytest
from playwright.sync_api import expect

from conspectus import connect
from tests.console.conftest import WIDTHS, Opened, Site, scrolls_sideways, themed, violations


def invite(site: Site, name: str) -> str:
    """The link of an invitation of a new user."""
    with connect(site.address, api_key=site.key or "") as engine:
        engine.people.create_user(name)
        token = engine.logins.create_invitation(name).token
    return f"/#invitation={token}"


def test_an_invitation_logs_in_and_leaves_the_address(visit: Opened, changeable: Site) -> None:
    link = invite(changeable, "ida")
    page = visit(changeable, link)
    expect(page.get_by_role("heading", name="You are invited")).to_be_visible()
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    assert "invitation" not in page.url
    page.reload()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()


def test_the_owner_invites_and_ends_the_session_that_began(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key or "") as engine:
        engine.people.create_user("ida")
    page = visit(changeable, "/operations?part=people", key=changeable.key)
    page.get_by_role("button", name="Invite ida").click()
    dialog = page.get_by_role("dialog", name="The invitation")
    link = dialog.locator("pre").inner_text()
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("region", name="Invitations")).to_contain_text("ida")
    invited = visit(changeable, f"/{link[link.index('#') :]}")
    invited.get_by_role("button", name="Log in", exact=True).click()
    expect(invited.get_by_role("navigation", name="Screens")).to_be_visible()
    page.reload()
    sessions = page.get_by_role("region", name="Sessions")
    expect(sessions).to_contain_text("ida")
    assert violations(page) == []
    sessions.locator("li", has_text="ida").get_by_role("button", name="End the session").click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(sessions).not_to_contain_text("ida")
    invited.reload()
    expect(invited.get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("narrow", WIDTHS)
def test_a_used_invitation_says_so_and_leads_to_the_key(
    visit: Opened, changeable: Site, narrow: bool
) -> None:
    link = invite(changeable, f"used-{narrow}")
    visit(changeable, link).get_by_role("button", name="Log in", exact=True).click()
    page = visit(changeable, link, narrow=narrow)
    page.context.clear_cookies()
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("was used already")
    assert themed(page) == []
    assert not scrolls_sideways(page)
    page.get_by_role("button", name="Log in with an API key instead").click()
    expect(page.get_by_label("API key")).to_be_visible()
    assert "invitation" not in page.url
