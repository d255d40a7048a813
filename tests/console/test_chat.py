"""Chat: an answer as it comes, the passages that it cites, and citations that it made up."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import conspectus
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations
from tests.support.chat_server import ChatServer, refusing

PIECES = ["Backups run", " at two [1],", " says <b>ann</b> [7]."]
KEY = "sk-hunter2"


@contextmanager
def running_chat_server() -> Iterator[ChatServer]:
    """The local chat server, in a thread: Playwright has an event loop in this one."""
    started, loop = threading.Event(), asyncio.new_event_loop()
    servers: list[ChatServer] = []

    async def serve(end: asyncio.Event) -> None:
        async with ChatServer(PIECES, key=KEY, model="small") as server:
            servers.append(server)
            started.set()
            await end.wait()

    end = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(end),))
    thread.start()
    assert started.wait(30), "the chat server did not start"
    try:
        yield servers[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        loop.close()


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A chat model that always answers the same."""
    with running_chat_server() as server:
        yield server


@pytest.fixture
def talking(tmp_path: Path, model: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server with one passage, which asks the model."""
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        document = conspectus.NewDocument(
            "The backup runs every night at two.", title="Backups", key="backups"
        )
        engine.add([document], collection="wiki")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("CONSPECTUS_CHAT_MODEL", "openai:small")
    monkeypatch.setenv("CONSPECTUS_CHAT_BASE_URL", model.url)
    with running_site(tmp_path, "--no-auth") as site:
        yield site


def ask_about_backup(page: Page) -> None:
    page.get_by_label("Message").fill("When does the backup run?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_contain_text("Backups run at two [1], says <b>ann</b> [7]")


def test_a_cited_row_stands_below_the_header_of_its_table(
    visit: Opened, tmp_path: Path, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "\n".join(f"| Boat-{number} | {number} crowns |" for number in range(2_000))
    table = f"# Fees\n\n| Berth | Fee |\n| --- | --- |\n{rows}\n"
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        document = conspectus.NewDocument(table, title="Fees", key="fees", syntax="markdown")
        engine.add([document], collection="wiki")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("CONSPECTUS_CHAT_MODEL", "openai:small")
    monkeypatch.setenv("CONSPECTUS_CHAT_BASE_URL", model.url)
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/chat")
        page.get_by_label("Message").fill("What is the fee of Boat-1400?")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="[1]", exact=True).click()
        passage = page.get_by_role("complementary", name="The cited passage")
        expect(passage).to_contain_text("crowns |")
        expect(passage.locator(".table-header")).to_contain_text("| Berth | Fee |")


def test_citations_open_passages_and_invented_ones_stand_out(visit: Opened, talking: Site) -> None:
    page = visit(talking, "/chat")
    ask_about_backup(page)
    expect(page.locator(".invented")).to_contain_text("[7]")
    expect(page.get_by_text("invented: 7")).to_be_visible()
    page.get_by_role("button", name="[1]", exact=True).click()
    passage = page.get_by_role("complementary", name="The cited passage")
    expect(passage).to_contain_text("The backup runs every night at two.")
    passage.get_by_role("link", name="Open in the document").click()
    expect(page.locator("mark")).to_have_text("The backup runs every night at two.")


@pytest.mark.slow
def test_answers_with_and_without_context_stand_side_by_side(
    visit: Opened, talking: Site, model: ChatServer
) -> None:
    page = visit(talking, "/chat?context=both")
    ask_about_backup(page)
    expect(page.get_by_role("article")).to_have_count(2)
    expect(page.get_by_role("article").nth(1)).to_contain_text("without context")
    expect(page.get_by_role("article").nth(1)).to_contain_text("says")
    prompts = sorted(str(call.body["messages"][-1]["content"]) for call in model.calls)
    assert ["every night at two" in prompt for prompt in prompts].count(True) == 1


@pytest.mark.slow
def test_a_failure_is_shown_where_the_answer_would_be(
    visit: Opened, talking: Site, model: ChatServer
) -> None:
    model.plan.append(refusing(400, "planned"))
    page = visit(talking, "/chat")
    page.get_by_label("Message").fill("When?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()


HOSTILE_PIECES = [
    "<img src=x onerror='window.owned = 1'> ",
    "<script>window.owned = 1</script>",
    "\u202e [1] " + "x" * 9_000,
]


def test_a_hostile_answer_is_only_text(visit: Opened, talking: Site, model: ChatServer) -> None:
    model.says = HOSTILE_PIECES
    page = visit(talking, "/chat", narrow=True)
    page.get_by_label("Message").fill("When does the backup run?")
    page.keyboard.press("Enter")
    answer = page.get_by_role("article").first
    expect(answer).to_contain_text("<script>window.owned = 1</script>")
    expect(answer.locator("[aria-busy=false]")).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.owned") is None
    assert not scrolls_sideways(page)


@pytest.mark.slow
def test_without_a_model_it_says_how_to_set_one(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/chat")
    expect(page.get_by_role("heading", name="No chat model is set")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, talking: Site, narrow: bool) -> None:
    page = visit(talking, "/chat?context=both", narrow=narrow)
    ask_about_backup(page)
    page.get_by_role("button", name="[1]", exact=True).first.click()
    expect(page.get_by_role("complementary")).to_be_visible()
    assert not scrolls_sideways(page)
    assert violations(page) == []
