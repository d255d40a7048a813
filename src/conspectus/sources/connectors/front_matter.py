"""Markdown pages with YAML front matter, read so that a hostile one can do nothing.

Every value stays the string that is written (an id `007` is not a number, a date not a time). Aliases, deep
nesting and anything else that is not a plain mapping make the block part of the text, where it hurts nobody.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import yaml

from conspectus.model.records import Json, NewDocument
from conspectus.sources.files.html import markdown_title
from conspectus.sources.files.parsers import TITLE_LENGTH

BLOCK = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
LONGEST_BLOCK = 65_536
LONGEST_ID = 200
DEEPEST = 10


def split_front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    """The fields of the front matter and the text behind it; no fields where there is none."""
    block = BLOCK.match(text[:LONGEST_BLOCK])
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
    """The identity that the front matter gives the page, if it gives one."""
    named = split_front_matter(text)[0].get("id")
    usable = isinstance(named, str) and 0 < len(named.strip()) <= LONGEST_ID
    return str(named).strip() if usable else None


def read_page(text: str, path: str) -> NewDocument:
    """A Markdown file as a document: front matter becomes title and metadata, the rest the text."""
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
    """A list in any case: `one, two` is as good as `[one, two]`."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]


class _Strings(yaml.BaseLoader):
    """Mappings, lists and strings, a few levels deep, each written out where it stands."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node; what could be far larger than its text is refused."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.YAMLError("is nested too deeply")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
