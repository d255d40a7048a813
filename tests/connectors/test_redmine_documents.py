"""Issues, notes, pages and news of a Redmine as documents."""

from typing import Any

import pytest

from conspectus_connectors.redmine_documents import (
    markdown_headings,
    read_issue_document,
    read_news_document,
    read_private_notes,
    read_wiki_document,
)


def note_of(text: str, *, private: bool = False, **others: Any) -> dict[str, Any]:
    time = "2026-05-02T08:00:00Z"
    return {
        "notes": text,
        "private_notes": private,
        "created_on": time,
        "user": {"name": "Ann Lee"},
        **others,
    }


def issue_of(*notes: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": 12,
        "subject": "Pump / valve",
        "description": "h2. Steps\r\n\r\nturn it",
        "author": {"name": "Ben Lee"},
        "status": {"name": "New"},
        "created_on": "2026-05-01T08:00:00Z",
        "journals": list(notes),
    }


def test_an_issue_has_its_description_and_its_open_notes() -> None:
    document = read_issue_document(
        issue_of(note_of("it leaks"), note_of("hidden", private=True), note_of(" ")), "one"
    )
    assert document.text == "## Steps\n\nturn it\n\n## Ann Lee, 2026-05-02\n\nit leaks"
    assert (document.title, document.author, document.thread) == ("Pump / valve", "Ben Lee", "issue:12")
    assert document.metadata == {"path": "one/Pump   valve", "status": "New"}


def test_private_notes_are_a_document_of_their_own() -> None:
    issue = issue_of(note_of("it leaks"), note_of("hidden", private=True, user=None))
    document = read_private_notes(issue, "one")
    assert document.text == "## Anonymous, 2026-05-02\n\nhidden"
    assert document.thread == read_issue_document(issue, "one").thread


def test_an_issue_without_description_is_empty() -> None:
    assert read_issue_document({**issue_of(), "description": None}, "one").text == ""


def test_a_page_is_named_by_its_first_heading() -> None:
    page = {"title": "Our_Plans", "text": "words", "updated_on": "2026-05-02T08:00:00Z"}
    assert read_wiki_document(page, "one").title == "Our Plans"
    assert read_wiki_document({**page, "text": "h1. Plans"}, "one").title == "Plans"
    assert read_wiki_document(page, "one").metadata["path"] == "one/wiki/Our_Plans"


def test_news_have_their_summary_first() -> None:
    news = {
        "title": "Launch",
        "summary": "soon",
        "description": "words",
        "created_on": "2026-05-02T08:00:00Z",
    }
    assert read_news_document(news, "one").text == "soon\n\nwords"


@pytest.mark.parametrize(
    ("textile", "markdown"),
    [
        ("h1. A\r\nb", "# A\nb"),
        ("h6.  A", "###### A"),
        ("# one", "# one"),
        ("h7. A", "h7. A"),
        ("oh1. A", "oh1. A"),
    ],
)
def test_headings_of_textile_are_those_of_markdown(textile: str, markdown: str) -> None:
    assert markdown_headings(textile) == markdown
