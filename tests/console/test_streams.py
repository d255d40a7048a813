"""Streams: captions, events and entities over time, and what a question finds there."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

import conspectus
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import NewCaption
from conspectus.model.streams import NewStream
from conspectus.sync import connect
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations

ASKED = "/streams?query=who+brought+the+boxes+before+10+am%3F"


def test_a_question_marks_its_time_and_what_it_finds(visit: Opened, example: Site) -> None:
    page = visit(example, "/streams", key=example.key)
    expect(page.get_by_role("heading", level=1)).to_have_text("41 captions of Lobby")
    expect(page.locator(".line-name", has_text="door fault")).to_be_visible()
    assert page.locator(".asked").count() == 0
    summary = page.get_by_role("region", name="Summary")
    expect(summary.get_by_role("listitem").first).to_have_text(re.compile(r"^\d\d:\d\d\D"))
    page.get_by_label("Question to the stream").fill("who brought the boxes before 10 am?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("for “who brought the boxes before 10 am?”")
    expect(page.locator(".asked")).to_have_count(1)
    hits = page.locator(".caption.hit")
    expect(hits.filter(has_text="The driver carries two cardboard boxes")).to_have_count(1)
    expect(hits.filter(has_text="Ann switches off the light")).to_have_count(0)


def test_a_citation_opens_the_stream_at_its_second(visit: Opened, tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        spoken = [
            NewCaption(f"Remark {number} of the meeting.", 10 * number, 10 * number + 4, read_by="speech")
            for number in range(200)
        ]
        spoken.append(NewCaption("The pump needs a valve.", 2_007.5, 2_012, read_by="speech"))
        engine.streams.add_captions(spoken, stream="meeting", wait=True)
        citation = engine.window("pump valve", 60).citations[-1]
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, f"/documents/{citation.document}")
        page.get_by_role("link", name="Open in the stream at 33:27").click()
        captions = page.locator(".caption")
        expect(captions.first).to_contain_text("The pump needs a valve.")
        expect(page.get_by_text("Remark 3 of the meeting.")).to_have_count(0)
        assert parse_qs(urlsplit(page.url).query)["from"] == ["2007.5"]


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


@pytest.mark.slow
def test_a_deletion_that_fails_is_shown(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        alert = engine.alerts.put(NewAlert("vans", query="a van", collection="cameras"))
        page = visit(changeable, "/streams", key=changeable.key)
        button = page.get_by_role("button", name="Delete the alert vans")
        expect(button).to_be_visible()
        engine.alerts.delete(alert.id)
    button.click()
    expect(page.get_by_role("region", name="Alerts").get_by_role("alert")).to_contain_text(alert.id)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A stream of 2,300 captions, one each ten seconds; it is not live."""
    folder = tmp_path_factory.mktemp("long")
    captions = [
        NewCaption(f"Car {number} passes.", 10.0 * number, 10.0 * number + 5) for number in range(2_300)
    ]
    with conspectus.open(folder, settings=conspectus.Settings(embedder="none")) as engine:
        engine.streams.put(NewStream("road"))
        engine.streams.add_captions(captions, stream="road")
    with running_site(folder, "--no-auth") as site:
        yield site


@pytest.mark.slow
def test_captions_after_the_first_thousand_are_loaded_on_request(visit: Opened, long: Site) -> None:
    page = visit(long, "/streams")
    heading, captions = page.get_by_role("heading", level=1), page.get_by_role("list", name="Captions")
    expect(heading).to_have_text("The first 1,000 of 2,300 captions of road")
    for begin in ("The first 2,000 of 2,300", "2,300"):
        page.get_by_role("button", name="Load later captions").click()
        expect(heading).to_have_text(f"{begin} captions of road")
    captions.evaluate("each => each.scrollTop = each.scrollHeight")
    expect(captions.get_by_text("Car 2299 passes.")).to_be_visible()


def length(address: str) -> float:
    """The seconds of a stream that an address shows."""
    fields = parse_qs(urlsplit(address).query)
    return float(fields["to"][0]) - float(fields["from"][0])


def test_a_part_of_the_time_is_shown_by_dragging_and_by_keys(visit: Opened, long: Site) -> None:
    page = visit(long, "/streams")
    heading, lines = (
        page.get_by_role("heading", level=1),
        page.get_by_role("group", name="The stream over time"),
    )
    expect(heading).to_contain_text("The first 1,000")
    box = lines.locator("svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 60, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 20, steps=4)
    page.mouse.up()
    expect(heading).to_have_text(re.compile("^[0-9]+ captions of road from 0[56]:"))
    expect(
        page.get_by_role("list", name="Captions").get_by_text(re.compile("Car 22[0-9]{2} passes"))
    ).not_to_have_count(0)
    full_length = length(page.url)
    for key, share in (("+", 0.5), ("-", 1.0), ("ArrowLeft", 1.0)):
        lines.press(key)
        page.wait_for_url(lambda url, share=share: abs(length(url) - share * full_length) < 0.1)
    lines.press("Home")
    expect(heading).to_contain_text("The first 1,000 of 2,300")
    assert "from=" not in page.url


def test_a_store_without_streams_says_so(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/streams")
    expect(page.get_by_role("heading", name="There are no streams yet")).to_be_visible()


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, example: Site, narrow: bool) -> None:
    page = visit(example, ASKED, key=example.key, narrow=narrow)
    expect(page.locator(".caption.hit").first).to_be_visible()
    page.get_by_role("button", name="Closer").click()
    expect(page.get_by_role("button", name="Wider")).to_be_enabled()
    expect(page.locator(".stale")).to_have_count(0)
    assert not scrolls_sideways(page)
    assert violations(page) == []
