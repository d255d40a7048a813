"""Pieces of Markdown pages."""

import re
from collections.abc import Iterable, Sequence


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing if there are no rows."""
    lines = [" | ".join(_format_cell(cell) for cell in row) for row in rows]
    if not lines:
        return ""
    return "\n".join(f"| {line} |" for line in (" | ".join(head), " | ".join("---" for _ in head), *lines))


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def format_docstring(text: str | None) -> str:
    """Return a docstring as Markdown; what is no code is escaped."""
    parts = re.split(r"(`[^`]*`)", (text or "").strip())
    return "".join(
        part if part.startswith("`") else re.sub(r"([<*_\[\]{}$])", r"\\\1", part) for part in parts
    )


def format_code(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def format_page(title: str, *parts: str) -> str:
    """Return a page of paragraphs."""
    return "\n\n".join((f"# {title}", *filter(None, parts))) + "\n"


def format_contents(names: Iterable[str], depth: int = 1) -> str:
    """Return links to pages, which makes them part of the navigation."""
    return format_code("{toctree}", "\n".join((f":maxdepth: {depth}", "", *names)))
