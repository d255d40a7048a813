"""Each package says what it is for and what it imports."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "conspectus"
PACKAGES = sorted(each.parent for each in PACKAGE.glob("*/__init__.py"))
EVERYWHERE = {"deferred", "errors", "model", "settings", "private"}


def imported(package: Path) -> set[str]:
    """Our other packages that the modules of a package import, but for those that all may."""
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("conspectus"):
                parts = (node.module or "").split(".")
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found - EVERYWHERE - {package.name}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_the_docstring_of_a_package_says_what_it_imports(package: Path) -> None:
    said = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = re.search(r"Imports ([a-z_, \n]+)\.", said)
    assert named is not None, said
    assert set(re.findall(r"\w+", named[1])) - {"and", "model", "errors"} == imported(package)


def test_dataclasses_are_deferred() -> None:
    standard = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    modules = {path for path in PACKAGE.rglob("*.py") if standard.search(path.read_text(encoding="utf-8"))}
    assert modules == set(), "import dataclass from conspectus.deferred"
