"""Issues, notes, pages and news of a Redmine as documents."""

import re
from typing import Any, Final

from conspectus.connectors import NewDocument

MAX_NAME_LETTERS: Final = 100
_HEADING: Final = re.compile(r"^h([1-6])\.[ \t]+(.*)$", re.MULTILINE)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f/\\]+")


def read_issue_document(issue: dict[str, Any], space: str) -> NewDocument:
    """Return an issue: its description, and the notes that everybody reads who reads the issue."""
    texts = [markdown_headings(issue.get("description") or "")]
    texts += [_format_note(note) for note in list_notes(issue, private=False)]
    return NewDocument(
        "\n\n".join(text for text in texts if text.strip()),
        title=issue["subject"],
        metadata={
            "path": _path(space, issue["subject"]),
            **{name: issue[name]["name"] for name in ("tracker", "status", "priority") if name in issue},
        },
        author=_name_of(issue.get("author")),
        occurred=issue["created_on"],
        thread=f"issue:{issue['id']}",
        syntax="markdown",
    )


def read_private_notes(issue: dict[str, Any], space: str) -> NewDocument:
    """Return the private notes of an issue."""
    notes = list_notes(issue, private=True)
    return NewDocument(
        "\n\n".join(map(_format_note, notes)),
        title=f"{issue['subject']} (private notes)",
        metadata={"path": _path(space, f"{issue['subject']} (private notes)")},
        thread=f"issue:{issue['id']}",
        syntax="markdown",
    )


def read_wiki_document(page: dict[str, Any], space: str) -> NewDocument:
    """Return a page of a wiki."""
    text = markdown_headings(page.get("text") or "")
    first_heading = re.search(r"^#+ (.+)$", text, re.MULTILINE)
    return NewDocument(
        text,
        title=first_heading[1] if first_heading else page["title"].replace("_", " "),
        metadata={"path": _path(space, page["title"], folder="wiki")},
        author=_name_of(page.get("author")),
        occurred=page["updated_on"],
        syntax="markdown",
    )


def read_news_document(news: dict[str, Any], space: str) -> NewDocument:
    """Return a piece of news: its summary and its text."""
    texts = [news.get("summary") or "", markdown_headings(news.get("description") or "")]
    return NewDocument(
        "\n\n".join(text for text in texts if text.strip()),
        title=news["title"],
        metadata={"path": _path(space, news["title"], folder="news")},
        author=_name_of(news.get("author")),
        occurred=news["created_on"],
        syntax="markdown",
    )


def list_notes(issue: dict[str, Any], *, private: bool) -> list[dict[str, Any]]:
    """Return the notes of an issue with a text, in their order."""
    notes = [note for note in issue["journals"] if (note.get("notes") or "").strip()]
    return [note for note in notes if bool(note.get("private_notes")) == private]


def markdown_headings(text: str) -> str:
    """Return a text with the headings of Textile in Markdown, and with line ends of one letter."""
    lines = text.replace("\r\n", "\n")
    return _HEADING.sub(lambda match: f"{'#' * int(match[1])} {match[2]}", lines)


def _format_note(note: dict[str, Any]) -> str:
    name = _name_of(note.get("user")) or "Anonymous"
    return f"## {name}, {note['created_on'][:10]}\n\n{markdown_headings(note['notes'])}"


def _name_of(person: dict[str, Any] | None) -> str | None:
    return str(person["name"]) if person and person.get("name") else None


def _path(space: str, name: str, *, folder: str = "") -> str:
    """Return a path below the space of a project, whose last part has no separator."""
    printable = _UNPRINTABLE.sub(" ", name)[:MAX_NAME_LETTERS].strip(" .") or "untitled"
    return "/".join(filter(None, (space, folder, printable)))
