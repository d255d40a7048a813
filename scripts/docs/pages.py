"""The pages of the site as Markdown: those of docs/, and those that are made from code."""

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Final

from scripts.docs.cli_pages import cli_pages
from scripts.docs.errors_page import errors_page
from scripts.docs.http_pages import http_pages
from scripts.docs.python_pages import python_pages
from scripts.openapi import document
from scripts.settings_page import page as settings_page

LINK: Final = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)+[^)#\s]*)(?:#[^)\s]*)?\)")


def write(root: Path, target: Path) -> None:
    """Write all pages below a folder."""
    shutil.copytree(root / "docs", target)
    for name, text in generated_pages().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    for path in sorted(target.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(without_outside_links(text, path.parent, target), encoding="utf-8")


def generated_pages() -> dict[str, str]:
    """Return the pages that are made from code, by their paths."""
    return {
        **python_pages(),
        **cli_pages(),
        **http_pages(json.loads(asyncio.run(document()))),
        "reference/settings.md": settings_page(),
        "reference/errors.md": errors_page(),
    }


def without_outside_links(text: str, folder: Path, root: Path) -> str:
    """Return a page without links to files of the repository that the site does not have."""

    def unlink_outside(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / match[2]))
        return match[0] if path.is_relative_to(root) else match[1]

    return LINK.sub(unlink_outside, text)
