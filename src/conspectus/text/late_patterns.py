"""Regular expressions that are compiled when they are first used: most programs need few of them."""

import re
from collections.abc import Callable
from typing import Any, cast

import regex


class _Late:
    """Stands for a pattern; each method is looked up once."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled(), name)
        vars(self)[name] = value
        return value


def re_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern of the standard library."""
    return cast(re.Pattern[str], _Late(lambda: re.compile(text, flags)))


def regex_pattern(text: str, flags: int = 0) -> regex.Pattern[str]:
    """A pattern of the library regex, which knows properties of characters."""
    return cast(regex.Pattern[str], _Late(lambda: regex.compile(text, flags)))
