"""The pages of the site as Markdown: those of docs/, and those that are made from code."""

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Final

from scripts.docs.cli_pages import make_cli_pages
from scripts.docs.errors_page import make_errors_page
from scripts.docs.http_pages import make_http_pages
from scripts.docs.python_pages import make_python_pages
from scripts.openapi import read_document
from scripts.settings_page import make_page as make_settings_page

LINK: Final = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)+[^)#\s]*)(?:#[^)\s]*)?\)")


def write_pages(root: Path, target: Path) -> None:
    """Write all pages below a folder."""
    shutil.copytree(root / "docs", target)
    for name, text in make_pages().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    for path in sorted(target.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(remove_outside_links(text, path.parent, target), encoding="utf-8")


def make_pages() -> dict[str, str]:
    """Return the pages that are made from code, by their paths."""
    return {
        **make_python_pages(),
        **make_cli_pages(),
        **make_http_pages(json.loads(asyncio.run(read_document()))),
        "reference/settings.md": make_settings_page(),
        "reference/errors.md": make_errors_page(),
    }


def remove_outside_links(text: str, folder: Path, root: Path) -> str:
    """Return a page without links to files of the repository that the site does not have."""

    def unlink_outside(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / match[2]))
        return match[0] if path.is_relative_to(root) else match[1]

    return LINK.sub(unlink_outside, text)
