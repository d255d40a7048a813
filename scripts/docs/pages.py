"""The pages of the site as Markdown: those of docs/, and those that are made from code."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

LINK: Final = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)+[^)#\s]*)(?:#[^)\s]*)?\)")


def write(root: Path, target: Path) -> None:
    """Write all pages below a folder."""
    shutil.copytree(root / "docs", target)
    for path in sorted(target.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(_inside(text, path.parent, target), encoding="utf-8")


def _inside(text: str, folder: Path, root: Path) -> str:
    """A page without the links to files of the repository, which the site does not have."""

    def kept(found: re.Match[str]) -> str:
        place = Path(os.path.normpath(folder / found[2]))
        return found[0] if place.is_relative_to(root) else found[1]

    return LINK.sub(kept, text)
