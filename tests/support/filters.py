"""Random conditions: those that can match nothing by their form are refused, and become one that is empty."""

from typing import Any

from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.model.filter import Filter, Leaf, Or


def build_leaves(kind: type[Leaf], *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    """Conditions of one kind with random fields."""

    def build(*arguments: Any) -> Filter:
        try:
            return kind(*arguments)
        except InvalidInput:
            return Or()

    return st.builds(build, *fields)
