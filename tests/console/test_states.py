"""What every screen does when the server does not answer, how much a first visit loads, and large stores."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Route, expect

import conspectus
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, themed

QUESTION = "query=how+do+we+restore+a+backup%3F"
SELDOM = (
    f"/see-as?user=bob&{QUESTION}",
    "/documents/some-document",
    "/conversations",
    "/streams",
    "/graph",
    *(
        f"/operations?part={part}"
        for part in ("quarantine", "feedback", "people", "grants", "requests", "audit")
    ),
)
SCREENS = (
    f"/playground?{QUESTION}",
    "/chat",
    "/documents",
    "/memory",
    "/operations?part=overview",
    *(pytest.param(path, marks=pytest.mark.slow) for path in SELDOM),
)
MAX_BYTES = 250 * 1024
"""Of the first visit, compressed."""
DOCUMENTS, SECTIONS = 200, 500


def fail_request(route: Route) -> None:
    """Fail as a server does that is about to end; who is logged in is still known."""
    if route.request.url.endswith("/api/v1/me"):
        route.continue_()
    else:
        route.fulfill(status=503, json={"title": "Unavailable", "status": 503, "detail": "Going down."})


@pytest.mark.parametrize("path", SCREENS)
def test_an_error_says_what_failed_and_can_be_tried_again(visit: Opened, example: Site, path: str) -> None:
    page = visit(example, "/evaluation", key=example.key)
    page.route("**/api/v1/**", fail_request)
    page.goto(f"{example.address}/console{path}")
    failed = page.get_by_role("alert").first
    expect(failed).to_contain_text("Could not load")
    expect(failed).to_contain_text("Going down.")
    assert not scrolls_sideways(page)
    assert themed(page) == []
    page.unroute("**/api/v1/**")
    failed.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("heading").first).to_be_visible()


def test_an_old_answer_does_not_stand_under_a_new_question(visit: Opened, example: Site) -> None:
    page = visit(example, f"/playground?{QUESTION}", key=example.key)
    window = page.get_by_role("heading", name="Every candidate, and what became of it")
    expect(window).to_be_visible()
    page.route("**/api/v1/explain", fail_request)
    page.get_by_label("Question", exact=True).fill("who may restore it?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Could not load")
    expect(window).to_have_count(0)


def test_the_first_visit_is_small(visit: Opened, site: Site) -> None:
    page = visit(site, "/playground")
    expect(page.get_by_label("Question", exact=True)).to_be_editable()
    sizes = page.evaluate(
        """["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
            .map((each) => each.encodedBodySize)"""
    )
    assert 0 < sum(sizes) <= MAX_BYTES


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A store of 100,000 chunks, on a server that needs no key."""
    folder = tmp_path_factory.mktemp("large")
    settings = conspectus.Settings(embedder="none", chunk_size=100, chunk_overlap=0)
    with conspectus.open(folder, settings=settings) as engine:
        for start in range(0, DOCUMENTS, 20):
            engine.add([page_of(number) for number in range(start, start + 20)], source=f"part {start}")
        assert engine.documents.count() == DOCUMENTS
    with running_site(folder, "--no-auth") as running:
        yield running


def page_of(number: int) -> conspectus.NewDocument:
    """A document of many short sections, one chunk each."""
    sections = (
        f"## Section {section} of page {number}\n\n"
        f"Shelf {number * section % 997} is backed up by hand, slowly.\n"
        for section in range(SECTIONS)
    )
    return conspectus.NewDocument("\n".join(sections), title=f"Page {number}", key=f"{number}.md")


@pytest.mark.parametrize("narrow", WIDTHS)
@pytest.mark.slow
def test_a_hundred_thousand_chunks_are_shown(visit: Opened, large: Site, narrow: bool) -> None:
    page = visit(large, "/operations", narrow=narrow)
    expect(page.locator(".stored")).to_contain_text("100,000 passages")
    page.goto(f"{large.address}/console/playground?query=backup+of+shelf+7&compare=4096")
    expect(page.get_by_role("region", name="Comparison")).to_be_visible()
    assert page.locator(".candidate").count() < 100
    page.keyboard.press("j")
    assert not scrolls_sideways(page)
    page.goto(f"{large.address}/console/documents")
    expect(page.get_by_role("heading", level=1)).to_have_text("200 documents in 10 sources of default")
    page.locator(".document-row").first.click()
    expect(page.locator(".passage-row").first).to_be_visible()
    assert page.locator(".passage-row").count() < 100
    assert not scrolls_sideways(page)
