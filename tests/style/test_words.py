"""Words and constructs that have no place in the project, each with a planted sample that is caught."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "conspectus"
EVERY_FILE = sorted(
    path for folder in ("src", "scripts", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")
)
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
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return [comment for comment in found if words.search(comment)]


def unfinished(source: str) -> list[str]:
    return comments(source, UNFINISHED)


def silenced(source: str) -> list[str]:
    return comments(source, SILENCED)


def printing(source: str) -> list[int]:
    nodes = ast.walk(ast.parse(source)) if "print" in source else ()
    return [n.lineno for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "id", None) == "print"]


def vague_names(path: Path) -> list[str]:
    return [part for part in path.with_suffix("").parts if part.lower() in VAGUE]


def mocked(source: str) -> list[int]:
    """Lines that use a mock object, or monkeypatch anything but the environment and the working folder."""
    nodes = ast.walk(ast.parse(source)) if PATCHES.search(source) else ()
    return [node.lineno for node in nodes if _is_mock(node)]


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
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
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
        for found in check(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}: {found}"


def in_package() -> list[Path]:
    return [path for path in EVERY_FILE if path.is_relative_to(PACKAGE)]


def in_tests() -> list[Path]:
    return [path for path in EVERY_FILE if path.is_relative_to(ROOT / "tests")]


def test_nothing_is_left_unfinished() -> None:
    assert list(findings(unfinished, EVERY_FILE)) == []


def test_the_package_silences_no_check() -> None:
    assert list(findings(silenced, in_package())) == []


def test_only_the_command_line_prints() -> None:
    paths = [path for path in in_package() if not path.is_relative_to(PACKAGE / "cli")]
    assert list(findings(printing, paths)) == []


def test_every_file_says_what_it_holds() -> None:
    assert [path for path in EVERY_FILE if vague_names(path.relative_to(ROOT))] == []


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


OTHER_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        """
    alerting alike allowances answering arms arrange asking attacks border carried carrying chatting
    choose chore chores condemned condensing connecting conversing copying crew desk disarm drawings eyes
    endings erasing evaluating faces fate fates filling following forgetting formulas fuse gathering
    grantee granting graphing happening happenings heard heir histories homes inserting keeper keeping
    leading ledger looked looking merging moving naming neighbour neighbours offer orders
    overheard paper parting patience pictures proven reading recalled recollection refusals
    remembering reminding renewing replays reporting resemblance room said salience scribe searching
    seeing serving shelf shelves showing sight situation sketch spoken standing stating streamed stretch
    summarise summarised summarising sums taken taking talk tidy told transacting unpacking upkeep
    vendors viewing walk wanted watching whom whose working writing
    """,
    )
)
"""What modules and public classes were called before they had the terms of docs/concepts/glossary.md."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def other_words(path: Path) -> list[str]:
    """The module and the public classes whose names have a word that the glossary has another one for."""
    classes = [
        node.name
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    words = {path.stem: path.stem.split("_")}
    words |= {name: [part.lower() for part in re.findall("[A-Z][a-z]+", name)] for name in classes}
    return [name for name, parts in words.items() if OTHER_WORDS & set(parts)]


ELLIPTICAL = frozenset({"alike", "eyes", "heard", "overheard", "told", "wanted", "whom", "whose"})
"""Words of function, method, field and constant names that leave out what they are about."""


def elliptical(path: Path) -> list[str]:
    """The names in a module and its classes that have one of these words; private ones too."""
    tree = parsed(path)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    found: list[str] = []
    for node in (child for parent in (tree, *classes) for child in parent.body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found.append(name)
    return [each for each in found if ELLIPTICAL & set(re.findall("[a-z]+", each.lower()))]


def test_names_say_what_they_are_about() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in elliptical(path)
    }
    assert found == set()


def test_an_elliptical_name_is_found(tmp_path: Path) -> None:
    module = tmp_path / "a.py"
    module.write_text("class A:\n    def _told(self): ...\n\nHEARD = 1\nunheard = 2\n", encoding="utf-8")
    assert sorted(elliptical(module)) == ["HEARD", "_told"]


def test_names_have_the_terms_of_the_glossary() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in other_words(path)
    }
    assert found == set()


def test_a_word_that_has_a_better_one_is_found(tmp_path: Path) -> None:
    module = tmp_path / "wiki_shelf.py"
    module.write_text("class OpenShelves: ...\nclass _Told: ...\nclass Store: ...\n", encoding="utf-8")
    assert other_words(module) == ["wiki_shelf", "OpenShelves"]
