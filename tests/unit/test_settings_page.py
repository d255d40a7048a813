"""docs/settings.md and docs/operations.md name every setting once, with its default."""

import re
from pathlib import Path

from conspectus.settings import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| `CONSPECTUS_([A-Z_]+)` \| (`[^`]*`|empty) \| ([^|]+) \|$", re.MULTILINE)


def test_every_setting_is_in_one_table_with_its_default() -> None:
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("settings.md", "operations.md")]
    rows = [row for page in pages for row in ROW.findall(page)]
    told = {name.lower(): "" if value == "empty" else value.strip("`") for name, value, _ in rows}
    assert len(told) == len(rows)
    assert told == {name: str(getattr(Settings(), name)) for name in Settings.__dataclass_fields__}


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", (DOCS / "settings.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
