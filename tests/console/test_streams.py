"""Streams: captions, events and entities over time, and what a question finds there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from conspectus.model.streams import NewCaption
from conspectus.sync import connect
from tests.console.conftest import Opened, Site, demo, scrolls_sideways, violations

ASKED = "/streams?query=who+brought+the+boxes+before+10+am%3F"


@pytest.fixture
def changeable(tmp_path: Path) -> Iterator[Site]:
    """An example store that the test may change."""
    with demo(tmp_path / "demo") as site:
        yield site


def test_a_question_marks_its_time_and_what_it_finds(visit: Opened, example: Site) -> None:
    page = visit(example, "/streams", key=example.key)
    expect(page.get_by_role("heading", level=1)).to_have_text("41 captions of Lobby")
    expect(page.locator(".line-name", has_text="door fault")).to_be_visible()
    assert page.locator(".asked").count() == 0
    page.get_by_label("Question to the stream").fill("who brought the boxes before 10 am?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("for “who brought the boxes before 10 am?”")
    expect(page.locator(".asked")).to_have_count(1)
    hits = page.locator(".caption.hit")
    expect(hits.filter(has_text="The driver carries two cardboard boxes")).to_have_count(1)
    expect(hits.filter(has_text="Ann switches off the light")).to_have_count(0)


def test_an_alert_tells_of_a_new_caption(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/streams", key=changeable.key)
    alerts = page.get_by_role("region", name="Alerts")
    alerts.get_by_label("What to be alerted to").fill("a zebra in the lobby")
    alerts.get_by_role("button", name="Add alert").click()
    expect(alerts.get_by_text("a zebra in the lobby")).to_be_visible()
    with connect(changeable.address, api_key=changeable.key) as engine:
        caption = NewCaption("A zebra in the lobby eats the flowers.", 40_300, 40_310)
        engine.streams.add_captions(caption, stream="lobby", collection="cameras")
    matches = alerts.get_by_role("list", name="Matches of alerts")
    expect(matches).to_contain_text("A zebra in the lobby eats the flowers.", timeout=15_000)
    alerts.get_by_role("button", name=re.compile("Delete the alert")).click()
    expect(alerts.get_by_role("button", name=re.compile("Delete the alert"))).to_have_count(0)


def test_a_store_without_streams_says_so(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/streams")
    expect(page.get_by_role("heading", name="There are no streams yet")).to_be_visible()


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_it_is_accessible_at_any_width(visit: Opened, example: Site, narrow: bool) -> None:
    page = visit(example, ASKED, key=example.key, narrow=narrow)
    expect(page.locator(".caption.hit").first).to_be_visible()
    assert not scrolls_sideways(page)
    assert violations(page) == []
