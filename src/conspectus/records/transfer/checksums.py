"""Checksums of rows."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from conspectus.deferred import dataclass

HASH_BITS = 128
MAX_PART_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Sum:
    """A checksum of rows of a table: their number, and the sum of their hashes."""

    rows: int = 0
    hash: int = 0

    def __add__(self, other: "Sum") -> "Sum":
        """Return the checksum of both."""
        return Sum(self.rows + other.rows, (self.hash + other.hash) % (1 << HASH_BITS))

    def __str__(self) -> str:
        """Return the hash as digits."""
        return f"{self.hash:032x}"


def encode_row(row: Sequence[object]) -> bytes:
    """Return a row as bytes that are equal in every database and Python version."""
    return ascii(tuple(row)).encode("ascii")


def hash_of(written: bytes) -> int:
    """Return the hash of an encoded row."""
    return int.from_bytes(blake2b(written, digest_size=HASH_BITS // 8).digest(), "big")


def hash_in_parts(row: Sequence[object], *, size: int = MAX_PART_BYTES) -> int:
    """Return the hash of a row, encoding at most `size` bytes of a column at once."""
    digest = blake2b(digest_size=HASH_BITS // 8)
    for part in _parts(row, size):
        digest.update(part)
    return int.from_bytes(digest.digest(), "big")


def sum_of(hashes: Iterable[int]) -> Sum:
    """Return the checksum of rows with these hashes."""
    numbers = tuple(hashes)
    return Sum(len(numbers), sum(numbers) % (1 << HASH_BITS))


def _parts(row: Sequence[object], size: int) -> Iterator[bytes]:
    """Yield the bytes of `encode_row` in parts."""
    yield b"("
    for position, value in enumerate(row):
        yield b", " if position else b""
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
        # The suffix makes Python choose the same quotes for each part as for the whole.
        yield ascii(value[start : start + size] + forcing)[2:-end].encode("ascii")
    yield quote
