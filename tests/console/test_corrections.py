"""Corrections in place: an edge, a passage and a document, each with its undo."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import conspectus
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.memory import NewMemory, Scope
from tests.console.conftest import (
    WIDTHS,
    Example,
    Opened,
    Site,
    running_site,
    scrolls_sideways,
    violations,
)

TEXT = "# Keys\n\nThe spare key hangs behind the door. 🌧\n\n# Alarm\n\nThe alarm code changes on Monday.\n"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Site]:
    """A document, a graph of two nodes, and a memory that states a fact."""
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        engine.add([conspectus.NewDocument(TEXT, key="keys.md", syntax="markdown")])
        engine.graph.add_nodes([NewNode("ann", "person", "Ann"), NewNode("team", "team", "platform team")])
        engine.graph.add_edges([NewEdge("ann", "team", "leads", 0.5, valid_from="2020-01-01")])
        fact = Fact("Ann", "lives in", "Rome")
        engine.memory.add([NewMemory("Ann lives in Rome.", fact=fact)], scope=Scope("ann"))
    with running_site(tmp_path, "--no-auth") as site:
        yield site


def undo(page: Page) -> None:
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_hidden()


@pytest.mark.parametrize("narrow", WIDTHS)
def test_an_edge_is_ended_changed_and_deleted(visit: Opened, office: Site, narrow: bool) -> None:
    page = visit(office, "/graph?collection=default", narrow=narrow)
    edges = page.get_by_role("list", name="Edges")
    edges.get_by_role("button", name="Details of leads").click()
    panel = page.get_by_role("region", name="The chosen edge")
    panel.get_by_role("button", name="Correct …").click()
    dialog = page.get_by_role("dialog")
    assert violations(page) == []
    assert not scrolls_sideways(page)
    dialog.get_by_role("button", name="Now").click()
    dialog.get_by_role("button", name="Save").click()
    expect(panel).to_contain_text("ended")
    undo(page)
    expect(panel).not_to_contain_text("ended")
    panel.get_by_role("button", name="Correct …").click()
    dialog.get_by_label("Type").fill("founded")
    dialog.get_by_role("button", name="Save").click()
    expect(edges).to_contain_text("founded")
    expect(edges).not_to_contain_text("leads")
    undo(page)
    expect(edges).to_contain_text("leads")
    panel.get_by_role("button", name="Correct …").click()
    dialog.get_by_role("button", name="Delete edge").click()
    expect(page.get_by_role("status").filter(has_text="The edge is deleted.")).to_be_visible()
    undo(page)
    expect(edges).to_contain_text(re.compile("leads.*0[.]500"))


@pytest.mark.parametrize("narrow", WIDTHS)
def test_a_passage_is_corrected_in_its_document(visit: Opened, office: Site, narrow: bool) -> None:
    page = visit(office, "/documents?collection=default", narrow=narrow)
    page.locator(".document-row").filter(has_text="keys.md").click()
    page.get_by_role("list", name="Passages in order").get_by_role("button").first.click()
    page.get_by_role("button", name="Correct …").click()
    dialog = page.get_by_role("dialog")
    assert violations(page) == []
    text = dialog.get_by_label("Text")
    text.fill(text.input_value().replace("behind the door", "at the reception"))
    dialog.get_by_role("button", name="Save").click()
    article = page.get_by_role("article", name="Text of the document")
    expect(article).to_contain_text("at the reception. 🌧")
    expect(article).to_contain_text("The alarm code changes on Monday.")
    undo(page)
    expect(article).to_contain_text("behind the door. 🌧")
    assert not scrolls_sideways(page)


def test_viewers_get_no_buttons_that_would_be_refused(
    visit: Opened, example: Site, prepared: Example
) -> None:
    buttons = ("Correct …", "Exclude from search", "Delete …", "Add documents", "Delete this collection …")
    for name, is_shown in (("owner", True), ("bob", False)):
        page = visit(example, "/documents?collection=default", key=prepared.keys[name])
        add = page.get_by_role("button", name="Add documents")
        page.locator(".document-row").first.wait_for()
        if is_shown:
            expect(add).to_be_visible()
            continue
        page.wait_for_load_state("networkidle")
        page.locator(".document-row").first.click()
        page.get_by_role("list", name="Passages in order").get_by_role("button").first.click()
        page.wait_for_load_state("networkidle")
        for button in buttons:
            expect(page.get_by_role("button", name=button)).to_have_count(0)


def test_a_document_is_excluded_from_search_and_comes_back(visit: Opened, office: Site) -> None:
    page = visit(office, "/documents?collection=default")
    page.locator(".document-row").filter(has_text="keys.md").click()
    page.get_by_role("button", name="Exclude from search").click()
    expect(page.get_by_role("status").filter(has_text="excluded from search")).to_be_visible()
    expect(page.locator("article")).to_have_count(0)
    undo(page)
    expect(page.get_by_role("article", name="Text of the document")).to_contain_text("alarm code")


@pytest.mark.parametrize("narrow", WIDTHS)
def test_a_fact_is_corrected_on_the_map_of_memories(visit: Opened, office: Site, narrow: bool) -> None:
    page = visit(office, "/memory", narrow=narrow)
    page.get_by_role("group", name="View").get_by_role("button", name="Map").click()
    canvas = page.locator('.graph-canvas[data-drawn="true"]')
    expect(canvas).to_be_visible()
    assert violations(page) == []
    assert not scrolls_sideways(page)
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    panel = page.get_by_role("region", name="The chosen fact")
    expect(panel.locator("blockquote")).to_have_text("Ann lives in Rome.")
    panel.get_by_role("button", name="Correct …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("object").fill("Milan")
    dialog.get_by_role("button", name="Save").click()
    expect(panel).to_contain_text("Milan")
    undo(page)
    expect(panel).to_contain_text("Rome")
