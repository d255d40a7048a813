"""Words and constructs that have no place in the project, each with a planted sample that is caught."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.style.sources import MODULES, PACKAGE, PYTHON_FILES, ROOT, nodes, read, statements

VAGUE = {
    "utils",
    "util",
    "helpers",
    "helper",
    "misc",
    "common",
    "shared",
    "stuff",
    "tools",
    "manager",
    "managers",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SILENCED = re.compile(r"\b(type:\s*ignore|noqa)\b")
MOCKS = {"mock", "Mock", "MagicMock", "AsyncMock", "mocker", "create_autospec"}
EXPECTING = {"raises", "warns", "fail"}
ASSERTIONS = ("assert_", "check_", "expect")
CALLS_DEEP = 3
"""A test may call a function that calls another one, which asserts."""
PATCHES = re.compile("[Mm]ock|monkeypatch|create_autospec")
PATCHING = {"setattr", "setitem", "delattr", "delitem"}


def comments(source: str, words: re.Pattern[str]) -> list[str]:
    """The comments with one of these words; few files have any, and reading tokens takes long."""
    if not words.search(source):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return [text for text in texts if words.search(text)]


def unfinished(source: str) -> list[str]:
    return comments(source, UNFINISHED)


def silenced(source: str) -> list[str]:
    return comments(source, SILENCED)


def printing(source: str) -> list[int]:
    calls = nodes(source) if "print" in source else ()
    return [n.lineno for n in calls if isinstance(n, ast.Call) and getattr(n.func, "id", None) == "print"]


def vague_names(path: Path) -> list[str]:
    return [part for part in path.with_suffix("").parts if part.lower() in VAGUE]


def mocked(source: str) -> list[int]:
    """Lines that use a mock object, or monkeypatch anything but the environment and the working folder."""
    calls = nodes(source) if PATCHES.search(source) else ()
    return [node.lineno for node in calls if _is_mock(node)]


def _is_mock(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.alias(name=name):
            return name in MOCKS
        case ast.ImportFrom(module="unittest.mock") | ast.Attribute(value=ast.Name(id="mock")):
            return True
        case ast.Attribute(value=ast.Name(id="monkeypatch"), attr=attribute):
            return attribute in PATCHING
    return False


def without_assertion(source: str) -> list[str]:
    """Names of test functions that neither assert nor call a function of the same file that does."""
    functions = [
        statement
        for statement in statements(source)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    asserting: set[str] = set()
    for _ in range(CALLS_DEEP):
        asserting |= {function.name for function in functions if _asserts(function, asserting)}
    return [f.name for f in functions if f.name.startswith("test") and f.name not in asserting]


def _asserts(function: ast.AST, asserting: set[str]) -> bool:
    for node in ast.walk(function):
        match node:
            case ast.Assert():
                return True
            case ast.Call(func=ast.Attribute(attr=name)) if name in EXPECTING or name.startswith("assert_"):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in asserting or name.startswith(ASSERTIONS):
                return True
    return False


def findings(check: Callable[[str], list[str] | list[int]], paths: list[Path]) -> Iterator[str]:
    for path in paths:
        for finding in check(read(path)):
            yield f"{path.relative_to(ROOT)}: {finding}"


def in_tests() -> list[Path]:
    return [path for path in PYTHON_FILES if path.is_relative_to(ROOT / "tests")]


def test_nothing_is_left_unfinished() -> None:
    assert list(findings(unfinished, PYTHON_FILES)) == []


def test_the_package_silences_no_check() -> None:
    assert list(findings(silenced, MODULES)) == []


def test_only_the_command_line_prints() -> None:
    paths = [path for path in MODULES if not path.is_relative_to(PACKAGE / "cli")]
    assert list(findings(printing, paths)) == []


def test_every_file_says_what_it_holds() -> None:
    assert [path for path in PYTHON_FILES if vague_names(path.relative_to(ROOT))] == []


def test_tests_use_the_real_thing() -> None:
    assert list(findings(mocked, in_tests())) == []


def test_tests_assert_something() -> None:
    assert list(findings(without_assertion, in_tests())) == []


@pytest.mark.parametrize(
    ("check", "planted"),
    [
        (unfinished, "x = 1  # TO" + "DO: later\n"),
        (unfinished, "# FIX" + "ME\n"),
        (silenced, "import x  # type: " + "ignore[import]\n"),
        (silenced, "import x  # no" + "qa: F401\n"),
        (printing, "def f():\n    print('x')\n"),
        (mocked, "from unittest import mock\n"),
        (mocked, "from unittest.mock import patch\n"),
        (mocked, "def test_x(mocker):\n    assert True\n"),
        (mocked, "def test_x(monkeypatch):\n    monkeypatch.setattr('a.b', 1)\n"),
        (without_assertion, "def test_nothing():\n    f()\n"),
        (without_assertion, "def post():\n    assert x\n\ndef test_x():\n    client.post()\n"),
    ],
)
def test_a_planted_offence_is_found(check: Callable[[str], list[str]], planted: str) -> None:
    assert len(check(planted)) == 1


@pytest.mark.parametrize(
    ("check", "allowed"),
    [
        (unfinished, "tasks = 'TO" + "DO'\n"),
        (printing, "console.print('x')\n"),
        (mocked, "def test_x(monkeypatch):\n    monkeypatch.setenv('A', '1')\n"),
        (without_assertion, "def agree():\n    assert x\n\ndef test_x():\n    agree()\n"),
        (without_assertion, "def test_x():\n    with pytest.raises(E):\n        f()\n"),
    ],
)
def test_what_is_allowed_is_not_found(check: Callable[[str], list[str]], allowed: str) -> None:
    assert check(allowed) == []


def test_a_vague_name_is_found() -> None:
    assert vague_names(Path("src/conspectus/text/utils.py")) == ["utils"]
    assert vague_names(Path("src/conspectus/helpers/a.py")) == ["helpers"]
    assert vague_names(Path("src/conspectus/text/splitter.py")) == []
