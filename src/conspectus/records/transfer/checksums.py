"""What rows are compared by: how many there are, and a hash that depends on no order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

BITS = 128
PART = 1 << 20


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


def hash_in_parts(row: Sequence[object], *, size: int = PART) -> int:
    """The hash of a row of which no more than `size` bytes of a column are written out at once."""
    digest = blake2b(digest_size=BITS // 8)
    for part in _parts(row, size):
        digest.update(part)
    return int.from_bytes(digest.digest(), "big")


def sum_of(hashes: Iterable[int]) -> Sum:
    """The sum of rows with these hashes."""
    found = tuple(hashes)
    return Sum(len(found), sum(found) % (1 << BITS))


def _parts(row: Sequence[object], size: int) -> Iterator[bytes]:
    """The same bytes as `written_out`."""
    yield b"("
    for place, value in enumerate(row):
        yield b", " if place else b""
        if isinstance(value, bytes) and len(value) > size:
            yield from _parts_of_bytes(value, size)
        else:
            yield ascii(value).encode("ascii")
    yield b",)" if len(row) == 1 else b")"


def _parts_of_bytes(value: bytes, size: int) -> Iterator[bytes]:
    quote, forcing = (b'"', b"'") if b"'" in value and b'"' not in value else (b"'", b"'\"")
    end = len(ascii(forcing)) - len("b'")
    yield b"b" + quote
    for start in range(0, len(value), size):
        # What ends each part makes Python choose the same quotes for it as for all of them.
        yield ascii(value[start : start + size] + forcing)[2:-end].encode("ascii")
    yield quote
