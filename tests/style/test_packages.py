"""Each package says what it is for and what it imports."""

import ast
import re
from pathlib import Path

from tests.style.sources import MODULES, PACKAGE, nodes, read, syntax_tree

PACKAGES = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
EVERYWHERE = {"deferred", "errors", "model", "settings", "private"}


def imported(package: Path) -> set[str]:
    """Our other packages that the modules of a package import, but for those that all may."""
    names = set()
    for path in package.rglob("*.py"):
        for node in nodes(read(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("conspectus"):
                parts = (node.module or "").split(".")
                names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names - EVERYWHERE - {package.name}


def documented_imports(package: Path) -> set[str] | None:
    """What the docstring of a package says that it imports, None where it does not say so."""
    docstring = ast.get_docstring(syntax_tree(read(package / "__init__.py"))) or ""
    sentence = re.search(r"Imports ([a-z_, \n]+)\.", docstring)
    return None if sentence is None else set(re.findall(r"\w+", sentence[1])) - {"and", "model", "errors"}


def test_the_docstring_of_a_package_says_what_it_imports() -> None:
    documented = {package.name: documented_imports(package) for package in PACKAGES}
    assert documented == {package.name: imported(package) for package in PACKAGES}


def test_dataclasses_are_deferred() -> None:
    standard = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    modules = [path for path in MODULES if standard.search(read(path))]
    assert modules == [], "import dataclass from conspectus.deferred"
