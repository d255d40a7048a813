"""Tests can be found: those of a module by its name, those of whole engines by their service."""

from collections.abc import Iterable
from pathlib import Path

from tests.style.sources import PACKAGE, ROOT

from conspectus.operations.operation import SERVICES

ENGINE_PARTS = {*SERVICES.values(), "chat", "engine", "tasks"}
"""The services of an engine, and the engine itself."""


def module_names(folder: Path) -> set[str]:
    """The names of the modules and packages of a folder."""
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


def is_named_after(file: str, names: Iterable[str]) -> bool:
    """Whether a file of tests has one of the names, or begins with one and says the aspect."""
    return any(file == f"test_{name}.py" or file.startswith(f"test_{name}_") for name in names)


def test_unit_tests_are_named_after_their_module() -> None:
    unit = ROOT / "tests" / "unit"
    offences = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(unit.rglob("test_*.py"))
        if not is_named_after(path.name, module_names(PACKAGE / path.parent.relative_to(unit)))
    ]
    assert offences == []


def test_tests_of_engines_are_named_after_their_service() -> None:
    files = sorted(path.name for path in (ROOT / "tests" / "engine").rglob("test_*.py"))
    assert [name for name in files if not is_named_after(name, ENGINE_PARTS)] == []


def test_planted_file_names_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "boosts.py").touch()
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "__init__.py").touch()
    names = module_names(tmp_path)
    assert names == {"boosts", "chats"}
    assert is_named_after("test_boosts.py", names) and is_named_after("test_chats_empty.py", names)
    assert not is_named_after("test_boosting.py", names)
    assert not is_named_after("test_boosts.py", module_names(tmp_path / "nowhere"))
