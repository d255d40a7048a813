"""The gate that answers of model providers pass: size, shape, order, count, and finite numbers.

An answer that does not pass is ProviderUnavailable with the verdict `answer`: the service may do better the
next time, and no text is to blame. Vectors of another size than the collection's are a fault of the service
or of the settings.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.ports import Vectors

T = TypeVar("T")
Ranking: TypeAlias = list[tuple[int, float]]

ROUNDING: Final = 1e-4
"""Relevances may exceed 0 and 1 by this much."""
BASE_BYTES: Final = 1 << 20
"""Bytes of an answer besides what is expected of each text."""
BYTES_PER_NUMBER: Final = 40
"""Bytes of one number of a vector in JSON, with spaces."""
BYTES_PER_TEXT: Final = 4_096
"""Bytes of the entry of one text, without its vector."""
MAX_ESCAPED: Final = 12
"""Most bytes of one character in JSON: two escaped halves of a surrogate pair."""
NUMBER_KINDS: Final = frozenset("fiu")


def invalid_answer(provider: str, reason: str, *, status: int | None = None) -> ProviderUnavailable:
    """Return the error for an answer that is not what was asked for."""
    return ProviderUnavailable(provider, reason, status=status, verdict="answer")


def vectors_size(count: int, dimensions: int) -> int:
    """Return the most bytes that an answer with vectors of some texts may have."""
    return BASE_BYTES + count * (BYTES_PER_TEXT + dimensions * BYTES_PER_NUMBER)


def limit_ranking_bytes(texts: Sequence[str]) -> int:
    """Return the most bytes that a ranking of some texts may have; some services send the texts back."""
    return BASE_BYTES + sum(BYTES_PER_TEXT + MAX_ESCAPED * len(text) for text in texts)


async def attempt(work: Awaitable[T]) -> T | Exception:
    """Return what a vendor's library returns, or whatever it raises."""
    [outcome] = await asyncio.gather(work, return_exceptions=True)
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


async def read_body(provider: str, pieces: AsyncIterator[bytes], limit: int) -> bytes:
    """Read a body of at most `limit` bytes. A longer one raises ProviderUnavailable and is not read on."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > limit:
            raise invalid_answer(provider, f"sent more than {limit:,} bytes")
    return bytes(body)


def parse_json(provider: str, body: bytes) -> Any:
    """Return the JSON of a body. Raises ProviderUnavailable."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid_answer(provider, "sent an answer that is not JSON") from error


def unit_rows(provider: str, rows: object, shape: tuple[int, int]) -> Vectors:
    """Return rows of numbers in the order of the texts, normalized to length 1.

    Raises ProviderError for vectors that all have another size, and ProviderUnavailable for other faults.
    """
    count, dimensions = shape
    if not isinstance(rows, list | tuple) or len(rows) != count:
        sent = len(rows) if isinstance(rows, list | tuple) else "no"
        raise invalid_answer(provider, f"sent {sent} vectors, not {count}")
    numbers = [_numbers(provider, row) for row in rows]
    sizes = {row.size for row in numbers}
    if count and len(sizes) == 1 and sizes != {dimensions}:
        reason = f"the model makes vectors of {sizes.pop()} dimensions, not {dimensions}"
        raise ProviderError(provider, f"{reason}; name its size after the @", verdict="service")
    if sizes - {dimensions}:
        raise invalid_answer(provider, f"sent vectors of {sorted(sizes)} dimensions, not {dimensions}")
    matrix = np.stack(numbers) if numbers else np.empty((0, dimensions))
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise invalid_answer(provider, "sent a vector that is zero or not finite")
    units: Vectors = (matrix / norms).astype(np.float32)
    return units


def entries_by_index(provider: str, entries: object, count: int) -> list[dict[str, Any]]:
    """Return the entries of `count` texts in the order of the texts, by the `index` of each entry.

    Entries without any index are in order. Raises ProviderUnavailable.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise invalid_answer(provider, "sent no list of vectors")
    if not any("index" in entry for entry in entries):
        return entries
    by_index = {entry.get("index"): entry for entry in entries if type(entry.get("index")) is int}
    if len(entries) != count or by_index.keys() != set(range(count)):
        raise invalid_answer(provider, f"sent {len(entries)} vectors, and not one of each of {count} texts")
    return [by_index[index] for index in range(count)]


def read_ranking(provider: str, entries: object, score: str, count: int, *, least: int) -> Ranking:
    """Return positions of `count` texts with relevance, at least `least` of them, in the order received.

    `score` is the member of an entry with its relevance. Raises ProviderUnavailable.
    """
    if not isinstance(entries, list):
        raise invalid_answer(provider, "sent no list of results")
    ranking = [_read_ranked_text(provider, entry, score, count) for entry in entries]
    if len({position for position, _ in ranking}) != len(ranking):
        raise invalid_answer(provider, "ranked a text twice")
    if len(ranking) < least:
        raise invalid_answer(provider, f"ranked {len(ranking)} texts, not {least}")
    return ranking


class _BoundedStream:
    """The bytes of an answer, until there are too many of them."""

    def __init__(self, stream: Any, limit: int, too_long: Exception) -> None:
        self._stream = stream
        self._left = limit
        self._too_long = too_long

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                raise self._too_long
            yield piece

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


def limit_answers(provider: Any, limit: int) -> None:
    """Break off answers of more than `limit` bytes to a provider of pydantic-ai that has an HTTP client."""
    client = getattr(provider, "_own_http_client", None)
    if client is not None:
        library = import_module(type(client).__module__.partition(".")[0])
        client.event_hooks["response"].append(_size_hook(library, limit))


def _size_hook(library: Any, limit: int) -> Callable[[Any], Awaitable[None]]:
    stream_type = type("BoundedStream", (_BoundedStream, library.AsyncByteStream), {})

    async def bound(response: Any) -> None:
        too_long = library.ReadError(f"the answer has more than {limit:,} bytes")
        response.stream = stream_type(response.stream, limit, too_long)

    return bound


def _numbers(provider: str, row: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return one vector: a list of numbers, or base64 of little-endian float32."""
    try:
        if isinstance(row, str):
            return np.frombuffer(base64.b64decode(row, validate=True), dtype="<f4").astype(np.float64)
        numbers = np.array(row)
    except (ValueError, binascii.Error) as error:
        raise invalid_answer(provider, "sent a vector that is no row of numbers") from error
    if not isinstance(row, list | tuple) or numbers.ndim != 1 or numbers.dtype.kind not in NUMBER_KINDS:
        raise invalid_answer(provider, "sent a vector that is no row of numbers")
    return numbers.astype(np.float64)


def _read_ranked_text(provider: str, entry: object, name: str, count: int) -> tuple[int, float]:
    position = entry.get("index") if isinstance(entry, dict) else None
    score = entry.get(name) if isinstance(entry, dict) else None
    if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < count:
        raise invalid_answer(provider, f"ranked text {position!r:.40} of {count}")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise invalid_answer(provider, "sent a result without a relevance")
    if not -ROUNDING <= score <= 1 + ROUNDING:
        raise invalid_answer(provider, f"sent the relevance {score!r:.40}, which is not between 0 and 1")
    return position, min(1.0, max(0.0, float(score)))
