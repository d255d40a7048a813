"""A person without rights sees nothing of others on any screen, and learns nothing of what there is."""

import re

import pytest
from playwright.sync_api import expect

from conspectus.model.access import SCOPES
from conspectus.sync import connect
from tests.console.conftest import WIDTHS, Opened, Site, scrolls_sideways, themed

SCREENS = {
    "/playground?collection=default&query=backup": "Nothing is stored yet",
    "/see-as?collection=default&user=bob&query=backup": "Nothing|see|may",
    "/chat": "No chat model is set|Nothing is stored yet|Ask",
    "/documents?collection=default": "Nothing is stored yet|Nothing here that you may see",
    "/conversations?channel=support": "There are no conversations yet",
    "/streams?stream=lobby": "There are no streams yet",
    "/memory?scope=memory/helper": "Nobody remembers anything yet",
    "/graph?collection=default&graph=default": "There is no graph yet|Nothing here that you may see",
    "/operations": "no collection that you may read",
    "/operations?part=people": "1 API key",
    "/operations?part=grants&collection=default": "no collection that you may see|Nothing here",
    "/operations?part=audit": "Nothing here that you may see",
    "/evaluation": "See how much of the evidence",
}
"""Addresses, and what they say to a person without any role."""
KNOWN = re.compile("runbooks|handbook|Lobby|helper|support|Cologne|Releases|backup\\.md|bob")
"""Words of the example store."""


def test_a_person_without_rights_learns_nothing_on_any_screen(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        engine.people.create_user("dan")
        key = engine.keys.create("dan", scopes=SCOPES).secret
    page = visit(changeable, "/evaluation", key=key)
    for path, message in SCREENS.items():
        page.goto(f"{changeable.address}/console{path}")
        main = page.locator("main")
        expect(main).to_contain_text(re.compile(message))
        words = re.findall(KNOWN, main.inner_text())
        assert words == [], path
        assert not scrolls_sideways(page)


def test_a_document_of_others_is_as_one_that_does_not_exist(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        engine.people.create_user("dan")
        key = engine.keys.create("dan").secret
        [document, *_] = engine.documents.list(collection="default").documents
    page = visit(changeable, f"/documents/{document.id}", key=key)
    hidden = page.locator("main")
    expect(hidden).to_contain_text("Nothing here that you may see")
    hidden_text = hidden.inner_text()
    page.goto(f"{changeable.address}/console/documents/no-such-document")
    expect(hidden).to_have_text(hidden_text, use_inner_text=True)


@pytest.mark.parametrize("narrow", WIDTHS)
def test_what_strangers_see_is_accessible(visit: Opened, locked: Site, narrow: bool) -> None:
    page = visit(locked, "/", narrow=narrow)
    page.get_by_label("API key").fill("csp_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    offences = themed(page)
    page.route("**/api/v1/me", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    assert (offences, themed(page)) == ([], [])
    assert not scrolls_sideways(page)


def test_live_captions_end_when_the_key_of_the_session_is_revoked(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        key = engine.keys.create("owner")
        page = visit(changeable, "/evaluation", key=key.secret)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.evaluate(
            """() => {
                const events = new EventSource("/api/v1/alerts/stream");
                events.onopen = () => { document.title = "open"; };
                events.addEventListener("error", (event) => {
                    if (event.data) document.title = JSON.parse(event.data).code;
                });
            }"""
        )
        expect(page).to_have_title("open")
        engine.keys.revoke(key.key.id)
        expect(page).to_have_title("unauthenticated", timeout=60_000)
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()
