"""What rows are compared by: how many there are, and a hash that depends on no order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

BITS = 128


@dataclass(frozen=True, slots=True)
class Sum:
    """Rows of a table: their number, and the sum of their hashes."""

    rows: int = 0
    hash: int = 0

    def __add__(self, other: "Sum") -> "Sum":
        """Both together."""
        return Sum(self.rows + other.rows, (self.hash + other.hash) % (1 << BITS))

    def __str__(self) -> str:
        """The hash as digits."""
        return f"{self.hash:032x}"


def written_out(row: Sequence[object]) -> bytes:
    """A row as bytes that are the same in every database and every version of Python."""
    return ascii(tuple(row)).encode("ascii")


def hash_of(written: bytes) -> int:
    """The hash of a row that is written out."""
    return int.from_bytes(blake2b(written, digest_size=BITS // 8).digest(), "big")


def sum_of(hashes: Iterable[int]) -> Sum:
    """The sum of rows with these hashes."""
    found = tuple(hashes)
    return Sum(len(found), sum(found) % (1 << BITS))
