"""Addresses that name nothing say so, and texts that turn their direction are shown as they are."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import conspectus
from conspectus.sync import connect
from tests.console.conftest import Opened, Site, running_site

NOTHING = "Nothing has this address"
ADDRESSES = (
    "/streams?stream=no-such-stream",
    "/conversations?channel=no-such-channel",
    "/memory?scope=default/nobody",
    "/graph?collection=default&graph=no-such-graph",
    "/graph?collection=no-such-collection",
    "/graph?collection=default&node=no-such-node",
    "/documents/no-such-document",
    "/documents?collection=no-such-collection",
    "/answers/no-such-record",
    "/operations?part=no-such-part",
    "/operations?part=grants&collection=no-such-collection",
    "/playground?collection=no-such-collection&query=backup",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_names_nothing_says_so(visit: Opened, example: Site, address: str) -> None:
    page = visit(example, address, key=example.key)
    expect(page.get_by_role("heading", name=NOTHING).first).to_be_visible()


def test_a_passage_that_is_gone_is_named(visit: Opened, example: Site) -> None:
    with connect(example.address, api_key=example.key) as engine:
        [document, *_] = engine.documents.list(collection="default", limit=1).documents
    page = visit(example, f"/documents/{document.id}?chunk=999999", key=example.key)
    expect(page.locator("main")).to_contain_text("The passage in the address is gone")


def test_a_key_that_was_revoked_is_named_in_plain_words(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        key = engine.keys.create("local", scopes=("read", "write", "admin"))
        page = visit(changeable, "/documents?collection=default", key=key.secret)
        page.locator(".document-row").first.click()
        page.get_by_role("button", name="Exclude from search").wait_for()
        engine.keys.revoke(key.key.id)
    page.get_by_role("button", name="Exclude from search").click()
    expect(page.get_by_role("alert")).to_contain_text("You are logged out: the login ended, or its key was")
    assert "Authorization" not in page.locator("main").inner_text()


def test_a_title_that_turns_its_direction_is_shown_with_a_mark(visit: Opened, tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        title = "invoice \u202efdp.exe"
        engine.add([conspectus.NewDocument("What it costs.", title, key="\u2066key")])
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/documents?collection=default")
        row = page.locator(".document-row")
        expect(row).to_contain_text("invoice \ufffdfdp.exe")
        assert re.search("[\u202a-\u202e\u2066-\u2069]", page.locator("main").inner_text()) is None
        row.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("invoice \ufffdfdp.exe")
        expect(page.get_by_role("region", name="Facts")).to_contain_text("keyword search only")
