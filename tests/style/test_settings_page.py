"""docs/settings.md is what the settings and their help make."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_page_is_not_stale() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "settings_page.py"))["page"]()
    assert made == PAGE, "run `make docs`"


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
