"""Names say what a thing is. The counts of vague ones may only fall."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.style.sources import PYTHON_FILES, ROOT, TYPESCRIPT_FILES, nodes, read, syntax_tree

VAGUE: Final = {
    *("each", "found", "place", "asked", "told", "said", "known", "made", "taken", "kept", "held", "whole"),
    *("own", "given", "chosen", "shown", "wanted", "called"),
}
"""Participles and pronouns that do not say what a variable holds."""
COLORLESS: Final = {"item", "result", "data", "value", "entry", "thing", "obj", "res", "ret"}
"""Nouns that fit everything: no better than a vague word."""
MAX_PER_THOUSAND_LINES: Final = {
    "src": {"vague": 0.3, "colorless": 5.9},
    "tests": {"vague": 0.2, "colorless": 2.9},
    "benchmarks": {"vague": 0.3, "colorless": 5.5},
    "scripts": {"vague": 0.1, "colorless": 2.5},
    "console/src": {"vague": 0.1, "colorless": 10.8},
    "clients/typescript": {"vague": 0.1, "colorless": 18.8},
}
"""Names per 1,000 lines. Lower a number when names were mended; the goal of `vague` is 3."""
TYPESCRIPT_COMMENT: Final = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
TYPESCRIPT_BINDING: Final = re.compile(
    r"\b(?:const|let)\s+([^=;]+?)\s*(?:=|;|\bof\b)"  # a name or a pattern, with its type
    r"|\bfunction\b[^(]*\(([^)]*)\)"
    r"|\(([^()]*)\)(?::[^=(){]*)?\s*=>"
    r"|\b(\w+)\s*=>"
)
"""Declarations and lists of parameters. A type of the same words is counted, too: it names a property."""
MAX_MODULES_WITH_SEAMS: Final = 4
"""Modules with two groups of constants or more between their functions; the goal is 10."""


def variables(source: str) -> Iterator[str]:
    """Yield the variables and parameters that a source binds, once for each place that binds one."""
    for node in nodes(source):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name.strip("_")


def typescript_variables(source: str) -> Iterator[str]:
    """Yield the names in the declarations and lists of parameters of a TypeScript source."""
    for match in TYPESCRIPT_BINDING.finditer(TYPESCRIPT_COMMENT.sub("", source)):
        yield from re.findall(r"(?<!\.)\b[A-Za-z_$][\w$]*", match[match.lastindex or 0])


def per_thousand_lines(paths: list[Path], words: set[str]) -> float:
    """How many variables of 1,000 lines have one of these names."""
    count, lines = 0, 0
    for path in paths:
        source = read(path)
        names = variables(source) if path.suffix == ".py" else typescript_variables(source)
        count += sum(name in words for name in names)
        lines += source.count("\n")
    return 1_000 * count / lines


def constant_groups(source: str) -> int:
    """How many groups of constants stand behind the first function or class of a module."""
    groups, is_behind, in_group = 0, False, False
    for node in syntax_tree(source).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                is_behind, in_group = True, False
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if is_behind and not in_group and re.fullmatch("_?[A-Z][A-Z0-9_]*", name):
                    groups, in_group = groups + 1, True
    return groups


def test_vague_names_become_fewer() -> None:
    offences = {}
    for folder, maximums in MAX_PER_THOUSAND_LINES.items():
        files = (*PYTHON_FILES, *TYPESCRIPT_FILES)
        paths = [path for path in files if path.is_relative_to(ROOT / folder)]
        for kind, words in (("vague", VAGUE), ("colorless", COLORLESS)):
            count = per_thousand_lines(paths, words)
            if count > maximums[kind]:
                offences[f"{kind} names in {folder}"] = f"{count:.2f} of 1,000 lines, over {maximums[kind]}"
    assert offences == {}


def test_modules_are_one_concept() -> None:
    paths = [path for path in PYTHON_FILES if path.is_relative_to(ROOT / "src")]
    seams = [path.relative_to(ROOT).as_posix() for path in paths if constant_groups(read(path)) > 1]
    assert len(seams) <= MAX_MODULES_WITH_SEAMS, seams


def test_planted_names_are_counted() -> None:
    source = "def f(each, *, _found):\n    place = [value for value in each]\n    return place.told\n"
    assert [name for name in variables(source) if name in VAGUE] == ["each", "found", "place"]
    assert [name for name in variables(source) if name in COLORLESS] == ["value"]


@pytest.mark.parametrize(
    "source",
    [
        "const found = 1;",
        "let kept: number | undefined;",
        "const [chosen, choose] = useState(1);",
        "const { hits: found } = page;",
        "for (const each of rows) show(each.name);",
        "rows.map((each) => each.name);",
        "rows.map(each => each.name);",
        "rows.map(([each, number]) => number);",
        "const page = async (given: Json, at = 0): Promise<Page> => load(at);",
        "async function read({ at: given }: Place, signal: AbortSignal) {}",
        "function View({\n  shown,\n}: {\n  lines: readonly Line[];\n}) {}",
    ],
)
def test_planted_typescript_names_are_counted(source: str) -> None:
    assert len([name for name in typescript_variables(source) if name in VAGUE]) == 1


def test_planted_properties_and_words_are_not_counted() -> None:
    source = "// each one found\nconst page = result.found;\nconst text = rows.map((row) => row.whole);\n"
    assert [name for name in typescript_variables(source) if name in VAGUE | COLORLESS] == []


def test_planted_seams_are_counted() -> None:
    source = "A = 1\ndef f(): ...\nB = 1\nC: int = 2\nclass D: ...\nE = 3\nnames = []\n"
    assert constant_groups(source) == 2
