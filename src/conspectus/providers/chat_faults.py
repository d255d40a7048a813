"""What goes wrong with a chat model, as our errors; the vendor's own words might quote a key or a text."""

from typing import Any, Final, TypeAlias

from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatError,
    ChatModelUnknown,
    ChatRateLimited,
    ChatTimedOut,
    ChatTooLong,
    ChatUnreachable,
)

Kind: TypeAlias = tuple[str, type[ChatError], str]

KINDS: Final[tuple[Kind, ...]] = (
    ("ModelContextWindowExceededError", ChatTooLong, "the prompt and the answer are over the model's window"),
    ("ModelAuthenticationError", ChatAuthFailed, "the key or its rights were refused"),
    ("ModelQuotaExceededError", ChatAuthFailed, "the account has nothing left to spend"),
    ("ModelNotFoundError", ChatModelUnknown, "there is no such model, or the address is wrong"),
    ("ModelRateLimitError", ChatRateLimited, "there were too many requests"),
    ("ModelOverloadedError", ChatRateLimited, "it is overloaded"),
    ("ModelTimeoutError", ChatTimedOut, "the connection took too long"),
    ("ModelConnectionError", ChatUnreachable, "it could not be reached, or broke off"),
    ("ModelUnavailableError", ChatUnreachable, "it is not available"),
    ("ModelServerError", ChatUnreachable, "it failed"),
    ("ModelRequestRejectedError", ChatError, "the request was refused"),
    ("UnexpectedModelBehavior", ChatBadAnswer, "the answer cannot be understood"),
)
"""The library's errors, the more special first, with ours and why."""

_NO_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})
_FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})
_LONGEST_WAIT: Final = 86_400.0


def chat_error(provider: str, fault: Exception, library: Any) -> ChatError:
    """Our error for a fault of the library whose module of exceptions is given."""
    status = getattr(fault, "status_code", None)
    if type(fault).__name__ in _NO_CREDENTIALS:
        return ChatAuthFailed(provider, "no credentials are set")
    if getattr(fault, "provider_error_code", None) in _FILTERED:
        return ChatBadAnswer(provider, "it will not answer this", status=status)
    if isinstance(fault.__cause__ or fault, ValueError):
        return ChatBadAnswer(provider, "the answer cannot be read", status=status)
    for name, kind, reason in KINDS:
        if isinstance(fault, getattr(library, name)):
            return _made(kind, provider, _with_status(reason, status), fault)
    return ChatUnreachable(provider, _with_status("the answer broke off", status), status=status)


def _made(kind: type[ChatError], provider: str, reason: str, fault: Exception) -> ChatError:
    status = getattr(fault, "status_code", None)
    if kind is not ChatRateLimited:
        return kind(provider, reason, status=status)
    wait = getattr(fault, "retry_after", None)
    wait = None if wait is None else min(float(wait), _LONGEST_WAIT)
    return ChatRateLimited(provider, reason, status=status, retry_after=wait)


def _with_status(reason: str, status: int | None) -> str:
    return reason if status is None else f"HTTP {status}: {reason}"
