"""Errors are caught by name; the few borders that answer for any fault are listed with their reason."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "conspectus"
BROAD = {"Exception", "BaseException"}
BORDERS = {
    "mcp/server.py": "a tool that fails is an MCP error, and its traceback goes to the log",
    "providers/tokenizers.py": "the library raises a plain Exception for a malformed file",
    "web/app.py": "a request that fails is answered 500, and its traceback goes to the log",
}


def broad(source: str) -> list[int]:
    """Lines of handlers that catch any exception."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        caught: list[ast.expr | None] = []
        if isinstance(node, ast.ExceptHandler):
            caught = [*node.type.elts] if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            caught = [*node.args]
        if any(each is None or ast.unparse(each) in BROAD for each in caught):
            lines.append(node.lineno)
    return lines


def test_errors_are_caught_by_name() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): broad(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: len(lines) for name, lines in found.items() if lines} == dict.fromkeys(BORDERS, 1)


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException", " (OSError, Exception)"])
def test_a_broad_handler_is_found(caught: str) -> None:
    assert broad(f"try:\n    f()\nexcept{caught}:\n    pass") == [3]


def test_a_broad_suppression_is_found() -> None:
    assert broad("with contextlib.suppress(Exception):\n    f()") == [1]


def test_a_handler_by_name_is_no_fault() -> None:
    assert broad("try:\n    f()\nexcept (OSError, ValueError) as error:\n    raise X from error") == []
