"""Checks of vectors, and their stored form."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace

MAX_DIMENSIONS = 65_536
ROUNDING_ERROR = 2.0**-11
"""Largest relative error of the length of a unit vector whose numbers were rounded to float16."""


def pack_rows(vectors: NDArray[np.float32]) -> list[bytes]:
    """Return rows as little-endian float16, the form in the records."""
    return [row.tobytes() for row in vectors.astype("<f2")]


def unpack_row(row: bytes) -> tuple[float, ...]:
    """Return a row of the records as the shortest numbers that give the same row again."""
    return tuple(float(str(number)) for number in np.frombuffer(row, "<f2"))


def check_rows(rows: NDArray[np.float32], space: EmbeddingSpace, count: int) -> NDArray[np.float32]:
    """Return the rows that an embedder made of `count` texts, if they are vectors of its model.

    Raises ProviderUnavailable for another shape, and for a vector that is zero or not finite.
    """
    shape = (count, space.dimensions)
    if not isinstance(rows, np.ndarray) or rows.shape != shape:
        output = f"vectors of shape {rows.shape}" if isinstance(rows, np.ndarray) else "no array of vectors"
        raise ProviderUnavailable(space.model, f"made {output}, not {shape}", verdict="answer")
    norms = np.einsum("ij,ij->i", rows, rows)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise ProviderUnavailable(space.model, "made a vector that is zero or not finite", verdict="answer")
    return rows


def unit(numbers: Sequence[float]) -> NDArray[np.float32]:
    """Return a vector with length 1; one that has it as precisely as the records keep it stays as it is.

    Raises InvalidInput unless it is a finite, nonzero row of numbers.
    """
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
    length = float(np.linalg.norm(scaled))
    is_unit = abs(length * largest - 1.0) <= ROUNDING_ERROR
    result: NDArray[np.float32] = (vector if is_unit else scaled / length).astype(np.float32)
    return result
