"""Checks of vectors, and their stored form."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput

MAX_DIMENSIONS = 65_536


def packed(vectors: NDArray[np.float32]) -> list[bytes]:
    """Return rows as little-endian float16, the form in the records."""
    return [row.tobytes() for row in vectors.astype("<f2")]


def unit(numbers: Sequence[float]) -> NDArray[np.float32]:
    """Return a vector with length 1. Raises InvalidInput unless it is a finite, nonzero row of numbers."""
    try:
        vector = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise InvalidInput("vector", "must be a row of numbers") from fault
    if vector.ndim != 1 or not 1 <= vector.size <= MAX_DIMENSIONS:
        raise InvalidInput("vector", f"must be one row of 1 to {MAX_DIMENSIONS} numbers")
    largest = float(np.abs(vector).max())
    if not np.isfinite(largest) or largest == 0.0:
        raise InvalidInput("vector", "must be finite and not zero")
    scaled = vector / largest
    result: NDArray[np.float32] = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return result
