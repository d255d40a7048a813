"""The limits that SECURITY.md names are settings."""

import re
from dataclasses import fields
from pathlib import Path

from conspectus.settings import PREFIX, Settings

PAGE = Path(__file__).resolve().parents[2] / "SECURITY.md"


def test_every_limit_that_is_named_is_a_setting() -> None:
    named = set(re.findall(rf"`({PREFIX}\w+)`", PAGE.read_text(encoding="utf-8")))
    assert named
    assert named <= {PREFIX + field.name.upper() for field in fields(Settings)}
