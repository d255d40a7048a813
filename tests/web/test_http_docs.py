"""docs/reference/http.md names every route with what it does, and every error with its status and code."""

import re
from collections.abc import Iterator
from pathlib import Path

from conspectus import errors
from conspectus.errors import ConspectusError
from conspectus.settings import Settings
from conspectus.web.problem_details import CODES, status_of
from tests.web.conftest import Site

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def routes(site: Site) -> list[str]:
    """The rows of the table, from the document."""
    rows = []
    for path, methods in site.app.openapi()["paths"].items():
        for method, route in methods.items():
            place = path.removeprefix("/api/v1")
            rows.append(f"| {route['tags'][0]} | {method.upper()} | `{place}` | {route['description']} |")
    return rows


def kinds(kind: type[ConspectusError] = ConspectusError) -> Iterator[type[ConspectusError]]:
    """Every class of error, those below a class after it."""
    for each in kind.__subclasses__():
        yield each
        yield from kinds(each)


def problems() -> list[str]:
    """The rows of the table, from the one in the code; what only clients raise is left out."""
    named = [each for each in kinds() if "code" in vars(each)]
    known = [each for each in named if each is not errors.ServerUnavailable]
    rows = [f"| {status_of(each)} | `{each.code}` | {first_sentence(each)} |" for each in known]
    rows += [f"| {status} | `{code}` |" for status, code in CODES.items() if status not in {400, 404}]
    return rows


def first_sentence(kind: type[ConspectusError]) -> str:
    return re.split(r"[.;](?:\s|$)", " ".join((kind.__doc__ or "").split()))[0].replace("`", "")


async def test_every_route_is_documented(site: Site) -> None:
    assert [row for row in routes(site) if row not in DOCS] == []


async def test_no_route_is_documented_that_does_not_exist(site: Site) -> None:
    documented = re.findall(r"^\| [a-z]+ \| [A-Z]+ \| `/.*$", DOCS, re.MULTILINE)
    assert [row for row in documented if row not in routes(site)] == []


def test_every_error_is_documented() -> None:
    assert [row for row in problems() if row not in DOCS] == []


def test_every_setting_that_is_named_exists() -> None:
    named = {name.lower() for name in re.findall(r"CONSPECTUS_([A-Z_]+)", DOCS)}
    assert named <= set(Settings.__dataclass_fields__)
