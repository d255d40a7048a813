"""The rows of a segment that a search may return, in each of the forms that its parts need."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from conspectus.index.segments.columns import Mask


class Allowed:
    """Made once for a filter and used by many searches, at the same time too; `mask` None is every row."""

    def __init__(self, size: int, mask: Mask | None = None) -> None:
        self.size = size
        self.mask = mask
        self._occupied: NDArray[np.bool_] | None = None
        self.count = size if mask is None else int(np.count_nonzero(mask))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The allowed rows in order."""
        return np.arange(self.size) if self.mask is None else np.flatnonzero(self.mask)

    @cached_property
    def bits(self) -> NDArray[np.uint8] | None:
        """One bit a row, the lowest first; None when every row is allowed."""
        return None if self.mask is None else np.packbits(self.mask, bitorder="little")

    def occupied(self, part_of_row: NDArray[np.uint16], parts: int) -> NDArray[np.bool_]:
        """Which of the parts that rows are divided into hold an allowed row."""
        if self._occupied is None:
            self._occupied = np.bincount(part_of_row[self.rows], minlength=parts) > 0
        return self._occupied

    def only(self, mask: Mask | None) -> "Allowed":
        """Those that are also in `mask`."""
        if mask is None:
            return self
        return Allowed(self.size, mask if self.mask is None else self.mask & mask)

    def among(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """Those of the rows that are allowed."""
        return rows if self.mask is None else rows[self.mask[rows]]
