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
    for name, text in made().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    for path in sorted(target.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(_inside(text, path.parent, target), encoding="utf-8")


def made() -> dict[str, str]:
    """The pages that are made from code, by their paths."""
    return {
        **python_pages(),
        **cli_pages(),
        **http_pages(json.loads(asyncio.run(document()))),
        "reference/settings.md": settings_page(),
        "reference/errors.md": errors_page(),
    }


def _inside(text: str, folder: Path, root: Path) -> str:
    """A page without the links to files of the repository, which the site does not have."""

    def kept(found: re.Match[str]) -> str:
        place = Path(os.path.normpath(folder / found[2]))
        return found[0] if place.is_relative_to(root) else found[1]

    return LINK.sub(kept, text)
