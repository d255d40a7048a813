"""Errors are caught by name; the few borders that answer for any fault are listed with their reason."""

import ast

import pytest
from tests.style.sources import MODULES, name_of, nodes, read

BROAD = {"Exception", "BaseException"}
BORDERS = {
    "mcp/server.py": "a tool that fails is an MCP error, and its traceback goes to the log",
    "providers/tokenizers.py": "the library raises a plain Exception for a malformed file",
    "web/app.py": "a request that fails is answered 500, and its traceback goes to the log",
}


def broad(source: str) -> list[int]:
    """Lines of handlers that catch any exception."""
    lines = []
    for node in nodes(source):
        caught: list[ast.expr | None] = []
        if isinstance(node, ast.ExceptHandler):
            caught = [*node.type.elts] if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            caught = [*node.args]
        if any(error is None or ast.unparse(error) in BROAD for error in caught):
            lines.append(node.lineno)
    return lines


def test_errors_are_caught_by_name() -> None:
    lines_by_module = {name_of(path): broad(read(path)) for path in MODULES}
    assert {name: len(lines) for name, lines in lines_by_module.items() if lines} == dict.fromkeys(BORDERS, 1)


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException", " (OSError, Exception)"])
def test_a_broad_handler_is_found(caught: str) -> None:
    assert broad(f"try:\n    f()\nexcept{caught}:\n    pass") == [3]


def test_a_broad_suppression_is_found() -> None:
    assert broad("with contextlib.suppress(Exception):\n    f()") == [1]


def test_a_handler_by_name_is_no_fault() -> None:
    assert broad("try:\n    f()\nexcept (OSError, ValueError) as error:\n    raise X from error") == []
