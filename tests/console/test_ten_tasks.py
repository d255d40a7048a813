"""Ten tasks of a person at the console, each in at most four steps from the first screen."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.console.conftest import Opened, Site

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
