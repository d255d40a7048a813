"""Types of requests, as they follow from the methods of the operations."""

from types import NoneType
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from conspectus.operations.table import OPERATIONS
from conspectus.web.operation_schemas import request_type


def test_a_parameter_that_may_be_none_may_be_null() -> None:
    """The client sends each argument, None as null."""
    kinds = {
        (operation.name, leaf.name): request_type(leaf.annotation)
        for operation in OPERATIONS.values()
        for parameter in operation.parameters
        for leaf in parameter.leaves
        if leaf.location == "body" and NoneType in get_args(leaf.hint)
    }
    assert len(kinds) > 50
    assert [name for name, kind in kinds.items() if not accepts_null(kind)] == []


def accepts_null(kind: Any) -> bool:
    try:
        TypeAdapter(kind).validate_python(None)
    except ValidationError:
        return False
    return True
