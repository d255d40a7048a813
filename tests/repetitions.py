"""How often tests try what chance brings: in full in `make bench`, a share of it in `make test`."""

from hypothesis import settings

IN_FULL = 100
"""The examples of the profile `thorough`, and so the hundred per cent of every number of them."""


def tries(maximum: int) -> int:
    """That many examples in full, else the share that the profile allows."""
    return max(1, maximum * settings.default.max_examples // IN_FULL)
