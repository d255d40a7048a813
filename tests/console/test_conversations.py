"""Conversations: channels as they were written, and what a question finds in place."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

import conspectus
from conspectus import NewMessage
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations

BEGUN = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A question, its answer and 150 later messages in the channel `support`."""
    folder = tmp_path_factory.mktemp("channel")
    messages = [
        NewMessage("Where are the API keys?", key="1", author="ann", at=BEGUN),
        NewMessage(
            "In the vault, ask <b>bo</b>.",
            key="2",
            author="cleo",
            at=BEGUN + timedelta(minutes=2),
            reply_to="1",
        ),
    ]
    later = BEGUN + timedelta(days=1)
    messages += [
        NewMessage(f"Lunch number {n} is soup.", key=f"lunch-{n}", author="bo", at=later + timedelta(hours=n))
        for n in range(150)
    ]
    with conspectus.open(folder, settings=conspectus.Settings(embedder="none")) as engine:
        engine.channels.add_messages(messages, channel="support")
    with running_site(folder, "--no-auth") as site:
        yield site


def test_a_channel_is_shown_as_it_was_written(visit: Opened, channel: Site) -> None:
    page = visit(channel, "/conversations")
    expect(page.get_by_role("heading", level=1)).to_contain_text("The newest 100 messages of #support")
    page.get_by_role("button", name="Load earlier messages").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("152 messages of #support")
    expect(page.locator(".message")).to_have_count(152)
    first = page.locator(".message")
    expect(first.nth(0)).to_contain_text("Where are the API keys?")
    expect(first.nth(1).locator(".reply")).to_have_text(re.compile(r"ann.*Where are the API keys"))
    expect(first.nth(1)).to_contain_text("ask <b>bo</b>.")
    first.nth(0).click()
    expect(first.nth(1)).to_have_attribute("aria-pressed", "true")


@pytest.mark.slow
def test_messages_before_the_newest_thousand_are_loaded_on_request(visit: Opened, tmp_path: Path) -> None:
    messages = [
        NewMessage(f"Message number {n}.", key=f"{n}", at=BEGUN + timedelta(minutes=n)) for n in range(1_450)
    ]
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        engine.channels.add_messages(messages, channel="busy", link=False)
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/conversations")
        heading, more = (
            page.get_by_role("heading", level=1),
            page.get_by_role("button", name="Load earlier messages"),
        )
        for count in ("100", "1,100"):
            expect(heading).to_contain_text(f"The newest {count} messages")
            more.click()
        expect(heading).to_have_text(re.compile("^1,450 messages of #busy"))
        expect(page.locator(".message").first).to_contain_text("Message number 0.")
        expect(more).to_have_count(0)


def test_a_question_shows_what_it_finds_in_place(visit: Opened, channel: Site) -> None:
    page = visit(channel, "/conversations?channel=support")
    page.get_by_label("Question in #support").fill("where are the API keys?")
    page.keyboard.press("Enter")
    expect(page.locator(".message.hit").first).to_contain_text("Where are the API keys?")
    expect(page.locator(".message.hit").nth(1)).to_contain_text("In the vault")
    assert "query=where" in page.url


def test_an_empty_store_says_how_to_fill_it(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/conversations")
    expect(page.get_by_role("heading", name="There are no conversations yet")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, channel: Site, narrow: bool) -> None:
    page = visit(channel, "/conversations?query=where+are+the+API+keys", narrow=narrow)
    expect(page.locator(".message.hit").first).to_be_visible()
    assert not scrolls_sideways(page)
    assert violations(page) == []


@pytest.mark.slow
def test_inferred_replies_show_their_confidence_and_unlikely_ones_on_demand(
    visit: Opened, tmp_path: Path
) -> None:
    likely = ("Restart it with systemctl.", {"answers": "1", "answers_confidence": 0.8})
    doubtful = ("Soup for lunch?", {"answers": "1", "answers_confidence": 0.31})
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        messages = [NewMessage("How do I restart billing?", key="1", author="ann", at=BEGUN)]
        for number, (text, metadata) in enumerate((likely, doubtful), start=2):
            at = BEGUN + timedelta(minutes=number)
            messages.append(NewMessage(text, key=str(number), at=at, thread="1", metadata=metadata))
        engine.channels.add_messages(messages, channel="support")
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/conversations")
        expect(page.locator(".reply.inferred")).to_have_text(re.compile("0.800"))
        page.get_by_label("Also links below 0.50").check()
        expect(page.locator(".reply.inferred").nth(1)).to_have_text(re.compile("0.310"))
        faint = (
            page.locator(".reply.inferred").nth(1).evaluate("each => getComputedStyle(each).borderLeftColor")
        )
        assert faint.endswith("/ 0.31)")
        assert violations(page) == []
