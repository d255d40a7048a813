"""Memory: what was known when, what held when, and what is forgotten."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

import conspectus
from conspectus.model.graph import Fact
from conspectus.model.memory import ExtractedFact, MemoryCitation, NewMemory, Scope
from conspectus.sync import connect
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations

NAMES = ("apples", "pears", "cherries")
JULY = "/memory?at=2026-07-16T00:00:00Z&query=when+do+releases+go+out%3F"


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
    assert page.locator(".timeline .gone").count() == 0
    dialog.get_by_role("button", name="Close").click()
    expect(rows).to_have_count(8)
    expect(page.locator(".timeline .gone")).to_have_count(1)
    expect(page.locator("main")).not_to_contain_text("I moved to Cologne")
    page.get_by_role("region", name="Forgotten").get_by_role("button", name="Receipt").click()
    expect(dialog).to_contain_text("purgedyes")
    assert violations(page) == []


def test_a_memory_is_corrected_and_the_correction_undone(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/memory", key=changeable.key)
    rows = page.locator(".memory-row")
    rows.filter(has_text="I moved to Cologne").get_by_role("button", name="Correct …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    assert violations(page) == []
    dialog.get_by_label("Text").fill("I moved to Bonn at the start of the month.")
    dialog.get_by_label("object").fill("Bonn")
    dialog.get_by_label("Pinned").check()
    dialog.get_by_role("button", name="Save").click()
    statements = page.locator(".memory-row > .memory-text")
    corrected = statements.filter(has_text="I moved to Bonn")
    expect(corrected).to_contain_text("Ann · lives in · Bonn")
    row = rows.filter(has_text="I moved to Bonn")
    expect(row.get_by_text("pinned", exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(corrected).to_have_count(0)
    expect(statements.filter(has_text="I moved to Cologne")).to_contain_text("Ann · lives in · Cologne")
    expect(row.get_by_text("pinned", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    row.get_by_text("3 versions").click()
    row.get_by_role("button", name="Restore").last.click()
    expect(corrected).to_contain_text("Ann · lives in · Bonn")
    assert violations(page) == []


def test_a_memory_ends_and_is_excluded_from_search(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/memory?query=tram", key=changeable.key)
    tram = page.locator(".memory-row").filter(has_text="I take the tram at 8:12")
    recalled = page.get_by_role("region", name="Recall").get_by_role("listitem").filter(has_text="8:12")
    expect(recalled).to_have_count(1)
    tram.get_by_role("button", name="Correct …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Now").click()
    dialog.get_by_role("button", name="Save").click()
    expect(tram).to_contain_text("holds until")
    tram.get_by_role("button", name="Correct …").click()
    dialog.get_by_role("button", name="Exclude from search").click()
    expect(tram).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(tram).to_have_count(1)


def test_an_edit_of_what_somebody_else_changed_meanwhile_is_refused(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/memory", key=changeable.key)
    page.locator(".memory-row").filter(has_text="tram").get_by_role("button", name="Correct …").click()
    with connect(changeable.address, api_key=changeable.key) as engine:
        scope = Scope(user="ann", agent="helper")
        tram = next(memory for memory in engine.memory.list(scope=scope).memories if "tram" in memory.text)
        engine.memory.update(tram.id, scope=scope, text="I take the tram at 8:30.")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Text").fill("I walk.")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog.get_by_role("alert")).to_contain_text("was changed")
        assert engine.memory.get(tram.id, scope=scope).text == "I take the tram at 8:30."


def test_an_extracted_fact_opens_its_sentence(visit: Opened, tmp_path: Path) -> None:
    turn = "We talked for long. I live in Porto, near the river. Then it rained."
    with conspectus.open(tmp_path) as engine:
        scope = Scope(user="ann")
        (stated,) = engine.memory.add(NewMemory(turn), scope=scope)
        start = turn.index("I live")
        quote = turn[start : start + len("I live in Porto, near the river.")]
        cites = MemoryCitation(stated.id, quote, start, start + len(quote), "test", "1")
        fact = ExtractedFact("Ann lives in Porto.", fact=Fact("Ann", "lives in", "Porto"), cites=cites)
        engine.memory.add(fact, scope=scope)
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/memory")
        page.get_by_role("link", name="Open the sentence that states it").click()
        expect(page.locator("mark")).to_have_text(quote)


def test_a_statement_that_a_later_one_supersedes_is_marked(visit: Opened, moved: Site) -> None:
    page = visit(moved, "/memory?user=ann&query=Where+do+I+live%3F")
    recalled = page.get_by_role("region", name="Recall").get_by_role("listitem")
    earlier = recalled.filter(has_text="said earlier, probably about the same, than “I live in Lisbon now”")
    expect(earlier).to_contain_text("superseded by a later one")
    expect(recalled.first).to_contain_text("I live in Lisbon now")
    expect(recalled.first).not_to_contain_text("superseded")


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Memories of somebody who moved."""
    folder = tmp_path_factory.mktemp("moved")
    others = ("The soup needs salt.", "My bike is blue.", "The dentist is on Friday.", "Jazz is on at nine.")
    with conspectus.open(folder) as engine:
        texts = ("I live in Porto", *others, "I live in Lisbon now")
        engine.memory.add([NewMemory(text) for text in texts], scope=Scope(user="ann"), wait=True)
    with running_site(folder, "--no-auth") as site:
        yield site


def test_a_rule_is_previewed(visit: Opened, example: Site) -> None:
    page = visit(example, "/memory", key=example.key)
    rule = page.locator("section", has=page.get_by_role("heading", name="What a rule would delete"))
    rule.get_by_label(re.compile("Known before")).fill("2026-01-01")
    expect(rule.locator(".figure").first).to_have_text("0memories")
    rule.get_by_label(re.compile("Known before")).fill("2026-12-01")
    expect(rule.locator(".figure").first).to_have_text("8memories")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A store with 300 memories, one of which has two versions."""
    notes = [
        NewMemory(f"Note {number} is about {NAMES[number % 3]}.", key=f"note-{number}")
        for number in range(300)
    ]
    scope = Scope(user="ann")
    folder = tmp_path_factory.mktemp("crowded")
    with conspectus.open(folder) as engine:
        engine.memory.add(notes, scope=scope)
        engine.memory.add(NewMemory("Note 7 is about plums now.", key="note-7"), scope=scope)
    with running_site(folder, "--no-auth") as running:
        yield running


@pytest.mark.slow
def test_many_memories_are_filtered_and_drawn_as_they_come_into_view(visit: Opened, crowded: Site) -> None:
    page = visit(crowded, "/memory")
    lanes, rows = page.locator(".lane-name"), page.locator(".memory-row")
    for count in (160, 300):
        page.get_by_role("button", name="Load older memories").click()
        expect(rows).to_have_count(count)
    expect(page.get_by_role("status").first).to_have_text("300 lanes")
    assert lanes.count() < 30
    expect(lanes.filter(has_text=re.compile("^note-299$"))).to_have_count(0)
    page.get_by_role("group", name="Memories over time").evaluate(
        "each => each.scrollTop = each.scrollHeight"
    )
    expect(lanes.filter(has_text=re.compile("^note-299$"))).to_have_count(1)
    page.get_by_label("Filter the lanes").fill("plums note")
    expect(rows).to_have_count(1)
    expect(lanes).to_have_text(["note-7"])
    rows.get_by_text("2 versions").click()
    expect(rows.get_by_role("listitem").first).to_contain_text("Note 7 is about pears.")
    page.reload()
    expect(page.get_by_label("Filter the lanes")).to_have_value("plums note")
    assert violations(page) == []


@pytest.mark.slow
def test_a_filter_asks_the_server_for_what_is_not_loaded(visit: Opened, crowded: Site) -> None:
    page = visit(crowded, "/memory")
    rows = page.locator(".memory-row")
    expect(rows).to_have_count(40)
    expect(rows.filter(has_text="Note 7 is about plums now.")).to_have_count(0)
    page.get_by_label("Filter the lanes").fill("plums")
    expect(rows.filter(has_text="Note 7 is about plums now.")).to_have_count(1)
    expect(page.get_by_role("status").first).to_have_text(
        re.compile("0 of 40 lanes, and [0-9]+ that the server finds")
    )
    rows.filter(has_text="plums").get_by_text("2 versions").click()
    expect(rows.filter(has_text="plums")).to_contain_text("Note 7 is about pears.")
    page.get_by_label("Filter the lanes").fill("")
    expect(rows).to_have_count(40)


@pytest.mark.slow
def test_a_rule_is_set_previewed_applied_and_deleted(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/memory", key=changeable.key)
    rule = page.get_by_role("region", name="Retention rule")
    expect(rule).to_contain_text("memories stay until they are forgotten")
    rule.get_by_label("Keep for days").fill("0.5")
    rule.get_by_role("button", name="Set the rule").click()
    expect(rule).to_contain_text("older than 0.5 days are deleted")
    rule.get_by_role("button", name="Preview and apply …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile("memories[1-9]"))
    dialog.get_by_role("button", name="Close").click()
    rows = page.locator(".memory-row")
    count = rows.count()
    rule.get_by_role("button", name="Preview and apply …").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog).to_contain_text("Copy the receipt")
    dialog.get_by_role("button", name="Close").click()
    expect(rows).not_to_have_count(count)
    rule.get_by_role("button", name="Delete the rule").click()
    expect(rule).to_contain_text("memories stay until they are forgotten")


def test_facts_say_when_they_hold(visit: Opened, example: Site) -> None:
    page = visit(example, "/memory", key=example.key)
    expect(page.locator(".memory-row", has_text=re.compile("holds from \\d+ \\w+ 20"))).not_to_have_count(0)


def test_a_store_without_memories_says_so(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/memory")
    expect(page.get_by_role("heading", name="Nobody remembers anything yet")).to_be_visible()


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, example: Site, narrow: bool) -> None:
    page = visit(example, JULY, key=example.key, narrow=narrow)
    expect(page.get_by_role("region", name="Recall").get_by_role("listitem").first).to_be_visible()
    assert not scrolls_sideways(page)
    assert violations(page) == []
