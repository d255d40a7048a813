"""Every link between the pages of the repository leads to a file, and to a heading where it names one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")})
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def headings(page: Path) -> set[str]:
    """The anchors of a page: its headings in lower case, without marks, with hyphens for spaces."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = [link for link in LINK.findall(prose) if "://" not in link[0]]
    targets = [(page.parent / path if path else page, anchor) for path, anchor in links]
    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [link for link in targets if link[1] and link[1] not in headings(link[0])] == []
