"""Modules of optional dependencies, which are imported when they are first needed."""

import importlib
from typing import Any

from conspectus.errors import MissingExtra


def optional(module: str, extra: str, package: str) -> Any:
    """A module. Raises MissingExtra, whose message installs the package by an extra of ours."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(extra, package) from error
