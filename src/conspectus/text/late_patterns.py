"""Regular expressions that are compiled on first use, as most programs use few of them."""

import re
from collections.abc import Callable
from typing import Any, cast

import re2
import regex


class _LazyPattern:
    """A pattern that is compiled on first use."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled(), name)
        vars(self)[name] = value
        return value


def re_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern of the module re."""
    return cast(re.Pattern[str], _LazyPattern(lambda: re.compile(text, flags)))


def re2_pattern(text: str) -> Any:
    """Return a pattern of the library re2 for bytes, whose time is linear."""
    return _LazyPattern(lambda: re2.compile(text.encode()))


def regex_pattern(text: str, flags: int = 0) -> regex.Pattern[str]:
    """Return a pattern of the library regex, which supports Unicode properties."""
    return cast(regex.Pattern[str], _LazyPattern(lambda: regex.compile(text, flags)))
