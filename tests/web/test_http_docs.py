"""docs/reference/http.md names settings and routes that exist."""

import re
from pathlib import Path
from typing import Any

from conspectus.settings import Settings

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


async def test_every_route_that_is_named_with_its_method_exists(openapi: dict[str, Any]) -> None:
    named = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)`", DOCS)
    paths = openapi["paths"]
    existing = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in paths.items()
        for method in methods
    }
    assert named and set(named) <= existing


def test_every_setting_that_is_named_exists() -> None:
    named = {name.lower() for name in re.findall(r"CONSPECTUS_([A-Z_]+)", DOCS)}
    assert named <= set(Settings.__dataclass_fields__)
