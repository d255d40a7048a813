"""The size budget that ruff does not check: lines of files and functions."""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 600
FUNCTION_LINES = 60
TEST_FUNCTION_LINES = 40

SOURCES = sorted(
    path for folder in ("src", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)
PACKAGE = [path for path in SOURCES if path.is_relative_to(ROOT / "src")]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@functools.cache
def function_lines(source: str) -> dict[str, int]:
    """Lines of each function from `def` to its end, its own docstring left out."""
    lines = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node, clean=False) is not None
            docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            lines[f"{node.name}:{node.lineno}"] = (node.end_lineno or 0) - node.lineno + 1 - docstring
    return lines


def too_long(source: str, limit: int) -> list[str]:
    return [f"{name} has {lines} lines" for name, lines in function_lines(source).items() if lines > limit]


def function_of(lines: int) -> str:
    return "def planted():\n" + "    x = 1\n" * (lines - 1)


def offending(paths: Iterable[Path], limit: int) -> dict[str, list[str]]:
    found = {str(path.relative_to(ROOT)): too_long(path.read_text(encoding="utf-8"), limit) for path in paths}
    return {path: functions for path, functions in found.items() if functions}


def test_files_are_short() -> None:
    lines = {str(path): path.read_text(encoding="utf-8").count("\n") for path in SOURCES + TESTS}
    assert {path: count for path, count in lines.items() if count > FILE_LINES} == {}


def test_functions_are_short() -> None:
    assert offending(SOURCES, FUNCTION_LINES) == {}


def test_test_functions_are_short() -> None:
    suites = [path for path in TESTS if path.parent.name in {"contracts", "support"}]
    assert offending(suites, FUNCTION_LINES) == {}
    assert offending(set(TESTS) - set(suites), TEST_FUNCTION_LINES) == {}


def test_a_long_function_is_found() -> None:
    assert too_long(function_of(FUNCTION_LINES), FUNCTION_LINES) == []
    assert too_long(function_of(FUNCTION_LINES + 1), FUNCTION_LINES) == ["planted:1 has 61 lines"]
    assert too_long("class A:\n    async def f(self):\n        a = 1\n        b = 2\n", 2) == [
        "f:2 has 3 lines"
    ]


def test_a_docstring_costs_nothing() -> None:
    assert function_lines('def f():\n    """One\n\n    two."""\n    return 1\n') == {"f:1": 2}
