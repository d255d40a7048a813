"""Graph: the neighbors of a node and the way to each, types, weights and times, merges and their undo."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import conspectus
from conspectus.model.graph import NewEdge, NewNode
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations

HOSTILE = "<img src=x onerror='window.owned = 1'>" + "x" * 200
NODES = ("Ann", "Bob", "Cleo", "Python", "Py", "Acme", HOSTILE)
EDGES = (
    NewEdge("Ann", "Bob", "knows", 0.5),
    NewEdge("Bob", "Cleo", "knows", 0.8),
    NewEdge("Ann", "Acme", "works at", 0.9, valid_from="2010-01-01", valid_until="2015-01-01"),
    NewEdge("Cleo", "Py", "writes", 0.4),
    NewEdge("Cleo", HOSTILE, HOSTILE, 0.2),
)
MODULES, IMPORTS = 4_000, 10_000
DRAWN = '[data-drawn="true"]'


def fill(folder: Path) -> None:
    with conspectus.open(folder) as engine:
        engine.graph.add_nodes([NewNode(node) for node in NODES], collection="people")
        engine.graph.add_edges(EDGES, collection="people")
        engine.graph.merge_nodes("Python", ["Py"], collection="people", reason="the same language")
        modules = [NewNode(f"module {number}") for number in range(MODULES)]
        engine.graph.add_nodes(modules, graph="large", collection="people")
        chance = random.Random(7)
        pairs = (chance.sample(modules, 2) for _ in range(2 * IMPORTS))
        ends = list(dict.fromkeys((one.id, other.id) for one, other in pairs))[:IMPORTS]
        edges = [NewEdge(one, other, "imports", 0.5) for one, other in ends]
        engine.graph.add_edges(edges, graph="large", collection="people")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A small graph, of which one test undoes a merge, and one of 10,000 edges; no key is needed."""
    folder = tmp_path_factory.mktemp("people")
    fill(folder)
    with running_site(folder, "--no-auth") as site:
        yield site


def expect_heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


@pytest.mark.slow
def test_the_way_to_a_neighbor_is_shown(visit: Opened, people: Site) -> None:
    page = visit(people, "/graph?collection=people")
    expect_heading(page, "6 nodes and 5 edges.")
    page.get_by_role("searchbox", name="Find a node").fill("ann")
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Nodes found").get_by_role("button").click()
    expect_heading(page, "Ann reaches 2 nodes in 1 hop.")
    page.get_by_role("group", name="Hops").get_by_role("button", name="2").click()
    expect_heading(page, "Ann reaches 3 nodes in 2 hops.")
    page.get_by_role("list", name="Neighbors").get_by_role("button", name=re.compile("Cleo")).click()
    way = page.locator(".graph-way")
    expect(way).to_contain_text("Cleo is reached in 2 hops; the weights multiply to 0.400.")
    expect(way.get_by_role("listitem")).to_have_text(["Ann knows → Bob 0.500", "Bob knows → Cleo 0.800"])
    page.reload()
    expect(way).to_contain_text("Cleo is reached")


def test_types_weights_and_times_are_filters(visit: Opened, people: Site) -> None:
    page = visit(people, "/graph?collection=people&node=Ann&hops=3")
    expect_heading(page, "Ann reaches 5 nodes in 3 hops.")
    page.get_by_role("group", name="Types of edges").get_by_role("button", name=re.compile("knows")).click()
    expect_heading(page, "Ann reaches 2 nodes in 3 hops.")
    page.get_by_label(re.compile("Weight from")).fill("0.6")
    expect_heading(page, "Ann reaches 0 nodes in 3 hops.")
    page = visit(people, "/graph?collection=people")
    expect(page.get_by_role("list", name="Edges").get_by_text("ended")).to_be_visible()
    page.get_by_label("Time", exact=True).fill("2012-06-01T12:00")
    expect(
        page.get_by_role("list", name="Edges").get_by_text(re.compile("1 Jan 2010 . 1 Jan 2015"))
    ).to_be_visible()
    page.get_by_label("Time", exact=True).fill("2016-06-01T12:00")
    expect(page.get_by_role("heading", level=1)).to_contain_text("4 edges of 5 on 1 Jun 2016")


def test_an_edge_opens_its_sentence_and_colors_have_a_legend(visit: Opened, tmp_path: Path) -> None:
    text = "It rained 🌧 for days. Ann Berg leads the platform team now. Bob reads."
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        (page_of_team,) = engine.add([conspectus.NewDocument(text, key="team.md")], collection="people")
        nodes = [NewNode("ann", "person", "Ann Berg"), NewNode("team", "team", "platform team")]
        engine.graph.add_nodes(nodes, collection="people")
        edge = NewEdge("ann", "team", "leads", evidence=page_of_team.id)
        engine.graph.add_edges([edge, NewEdge("team", "ann", "knows")], collection="people")
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/graph?collection=people")
        expect(page.locator("figcaption")).to_contain_text("person 1team 1")
        page.get_by_role("button", name="Sentence of leads").click()
        panel = page.get_by_role("region", name="The chosen edge")
        expect(panel.locator("blockquote")).to_have_text("Ann Berg leads the platform team now.")
        assert violations(page) == []
        page.reload()
        panel.get_by_role("link", name="Open in the document").click()
        expect(page.locator("mark")).to_have_text("Ann Berg leads the platform team now.")


def test_the_time_plays_and_pauses(visit: Opened, people: Site) -> None:
    page = visit(people, "/graph?collection=people")
    heading = page.get_by_role("heading", level=1)
    page.get_by_role("button", name="Play").click()
    expect(heading).to_contain_text(re.compile("edges( of 5)? on "))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Now", exact=True)).to_be_visible()
    page.get_by_role("button", name="Now", exact=True).click()
    expect(heading).to_have_text(re.compile("nodes and 5 edges[.]"))


@pytest.mark.slow
def test_a_merge_is_undone(visit: Opened, people: Site) -> None:
    page = visit(people, "/graph?collection=people")
    merges = page.get_by_role("region", name="Merges and splits")
    expect(merges).to_contain_text("Python, Py merged into Python")
    merges.get_by_role("button", name="Undo").click()
    expect(merges).to_contain_text("Python split into Python, Py")
    expect(merges.get_by_text("undone")).to_be_visible()
    expect_heading(page, "7 nodes and 5 edges.")


@pytest.mark.slow
def test_ten_thousand_edges_are_drawn(visit: Opened, people: Site) -> None:
    page = visit(people, "/evaluation")
    workers: list[str] = []
    page.on("worker", lambda worker: workers.append(worker.url))
    page.goto(f"{people.address}/console/graph?collection=people&graph=large")
    expect(page.locator(DRAWN)).to_be_visible(timeout=30_000)
    assert len(workers) == 1
    expect_heading(page, "4,000 nodes and 10,000 edges.")
    assert page.locator(".graph-edge").count() < 100
    page.get_by_role("button", name="Larger").click()


ZOOMED = """(canvas) => new Promise((done) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const place = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true };
    const times = [];
    const frame = (before) => requestAnimationFrame((now) => {
        times.push(now - before);
        if (times.length === 40) return done(times.sort((one, other) => one - other)[20]);
        const target = document.elementFromPoint(place.clientX, place.clientY);
        target.dispatchEvent(new WheelEvent("wheel", { ...place, deltaY: times.length < 20 ? -40 : 40 }));
        frame(now);
    });
    requestAnimationFrame(frame);
})"""
SMOOTH = 100
"""Most milliseconds of a frame, on processors alone and beside other tests."""


@pytest.mark.slow
def test_ten_thousand_edges_stay_smooth(visit: Opened, people: Site) -> None:
    page = visit(people, "/graph?collection=people&graph=large")
    expect(page.locator(DRAWN)).to_be_visible(timeout=30_000)
    page.locator(DRAWN).scroll_into_view_if_needed()
    assert min(page.locator(DRAWN).evaluate(ZOOMED) for _ in range(5)) < SMOOTH


@pytest.mark.slow
def test_what_is_not_there_says_no_more(visit: Opened, people: Site, empty: Site) -> None:
    for path in ("graph=nothing", "node=nothing"):
        page = visit(people, f"/graph?collection=people&{path}")
        expect(page.get_by_role("heading", name="Nothing has this address")).to_be_visible()
    page = visit(empty, "/graph")
    expect(page.get_by_role("heading", name="There is no graph yet")).to_be_visible()


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_and_text_is_text(visit: Opened, people: Site, narrow: bool) -> None:
    page = visit(people, "/graph?collection=people&node=Ann&hops=3&hit=Cleo", narrow=narrow)
    expect(page.locator(DRAWN)).to_be_visible()
    assert violations(page) == []
    page.get_by_role("list", name="Neighbors").get_by_role("button", name=re.compile("onerror")).click()
    expect(page.locator(".graph-way")).to_contain_text("onerror")
    assert not scrolls_sideways(page)
    assert page.evaluate("window.owned") is None
