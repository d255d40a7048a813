"""The package of connectors is built on what is public, and each of its connectors has a page and a form."""

import ast
import tomllib
from pathlib import Path

import pytest

import conspectus
from conspectus import Settings

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {"conspectus", "conspectus.connectors", "conspectus.errors"}
MODULES = sorted((ROOT / "connectors" / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "connectors" / "pyproject.toml").read_text("utf-8"))["project"]
KINDS = sorted(PROJECT["entry-points"]["conspectus.connectors"])


def list_imports(path: Path) -> set[str]:
    """The modules of Conspectus that a module imports."""
    tree = ast.parse(path.read_text("utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {module for module in modules if module.split(".")[0] == "conspectus"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_it_imports_what_is_public(path: Path) -> None:
    assert list_imports(path) <= PUBLIC


def test_a_planted_import_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("from conspectus.model.records import NewDocument\nimport conspectus.engine\n")
    assert list_imports(planted) == {"conspectus.model.records", "conspectus.engine"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_connector_has_a_page(kind: str) -> None:
    page = (ROOT / "docs" / "guides" / f"connector-{kind}.md").read_text("utf-8")
    assert "conspectus connections add" in page
    assert f" {kind} --option" in page


async def test_each_connector_has_a_form(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        installed = {kind.name: kind for kind in await engine.connections.list_connectors()}
    assert set(KINDS) <= installed.keys()
    for name in KINDS:
        assert installed[name].failure is None
        assert all(option.help for option in installed[name].options)
        assert any(option.secret for option in installed[name].options)
