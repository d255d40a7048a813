"""Front matter of Markdown files."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import yaml

from conspectus.model.records import Json, NewDocument
from conspectus.sources.files.html import markdown_title
from conspectus.sources.files.parsers import TITLE_LENGTH

FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MAX_FRONT_MATTER_LENGTH = 65_536
MAX_ID_LENGTH = 200
MAX_DEPTH = 10


def split_front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    """Return the fields of the front matter and the text after it; no fields if there is none."""
    block = FRONT_MATTER.match(text[:MAX_FRONT_MATTER_LENGTH])
    if block is None:
        return {}, text
    try:
        fields = _Strings(block[1]).get_single_data()
    except (yaml.YAMLError, ValueError, OverflowError):
        return {}, text
    if fields is None or fields == "":
        return {}, text[block.end() :]
    return (fields, text[block.end() :]) if isinstance(fields, dict) else ({}, text)


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
    )


def _tags(value: Json) -> Json:
    """Return tags as a list. `one, two` is equivalent to `[one, two]`."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]


class _Strings(yaml.BaseLoader):
    """Loads mappings, lists and strings to a limited depth, without anchors and aliases."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node. Raises an error for aliases and deep nesting, which may expand enormously."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.YAMLError("is nested too deeply")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
