"""Syntax trees of all files are no garbage: nothing looks for some among their millions of nodes."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def keep_syntax_trees() -> Iterator[None]:
    """Collect no garbage while the rules are tested, and none of their trees at the end."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
