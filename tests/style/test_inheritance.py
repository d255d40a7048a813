"""Behaviour does not hide in the order of inheritance: no class of ours has more than three above it."""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.style.sources import MODULES, PYTHON_FILES, nodes, read

MAX_ANCESTORS = 3
FOREIGN = frozenset({"BaseModel", "Exception", "Protocol"})
"""What derives from these is not ours to arrange: schemas, errors, and types that describe."""


def bases_of(sources: Sequence[str]) -> Mapping[str, set[str]]:
    """The names of the direct bases of every class; classes of one name count together."""
    bases: dict[str, set[str]] = {}
    for source in sources:
        for node in nodes(source):
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
                bases.setdefault(node.name, set()).update(names - {node.name})
    return bases


def above(name: str, bases: Mapping[str, set[str]]) -> set[str]:
    """Every class that one inherits from, of this package and of others."""
    ancestors: set[str] = set()
    waiting = [name]
    while waiting:
        new = bases.get(waiting.pop(), set()) - ancestors
        ancestors |= new
        waiting += new
    return ancestors


def too_deep(bases: Mapping[str, set[str]]) -> set[str]:
    ancestors = {name: above(name, bases) for name in bases}
    return {
        name
        for name, classes in ancestors.items()
        if len(classes & bases.keys()) > MAX_ANCESTORS and not classes & FOREIGN
    }


def test_no_class_has_more_than_three_above_it() -> None:
    assert too_deep(bases_of([read(path) for path in MODULES])) == set()


def test_what_is_too_deep_is_found() -> None:
    chain = "class A: ...\nclass B(A): ...\nclass C(B): ...\nclass D(C[int]): ...\nclass E(x.D): ..."
    assert too_deep(bases_of([chain])) == {"E"}
    assert too_deep(bases_of([chain.replace("A:", "A(Protocol):")])) == set()


def shadowed_tests(sources: Sequence[str]) -> set[str]:
    """Tests of which another base of the same class has one of that name, so that one of them never runs."""
    classes = [node for source in sources for node in nodes(source) if isinstance(node, ast.ClassDef)]
    tests = {
        node.name: [part.name for part in node.body if getattr(part, "name", "").startswith("test_")]
        for node in classes
    }
    shadowed: set[str] = set()
    for node in classes:
        counts = Counter(test for base in node.bases for test in tests.get(ast.unparse(base), ()))
        shadowed |= {f"{node.name}.{test}" for test, count in counts.items() if count > 1}
    return shadowed


def test_no_contract_hides_a_test_of_another() -> None:
    contracts = [read(path) for path in PYTHON_FILES if path.parent.name in {"contract", "contracts"}]
    assert len(contracts) > 50
    assert shadowed_tests(contracts) == set()


def test_a_hidden_test_is_found() -> None:
    source = "class A:\n def test_x(self): ...\nclass B:\n def test_x(self): ...\nclass C(A, B): ..."
    assert shadowed_tests([source]) == {"C.test_x"}
