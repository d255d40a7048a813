"""Front matter of Markdown files."""

import re
from collections.abc import Mapping

import yaml

from conspectus.model.records import Json

FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MAX_FRONT_MATTER_LENGTH = 65_536
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
