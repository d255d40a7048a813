"""Behaviour does not hide in the order of inheritance: no class of ours has more than three above it."""

import ast
from collections.abc import Mapping, Sequence

from tests.style.sources import MODULES, nodes, read

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
