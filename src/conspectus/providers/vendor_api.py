"""What every exchange with a model vendor has in common: what is sent, and what the answers mean."""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import numpy as np

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.ports import Vectors

PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of requests that may be answered at another time."""
KEY_REFUSED: Final = frozenset({401, 403})
_BLANK = "."
_LONGEST_WORDS = 300
_LONGEST_COUNT = 15
_LONGEST_WAIT = 86_400.0


def sendable(text: str) -> str:
    """The text as vendors take it: lone surrogates as question marks, nothing at all as a full stop."""
    return text.encode("utf-8", "replace").decode() if text.strip() else _BLANK


def refusal(
    provider: str, status: int, words: str = "", *, retry_after: float | None = None
) -> ProviderError:
    """The error for a status; `words` are the vendor's, left out where they might quote the key."""
    if status in KEY_REFUSED:
        return ProviderError(provider, f"HTTP {status}: the key or its rights were refused", status=status)
    words = " ".join(words.split())[:_LONGEST_WORDS]
    reason = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    if status in PASSING:
        retry_after = None if retry_after is None else min(retry_after, _LONGEST_WAIT)
        return ProviderUnavailable(provider, reason, status=status, retry_after=retry_after)
    return ProviderError(provider, reason, status=status)


def waiting_time(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date; None where it cannot be read."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def unit_rows(provider: str, rows: Sequence[Sequence[float]], shape: tuple[int, int]) -> Vectors:
    """Rows of this shape, each with length 1.

    Raises InvalidInput where the model's vectors have another size, ProviderError for any other nonsense.
    """
    count, dimensions = shape
    widths = {len(row) for row in rows}
    if len(rows) == count and len(widths) == 1 and widths != {dimensions}:
        has = f"the model of {provider} makes vectors of {widths.pop()} dimensions, not {dimensions}"
        raise InvalidInput("embedder", f"{has}; name that size after the @")
    if len(rows) != count or widths != {dimensions}:
        got = f"{len(rows)} vectors of {sorted(widths)} dimensions"
        raise ProviderError(provider, f"sent {got}, not {count} of {dimensions}")
    numbers = np.asarray(rows, dtype=np.float64)
    norms = np.linalg.norm(numbers, axis=1, keepdims=True)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise ProviderError(provider, "sent a vector that has no direction")
    units: Vectors = (numbers / norms).astype(np.float32)
    return units


def number_in(answer: Any, *path: str) -> int | None:
    """A count that an answer may hold at the end of a path of names, as a number or in digits."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if isinstance(answer, str) and answer.isdecimal() and len(answer) <= _LONGEST_COUNT:
        return int(answer)
    return int(answer) if isinstance(answer, int | float) and 0 < answer < 10.0**_LONGEST_COUNT else None
