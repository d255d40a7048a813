"""Token estimates without a vocabulary, and the token costs of chat messages."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

TOKENS_PER_MESSAGE: Final = 3
"""Tokens that chat models add to the role and content of a message (rule published by OpenAI)."""


def _floor_of_characters(text: str) -> int:
    return len(text) // 4


def _ceiling_of_characters(text: str) -> int:
    return (len(text) + 3) // 4


def _characters_at_least_one(text: str) -> int:
    return max(1, len(text) // 4)


def _bytes_at_least_one(text: str) -> int:
    return max(1, len(text.encode("utf-8", "surrogatepass")) // 4)


ESTIMATORS: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {
        "chars4_floor": _floor_of_characters,
        "chars4_ceil": _ceiling_of_characters,
        "chars4_min1": _characters_at_least_one,
        "bytes4_min1": _bytes_at_least_one,
    }
)
"""Estimator name → tokens of a text. Characters are code points, bytes are UTF-8.

The two rules ending in ``min1`` count at least one token, for the empty text too.
"""
