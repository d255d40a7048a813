"""Ten tasks of a person at the console, each in at most four steps from the first screen."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import FilePayload, Locator, Page, expect

from conspectus.model.access import Principal
from conspectus.model.experiments import NewEvidence, NewQuestion
from conspectus.sync import connect
from tests.console.conftest import Opened, Site
from tests.console.test_answers import running_recorded_site
from tests.console.test_chat import running_chat_server

MAX_STEPS = 4


class Steps:
    """Counts what a person does on a page: a click, a choice or a submit. Typing is part of the submit."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def click(self, control: Locator) -> None:
        self.count += 1
        control.click()

    def open_screen(self, name: str) -> None:
        self.click(self.page.get_by_role("navigation", name="Screens").get_by_role("link", name=name))

    def choose(self, control: Locator, option: str) -> None:
        self.count += 1
        control.select_option(option)

    def choose_files(self, control: Locator, files: list[FilePayload]) -> None:
        self.count += 1
        control.set_input_files(files)

    def submit(self, field: Locator, text: str) -> None:
        """Type into a field and press Enter."""
        self.count += 1
        field.fill(text)
        field.press("Enter")


@contextmanager
def counted_steps(page: Page) -> Iterator[Steps]:
    """Count the steps of the block; fails if there are more than a person is asked for."""
    expect(page.get_by_label("Question", exact=True)).to_be_editable()
    steps = Steps(page)
    yield steps
    assert 0 < steps.count <= MAX_STEPS


def ask(steps: Steps, question: str) -> None:
    steps.submit(steps.page.get_by_label("Question", exact=True), question)


def test_why_is_a_document_missing(visit: Opened, example: Site) -> None:
    page = visit(example, "/", key=example.key)
    with counted_steps(page) as steps:
        ask(steps, "how do we restore a backup?")
        why = page.get_by_role("region", name="Why is a document not in the window?")
        steps.submit(why.get_by_role("combobox"), "meetings")
        expect(why.locator(".why-answer")).to_contain_text(re.compile("rank [0-9]+ of [0-9]+"))


def test_what_another_person_sees(visit: Opened, example: Site) -> None:
    page = visit(example, "/", key=example.key)
    with counted_steps(page) as steps:
        ask(steps, "how do we restore a backup?")
        steps.choose(page.get_by_label("seen by"), "bob")
        expect(page.get_by_role("heading", level=1)).to_contain_text(
            re.compile("passages? do(es)? not exist for bob")
        )


def test_six_files_of_which_five_are_broken(visit: Opened, changeable: Site) -> None:
    files: list[FilePayload] = [
        {"name": f"{number}.docx", "mimeType": "application/zip", "buffer": b"PK\x03\x04 nothing"}
        for number in range(5)
    ]
    files.append({"name": "alarm.md", "mimeType": "text/markdown", "buffer": b"# Alarm"})
    page = visit(changeable, "/", key=changeable.key)
    with counted_steps(page) as steps:
        steps.open_screen("Documents")
        steps.click(page.get_by_role("button", name="Add documents"))
        steps.choose_files(page.get_by_label("Files", exact=True), files)
        steps.click(page.get_by_role("button", name="Add 6 files"))
        panel = page.get_by_role("status").filter(has_text="partly, 5 failed of 6")
        expect(panel.get_by_role("listitem")).to_have_count(5)
        expect(panel).to_contain_text("3.docx: a damaged ZIP archive")


def test_two_settings_are_compared(visit: Opened, example: Site) -> None:
    page = visit(example, "/", key=example.key)
    with counted_steps(page) as steps:
        ask(steps, "how do we restore a backup?")
        steps.choose(page.get_by_label("Compare with"), "4096")
        expect(page.get_by_role("region", name="Comparison")).to_be_visible()


def test_a_lost_question_and_the_better_setting(visit: Opened, changeable: Site) -> None:
    """Two runs are compared, a lost question says why, and the better run becomes the default."""
    with connect(changeable.address, api_key=changeable.key) as engine:
        [document] = engine.documents.list(collection="default", limit=1).documents
        question = NewQuestion("alarm", (NewEvidence(document.id, 0, 20),), "q1")
        question_set = engine.experiments.create_set("alarms", [question])
        start_run = engine.experiments.start_run
        for run in (
            start_run(question_set.id, name="worse", limit=0),
            start_run(question_set.id, name="keywords", retrievers=("keyword",)),
        ):
            assert engine.jobs.wait(run.job, timeout=30).state == "succeeded"
    page = visit(changeable, "/", key=changeable.key)
    with counted_steps(page) as steps:
        steps.open_screen("Evaluation")
        steps.click(page.get_by_role("button", name="Look at worse"))
        steps.click(page.get_by_role("button", name=re.compile("^Question 1: ")))
        expect(page.get_by_role("list", name="Evidence")).to_contain_text("Nothing is in the window of worse")
        expect(page.get_by_role("region", name=re.compile("^Window of "))).to_have_count(2)
        steps.click(page.get_by_role("button", name="Make default: keywords"))
        expect(page.get_by_role("button", name="Undo")).to_be_visible()


def test_a_window_of_500_tokens(visit: Opened, example: Site) -> None:
    page = visit(example, "/", key=example.key)
    with counted_steps(page) as steps:
        ask(steps, "how do we restore a backup?")
        steps.submit(page.get_by_role("textbox", name="Budget"), "500")
        expect(page).to_have_url(re.compile("max_tokens=500"))
        expect(page.get_by_role("heading", level=1)).to_contain_text(
            re.compile("passages? fills? [0-9]+ of the")
        )
        expect(page.get_by_role("article", name="The chosen passage")).to_contain_text("In the window")


def test_a_fact_leads_to_its_sentence(visit: Opened, example: Site) -> None:
    page = visit(example, "/", key=example.key)
    with counted_steps(page) as steps:
        steps.open_screen("Graph")
        steps.click(page.get_by_role("button", name="Sentence of leads").first)
        panel = page.get_by_role("region", name="The chosen edge")
        sentence = "Ann Berg leads the platform team"
        expect(panel.locator("blockquote")).to_contain_text(sentence)
        steps.click(panel.get_by_role("link", name="Open in the document"))
        expect(page.locator("mark")).to_contain_text(sentence)


def test_who_was_granted_what_and_a_role_is_revoked(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        engine.access.grant("default", Principal("user", "bob"), "editor", source="security")
    page = visit(changeable, "/", key=changeable.key)
    with counted_steps(page) as steps:
        steps.click(page.get_by_role("link", name="owner: users and keys"))
        steps.click(page.get_by_role("region", name="Users").get_by_role("link", name="bob"))
        grants = page.get_by_role("region", name="Grants").get_by_role("listitem")
        granted = grants.filter(has_text="editor on security of default")
        expect(granted).to_contain_text("granted by owner")
        steps.click(granted.get_by_role("button", name="Revoke editor on security of default"))
        steps.click(page.get_by_role("dialog").get_by_role("button", name="Revoke"))
        expect(granted).to_have_count(0)
        expect(grants).to_have_count(2)


def test_an_import_is_watched_cancelled_and_resumed(visit: Opened, changeable: Site, tmp_path: Path) -> None:
    pages = tmp_path / "handbook"
    pages.mkdir()
    for number in range(90):
        (pages / f"{number}.md").write_text(f"# Page {number}\n\n" + "A boat is moored at the quay. " * 80)
    with connect(changeable.address, api_key=changeable.key) as engine:
        engine.connections.create("pages", "markdown", {"path": str(pages)}, collection="default")
        engine.connections.sync("pages", collection="default")
        page = visit(changeable, "/", key=changeable.key)
        with counted_steps(page) as steps:
            steps.open_screen("Operations")
            job = page.get_by_role("list", name="Jobs").get_by_role("listitem").first
            expect(job.get_by_role("progressbar")).to_be_visible()
            steps.click(job.get_by_role("button", name="Cancel"))
            steps.click(job.get_by_role("button", name="Resume"))
            expect(job).to_contain_text("succeeded", timeout=120_000)
        assert engine.documents.count(collection="default") > 90


def test_a_wrong_memory_is_corrected(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, "/", key=changeable.key)
    with counted_steps(page) as steps:
        steps.open_screen("Memory")
        row = page.locator(".memory-row").filter(has_text="I take the tram at 8:12")
        steps.click(row.get_by_role("button", name="Correct …"))
        steps.page.get_by_label("Text", exact=True).fill("I take the tram at 8:30.")
        steps.click(page.get_by_role("button", name="Save"))
        statements = page.locator(".memory-row > .memory-text")
        expect(statements.filter(has_text="I take the tram at 8:30.")).to_be_visible()


def test_why_a_chat_cited_a_wrong_passage(visit: Opened, tmp_path: Path) -> None:
    with running_chat_server() as model, running_recorded_site(tmp_path, model) as site:
        page = visit(site, "/")
        with counted_steps(page) as steps:
            steps.open_screen("Chat")
            steps.submit(page.get_by_label("Message"), "When does the backup run?")
            steps.click(page.get_by_role("link", name="Answer record"))
            window = page.get_by_role("region", name="Text of the window")
            expect(window.locator("mark")).to_contain_text("The backup runs every night at two.")
            candidates = page.get_by_role("list", name="Candidates").get_by_role("listitem")
            expect(candidates).to_contain_text(
                [re.compile("^1.*Backups.*[0-9]"), re.compile("^2.*Lunch.*[0-9]")]
            )
            steps.click(page.get_by_role("region", name="The answer").get_by_role("link", name="[1] Backups"))
            expect(page.locator("mark")).to_have_text("The backup runs every night at two.")
