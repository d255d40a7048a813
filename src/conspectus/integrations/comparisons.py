"""Filters on metadata by their names in other libraries."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from conspectus.model.filter import And, Between, Eq, Field, Filter, In, Not, Or

Comparison: TypeAlias = Callable[[Field, Any], Filter]
COMPARISONS: Mapping[str, Comparison] = {
    "==": Eq,
    "!=": lambda path, value: Not(Eq(path, value)),
    ">": lambda path, value: And((Between(path, low=value), Not(Eq(path, value)))),
    ">=": lambda path, value: Between(path, low=value),
    "<": lambda path, value: Between(path, high=value),
    "<=": lambda path, value: Or((Between(path, high=value), Eq(path, value))),
    "in": lambda path, value: In(path, tuple(value)),
    "not in": lambda path, value: Not(In(path, tuple(value))),
}
"""Filters on metadata by their names in other libraries."""
