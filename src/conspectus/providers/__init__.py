"""Embedders, rerankers, chat models and tokenizers, local and hosted.

Imports ports and text.
"""

import importlib
from typing import Any

from conspectus.errors import MissingExtra
from conspectus.settings import forbid_telemetry

# A package is imported before its modules, and so before any library that they bring.
forbid_telemetry()


def optional(module: str, extra: str, package: str) -> Any:
    """A module of an optional dependency, imported when it is first needed.

    Raises MissingExtra, whose message installs the package by an extra of ours.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(extra, package) from error
