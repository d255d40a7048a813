"""Names under which documents are shown: a title, and the path or key that tells it from others like it."""

import re

from conspectus.text.printing import on_one_line

_OPAQUE = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,128}(?:[#:/.-]\d+)?", re.IGNORECASE
)
"""A UUID, or a digest with a number after it: as a name, it says nothing."""


def readable_key(key: str) -> str:
    """Return a path or key on one line; empty for a random UUID or a digest."""
    return "" if _OPAQUE.fullmatch(key) else on_one_line(key)


def key_beside_title(title: str, key: str) -> str:
    """Return what tells a document from others of its title: its key, unless the title is that already."""
    name = readable_key(key)
    return name if title and name != on_one_line(title) else ""


def name_with_key(title: str, key: str) -> str:
    """Return `Title (key)`, or what there is of the two."""
    beside = key_beside_title(title, key)
    return f"{on_one_line(title)} ({beside})" if beside else on_one_line(title) or readable_key(key)
