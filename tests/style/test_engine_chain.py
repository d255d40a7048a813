"""The classes that the engine is a chain of share one space of names: none may hide another's by chance."""

import ast
import inspect
from collections import defaultdict

import pytest

from conspectus.client.engine import RemoteEngine
from conspectus.engine import Engine

NATURAL = {"__init__", "__module__", "__doc__", "__dict__", "__weakref__", "__firstlineno__"}


def goes_on(method: object) -> bool:
    """Whether a method asks the one that it stands before."""
    source = inspect.unwrap(method) if callable(method) else getattr(method, "func", method)
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(source)))
    return any(isinstance(node, ast.Name) and node.id == "super" for node in ast.walk(tree))


@pytest.mark.parametrize("engine", [Engine, RemoteEngine])
def test_no_class_of_the_chain_hides_what_another_has(engine: type) -> None:
    owners: dict[str, list[type]] = defaultdict(list)
    for each in engine.__mro__[:-1]:
        for name in vars(each).keys() - NATURAL:
            if not name.startswith("__"):
                owners[name].append(each)
    hidden = [
        f"{name} of {classes[1].__name__} is hidden by {classes[0].__name__}"
        for name, classes in owners.items()
        if len(classes) > 1 and not goes_on(vars(classes[0])[name])
    ]
    assert hidden == []
