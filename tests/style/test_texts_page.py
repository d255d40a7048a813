"""docs/reference/texts.md is what the rules for text columns make."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "texts.md").read_text(encoding="utf-8")


def test_the_page_is_not_stale() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "texts_page.py"))["make_page"]()
    assert page == PAGE, "run `make docs`"
