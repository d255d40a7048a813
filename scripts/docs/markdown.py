"""Pieces of Markdown pages."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing where there are no rows."""
    lines = [" | ".join(_cell(each) for each in row) for row in rows]
    if not lines:
        return ""
    return "\n".join(f"| {line} |" for line in (" | ".join(head), " | ".join("---" for _ in head), *lines))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def prose(text: str | None) -> str:
    """A docstring as Markdown: what is no code is shown as it stands."""
    parts = re.split(r"(`[^`]*`)", (text or "").strip())
    return "".join(
        each if each.startswith("`") else re.sub(r"([<*_\[\]{}$])", r"\\\1", each) for each in parts
    )


def code(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def page(title: str, *parts: str) -> str:
    """A page of paragraphs."""
    return "\n\n".join((f"# {title}", *filter(None, parts))) + "\n"


def contents(names: Iterable[str], depth: int = 1) -> str:
    """Links to pages, which makes them part of the navigation."""
    return code("{toctree}", "\n".join((f":maxdepth: {depth}", "", *names)))
