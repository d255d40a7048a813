"""Token estimates without a vocabulary, and the token costs of chat messages."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

TOKENS_PER_MESSAGE: Final = 3
"""Tokens that chat models add to the role and content of a message (rule published by OpenAI)."""


ESTIMATORS: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {
        "chars4_floor": lambda text: len(text) // 4,
        "chars4_ceil": lambda text: (len(text) + 3) // 4,
        "chars4_min1": lambda text: max(1, len(text) // 4),
        "bytes4_min1": lambda text: max(1, len(text.encode("utf-8", "surrogatepass")) // 4),
    }
)
"""Estimator name → tokens of a text. Characters are code points, bytes are UTF-8.

The two rules ending in ``min1`` count at least one token, for the empty text too.
"""
