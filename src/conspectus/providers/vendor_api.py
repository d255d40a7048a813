"""Calls to model providers: what they accept, and the errors of their responses."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import ProviderError, ProviderUnavailable

PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of requests that may succeed later."""
KEY_REFUSED: Final = frozenset({401, 403})
_BLANK = "."
_MAX_MESSAGE_LENGTH = 300
_MAX_DIGITS = 15
_MAX_WAIT_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of a vendor, and its token count of the request."""

    body: Any
    tokens: int | None


def sendable(text: str) -> str:
    """Return a text that vendors accept: lone surrogates become question marks, an empty text a full stop."""
    return text.encode("utf-8", "replace").decode() if text.strip() else _BLANK


def refusal(
    provider: str, status: int, words: str = "", *, retry_after: float | None = None
) -> ProviderError:
    """Return the error for a status. `words` is the vendor's message, dropped if it might quote the key."""
    if status in KEY_REFUSED:
        return ProviderError(
            provider, f"HTTP {status}: authentication failed, or the key has no permission", status=status
        )
    words = " ".join(words.split())[:_MAX_MESSAGE_LENGTH]
    reason = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    if status in PASSING:
        retry_after = None if retry_after is None else min(retry_after, _MAX_WAIT_SECONDS)
        return ProviderUnavailable(provider, reason, status=status, retry_after=retry_after)
    return ProviderError(provider, reason, status=status)


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header, a number or a date; None if it is invalid."""
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


def number_in(answer: Any, *path: str) -> int | None:
    """Return the count at a path of names, a number or digits; None if there is none."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if isinstance(answer, str) and answer.isdecimal() and len(answer) <= _MAX_DIGITS:
        return int(answer)
    if isinstance(answer, int | float) and 0 < answer < 10.0**_MAX_DIGITS:
        return int(answer)
    return None
