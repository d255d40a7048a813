"""Markdown files of a connection, whose front matter names their id, title, authors and tags."""

from pathlib import PurePosixPath

from conspectus.model.records import Json, NewDocument
from conspectus.sources.files.file_properties import declared_authors
from conspectus.sources.files.front_matter import split_front_matter
from conspectus.sources.files.html import markdown_title
from conspectus.sources.files.parsers import TITLE_LENGTH

MAX_ID_LENGTH = 200


def page_id(text: str) -> str | None:
    """Return the id in the front matter, if there is one."""
    id = split_front_matter(text)[0].get("id")
    if not isinstance(id, str):
        return None
    id = id.strip()
    return id if 0 < len(id) <= MAX_ID_LENGTH else None


def read_page(text: str, path: str) -> NewDocument:
    """Return a Markdown file as a document: title and metadata from the front matter, and the text."""
    fields, body = split_front_matter(text)
    named = fields.get("title")
    title = named.strip() if isinstance(named, str) else ""
    title = title or markdown_title(body) or PurePosixPath(path).stem
    others = {name: value for name, value in fields.items() if name not in {"id", "title", "tags"}}
    if "tags" in fields:
        others["tags"] = _tags(fields["tags"])
    return NewDocument(
        text=body if body.strip() else "",
        title=title[:TITLE_LENGTH],
        metadata={**others, "path": path},
        syntax="markdown",
        author=declared_authors(fields),
    )


def _tags(value: Json) -> Json:
    """Return tags as a list. `one, two` is equivalent to `[one, two]`."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]
