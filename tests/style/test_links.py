"""Every link between the pages of the repository leads to a file, and to a heading where it names one."""

import re
from pathlib import Path

from tests.style.sources import ROOT, read

PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")})
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def headings(page: Path) -> set[str]:
    """The anchors of a page: its headings in lower case, without marks, with hyphens for spaces."""
    titles = re.findall(r"^#+ (.+)$", read(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no heading."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", read(page), flags=re.M | re.S)
    broken = []
    for path, anchor in LINK.findall(prose):
        target = page.parent / path if path else page
        if "://" not in path and not (target.exists() and (not anchor or anchor in headings(target))):
            broken.append(f"{path}#{anchor}")
    return broken


def test_every_link_leads_somewhere() -> None:
    broken = {page.relative_to(ROOT).as_posix(): broken_links(page) for page in PAGES}
    assert {page: links for page, links in broken.items() if links} == {}


def test_a_planted_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](absent.md) [b](#one) [c](#two) [d](https://e.org) `[e](f)`\n", encoding="utf-8"
    )
    assert broken_links(page) == ["absent.md#", "#two"]
