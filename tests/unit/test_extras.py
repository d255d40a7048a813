"""The extras: `all` has them, and docs/get-started/install.md lists them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
LEFT_OUT = {"all", "gliner", "testing"}


def test_all_installs_every_extra_but_those_left_out() -> None:
    named = [name for each in EXTRAS["all"] for name in re.findall(r"[\w-]+", each.partition("[")[2])]
    assert sorted(named) == sorted(set(EXTRAS) - LEFT_OUT)


def test_every_extra_is_documented() -> None:
    page = (ROOT / "docs" / "get-started" / "install.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)) == set(EXTRAS)
