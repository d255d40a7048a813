"""Answers: what people were given, with what was cited, and the same question asked again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import conspectus
from conspectus.model.access import Principal
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations
from tests.console.test_chat import KEY, ask_about_backup, running_chat_server
from tests.support.chat_server import ChatServer

QUESTION = "When does the backup run?"
SETTINGS = conspectus.Settings(embedder="none", answer_records="all")
HOSTILE = "\u202e<b onclick=x>backup</b> " + "W" * 200


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A chat model that always answers the same."""
    with running_chat_server() as server:
        yield server


@contextmanager
def running_recorded_site(folder: Path, model: ChatServer) -> Iterator[Site]:
    """A server with two passages, which asks the model and keeps what it answers."""
    texts = {"backups": "The backup runs every night at two.", "lunch": "Lunch is at noon, after the backup."}
    with conspectus.open(folder, settings=SETTINGS) as engine:
        documents = [conspectus.NewDocument(text, title=key.title(), key=key) for key, text in texts.items()]
        engine.add(documents, collection="wiki")
    variables = {
        "OPENAI_API_KEY": KEY,
        "CONSPECTUS_CHAT_MODEL": "openai:small",
        "CONSPECTUS_CHAT_BASE_URL": model.url,
        "CONSPECTUS_ANSWER_RECORDS": "all",
    }
    with running_site(folder, "--no-auth", **variables) as site:
        yield site


@pytest.fixture
def talking(tmp_path: Path, model: ChatServer) -> Iterator[Site]:
    """The server of the model."""
    with running_recorded_site(tmp_path, model) as site:
        yield site


def open_record(page: Page) -> None:
    """Open the record of the only answer from the list."""
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Answers").click()
    page.get_by_role("list", name="Answer records").get_by_role("link").click()
    expect(page.get_by_role("heading", name=QUESTION, level=1)).to_be_visible()


def test_a_chat_leads_to_its_record_and_a_citation_to_its_place(visit: Opened, talking: Site) -> None:
    page = visit(talking, "/chat")
    ask_about_backup(page)
    page.get_by_role("link", name="Answer record").click()
    expect(page.get_by_role("heading", name=QUESTION, level=1)).to_be_visible()
    window = page.get_by_role("region", name="Text of the window")
    expect(window.locator("mark")).to_contain_text("The backup runs every night at two.")
    expect(window).to_contain_text("Lunch is at noon")
    answer = page.get_by_role("region", name="The answer")
    expect(answer).to_contain_text("Backups run at two [1], says <b>ann</b> [7]")
    expect(answer.locator(".invented")).to_contain_text("[7]")
    page.get_by_text("The prompt: 2 messages").click()
    expect(page.get_by_role("region", name="Message 2 of the prompt")).to_contain_text(QUESTION)
    expect(page.get_by_role("heading", name="2 candidates")).to_be_visible()
    answer.get_by_role("link", name="[1] Backups").click()
    expect(page.locator("mark")).to_have_text("The backup runs every night at two.")


def test_the_question_is_asked_again_otherwise(visit: Opened, talking: Site) -> None:
    page = visit(talking, "/chat?collection=wiki")
    ask_about_backup(page)
    open_record(page)
    address = page.url
    page.get_by_role("link", name="With 500 tokens").click()
    expect(page).to_have_url(re.compile(r"/playground\?.*max_tokens=500"))
    expect(page.get_by_label("Question", exact=True)).to_have_value(QUESTION)
    page.goto(address)
    page.get_by_label("As of").fill("2020-01-01T08:00")
    page.get_by_role("button", name="Ask as of then").click()
    expect(page).to_have_url(re.compile(r"/playground\?.*as_of=2020-01-01T08%3A00"))
    page.goto(address)
    page.get_by_label("As the user (name or id)").fill("ann")
    page.get_by_role("button", name="See as another person").click()
    expect(page).to_have_url(re.compile(r"/see-as\?.*user=ann"))


def test_a_record_becomes_a_question_of_an_evaluation(visit: Opened, talking: Site) -> None:
    page = visit(talking, "/chat?collection=wiki")
    ask_about_backup(page)
    open_record(page)
    page.get_by_role("button", name="Make this a test question").click()
    expect(page.get_by_role("button", name="Is a test question")).to_be_disabled()
    page.get_by_role("link", name="The set in Evaluation").click()
    questions = page.get_by_role("region", name="Question set")
    expect(questions).to_contain_text("From answer records: 1 question")
    questions.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(
        "100.0 % of the evidence is in the window, over 1 question"
    )


def test_a_record_is_deleted_where_it_stands(visit: Opened, talking: Site) -> None:
    page = visit(talking, "/chat")
    ask_about_backup(page)
    open_record(page)
    page.get_by_role("button", name="Delete this record").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("There is no answer record that you may read")).to_be_visible()


def test_the_address_opens_for_colleagues_who_may_read_all_of_it(visit: Opened, tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        engine.add([conspectus.NewDocument("The backup runs at two.", key="open")], source="open")
        engine.add([conspectus.NewDocument("The secret backup runs at four.", key="secret")], source="hidden")
        owner, keys = engine.keys.create().secret, []
        for name in ("ann", "ben"):
            engine.people.create_user(name)
            engine.access.grant("default", Principal("user", name), "viewer", source="open")
            keys.append(engine.keys.create(name).secret)
        engine.access.grant("default", Principal("user", "ann"), "viewer", source="hidden")
        answer = engine.window("secret backup").answer
        ann, ben = keys
    with running_site(tmp_path, CONSPECTUS_ANSWER_RECORDS="all") as site:
        for key, is_shown in ((owner, True), (ann, True), (ben, False)):
            page = visit(site, f"/answers/{answer}", key=key)
            text = page.get_by_text("The secret backup runs at four.")
            if is_shown:
                expect(text).to_be_visible()
            else:
                expect(page.get_by_text("Nothing here that you may see")).to_be_visible()
                expect(text).to_have_count(0)


@pytest.mark.parametrize("narrow", WIDTHS)
def test_hostile_texts_stay_texts(visit: Opened, tmp_path: Path, narrow: bool) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        engine.add([conspectus.NewDocument(HOSTILE, title=HOSTILE, key=HOSTILE)], collection="wiki")
        answer = engine.window(HOSTILE, collection="wiki").answer
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, f"/answers/{answer}", narrow=narrow)
        expect(page.get_by_role("heading", level=1)).to_contain_text("<b onclick=x>backup</b>")
        assert page.locator("main b[onclick]").count() == 0
        assert not scrolls_sideways(page)
        assert violations(page) == []
        page.goto(f"{site.address}/console/answers")
        expect(page.get_by_role("list", name="Answer records")).to_be_visible()
        assert not scrolls_sideways(page)
        assert violations(page) == []
