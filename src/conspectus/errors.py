"""Every error Conspectus raises, as one tree.

ConspectusError
├── InvalidInput            a value the caller gave cannot be used
│   ├── TooLarge            it is over a limit named in the settings
│   ├── DanglingEdges       edges lead to nodes that are not there
│   └── UnknownTokenizer    no token counter has that name
├── NotFound                nothing with that name exists, or none that the caller may see
├── Unauthenticated         there is no key, or none that is valid
├── PermissionDenied        the caller may see it but not do that
├── Conflict                it exists already, or contradicts what is stored
│   └── PreconditionFailed  it is no longer what the caller read
├── ForkedEngine            it was opened before this process was forked
├── UnreadableFile          a file could not be added
│   └── UnsupportedContent  it is of a kind that holds no text
├── FetchFailed             a web server gave no usable answer
│   └── ForbiddenAddress    the address must not be asked
├── Overloaded              too much is going on; ask again later
│   └── RateLimited         the key has had as many as it may have this minute
├── ServerUnavailable       a Conspectus server could not be reached, or gave no answer that can be read
├── MissingExtra            an optional dependency is not installed
├── ProviderError           a model provider refused
│   ├── ProviderUnavailable the provider may answer later
│   └── ChatError           a chat model gave no answer, or no more of it: ChatNotConfigured, ChatAuthFailed,
│       ChatRateLimited, ChatUnreachable, ChatTimedOut, ChatModelUnknown, ChatTooLong, ChatBadAnswer
└── StorageError            a store could not do its work
    ├── StorageTooNew       the data have a version unknown to this program
    ├── StorageBusy         another process holds the store
    │   ├── WriteOutcomeUnknown nobody knows whether it was stored
    │   └── LockLost        another process does this work now
    ├── RecordsDamaged      a record cannot be decoded
    ├── IndexReplaced       the index was built anew meanwhile
    └── IndexDamaged        derived data cannot be read and has to be rebuilt
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

SHOWN: Final = 20
"""A message names at most so many things."""


class ConspectusError(Exception):
    """The base of all errors raised on purpose; `code` is stable across versions."""

    code: ClassVar[str] = "error"


class InvalidInput(ConspectusError):
    """A value that the caller gave cannot be used; `field` names it, `reason` says what to change."""

    code = "invalid_input"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@contextmanager
def as_field(name: str, *, was: str) -> Iterator[None]:
    """Blame the field that the caller gave for what a function below says of its own argument."""
    try:
        yield
    except InvalidInput as fault:
        if type(fault) is not InvalidInput or fault.field != was:
            raise
        raise InvalidInput(name, fault.reason) from fault


def require_range(field: str, value: float, low: float, high: float) -> None:
    """Raise InvalidInput for a number that is not from `low` to `high`."""
    if not low <= value <= high:
        raise InvalidInput(field, f"must be from {low} to {high}")


class TooLarge(InvalidInput):
    """A value is over a limit; `size` and `limit` are in the unit that the message names."""

    code = "too_large"

    def __init__(self, field: str, *, size: int, limit: int, unit: str = "bytes") -> None:
        super().__init__(field, f"is {size} {unit}, the limit is {limit}; split it or raise the limit")
        self.size = size
        self.limit = limit


class UnknownTokenizer(InvalidInput):
    """No token counter has the given `name`."""

    code = "unknown_tokenizer"

    def __init__(self, name: str) -> None:
        super().__init__(
            "tokenizer",
            f"{name!r} is unknown; use o200k_base, cl100k_base, hf:PATH or an estimator such as chars4_ceil",
        )
        self.name = name


class NotFound(ConspectusError):
    """Nothing of this `kind` with this `name` exists for the caller."""

    code = "not_found"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no {kind} {name!r}")
        self.kind = kind
        self.name = name


class Unauthenticated(ConspectusError):
    """No key was given, or it is unknown, expired, revoked or of a disabled user; which is not said."""

    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__("a valid API key is needed: Authorization: Bearer KEY")


class PermissionDenied(ConspectusError):
    """The caller may see it, but the role or the key's scope does not allow `action`; `needs` would."""

    code = "permission_denied"

    def __init__(self, action: str, needs: str) -> None:
        super().__init__(f"to {action}, {needs} is needed; ask its manager")
        self.action = action
        self.needs = needs


class Conflict(ConspectusError):
    """The write contradicts what is stored; `reason` says how."""

    code = "conflict"

    def __init__(self, kind: str, name: str, reason: str) -> None:
        super().__init__(f"{kind} {name!r}: {reason}")
        self.kind = kind
        self.name = name
        self.reason = reason


class PreconditionFailed(Conflict):
    """What is stored is not what the caller read before; read it again, then decide."""

    code = "precondition_failed"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name, "was changed meanwhile; read it again")


class DanglingEdges(InvalidInput):
    """Edges lead to nodes that are not in their graph: `missing` are the ids of those, each once."""

    code = "dangling_edges"

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__("edges", f"lead to unknown nodes: {_some(missing)}; add them first")
        self.missing = tuple(missing)


class ForkedEngine(ConspectusError):
    """The engine was opened by the process that this one was forked from; open another one here."""

    code = "forked_engine"

    def __init__(self) -> None:
        super().__init__("engine: it belongs to the process that opened it; open another engine in this one")


class UnreadableFile(ConspectusError):
    """A file could not be added; nothing of it was stored."""

    code = "unreadable_file"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnsupportedContent(UnreadableFile):
    """The content is of a kind that no text can be read from; trying again does not help."""

    code = "unsupported_content"


class FetchFailed(ConspectusError):
    """A web server gave no usable answer; `status` is its answer, if there was one.

    `passing` says that trying again later may help.
    """

    code = "fetch_failed"

    def __init__(self, url: str, reason: str, *, status: int | None = None, passing: bool = False) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.status = status
        self.passing = passing


class ForbiddenAddress(FetchFailed):
    """The address leads inside this machine or network, where nothing may be asked."""

    code = "forbidden_address"

    def __init__(self, url: str) -> None:
        super().__init__(url, "leads to an address that is not public; the operator can allow it")


class Overloaded(ConspectusError):
    """Too much is going on, as `what` says; `retry_after` is in seconds."""

    code = "overloaded"

    def __init__(self, what: str, *, retry_after: float = 1.0) -> None:
        super().__init__(f"{what}; ask again in {retry_after:g} s")
        self.what = what
        self.retry_after = retry_after


class RateLimited(Overloaded):
    """The key has had as many requests as it may have in a minute, whichever process answered them."""

    code = "rate_limited"

    def __init__(self, most: int, *, retry_after: float) -> None:
        super().__init__(f"the key has had its {most} requests of this minute", retry_after=retry_after)
        self.most = most


class ServerUnavailable(ConspectusError):
    """The Conspectus server at `url` could not be reached, or what answered there cannot be understood."""

    code = "server_unavailable"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class MissingExtra(ConspectusError):
    """An optional dependency is missing; the message is the line that installs it."""

    code = "missing_extra"

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"this needs {package}: pip install 'conspectus[{extra}]'")
        self.extra = extra
        self.package = package


REFUSED_WHATEVER_IS_SENT: Final = frozenset({401, 402, 403, 404, 405})
"""Statuses by which a provider refuses the key, the account or the model."""


class ProviderError(ConspectusError):
    """A model provider refused the request for good; asking again will not help.

    `status` is the HTTP status of its answer, if there was one.
    """

    code = "provider_error"

    def __init__(self, provider: str, reason: str, *, status: int | None = None) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider = provider
        self.reason = reason
        self.status = status

    @property
    def about_text(self) -> bool:
        """Whether it may be the text that was refused, so that another one would not be."""
        return self.status not in REFUSED_WHATEVER_IS_SENT


class ProviderUnavailable(ProviderError):
    """A model provider cannot answer now; `retry_after` is in seconds where the provider gave it."""

    code = "provider_unavailable"

    def __init__(
        self, provider: str, reason: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(provider, reason, status=status)
        self.retry_after = retry_after

    @property
    def about_text(self) -> bool:
        """Never: the same text may be answered later."""
        return False


class ChatError(ProviderError):
    """A chat model gave no answer, or no more of it; `reason` is for the operator, `told` for the user."""

    code = "LLM_ERROR"
    told: ClassVar[str] = "The language model could not answer."


class ChatNotConfigured(ChatError):
    """No chat model is set."""

    code = "LLM_NOT_CONFIGURED"
    told = "No language model is configured; set CONSPECTUS_CHAT_MODEL."

    def __init__(self) -> None:
        super().__init__("chat model", "none is set; set CONSPECTUS_CHAT_MODEL, for instance to openai:gpt-5")


class ChatAuthFailed(ChatError):
    """The provider refused the key, or the account."""

    code = "LLM_AUTH_FAILED"
    told = "The language model refused the key of this server."


class ChatRateLimited(ChatError):
    """The provider has had too many requests; `retry_after` is in seconds where it says."""

    code = "LLM_RATE_LIMIT"
    told = "The language model has too much to do; ask again later."

    def __init__(
        self, provider: str, reason: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(provider, reason, status=status)
        self.retry_after = retry_after


class ChatUnreachable(ChatError):
    """The provider could not be reached, broke off, or had a fault of its own."""

    code = "LLM_CONNECTION_ERROR"
    told = "The language model could not be reached, or broke off."


class ChatTimedOut(ChatError):
    """The provider took longer than the settings allow."""

    code = "LLM_TIMEOUT"
    told = "The language model took too long."


class ChatModelUnknown(ChatError):
    """The provider has no model of that name, or not for this account."""

    code = "LLM_MODEL_NOT_FOUND"
    told = "The language model that is configured does not exist."


class ChatTooLong(ChatError):
    """Prompt and answer are longer than the model's window."""

    code = "LLM_CONTEXT_TOO_LONG"
    told = "The conversation is too long for the language model."


class ChatBadAnswer(ChatError):
    """What the provider sent cannot be understood, or the model refused to answer."""

    code = "LLM_BAD_RESPONSE"
    told = "The language model gave no usable answer."


class StorageError(ConspectusError):
    """A store could not do its work; nothing was half written."""

    code = "storage_error"


class StorageTooNew(StorageError):
    """The data at `path` have a version that this version of Conspectus does not know."""

    code = "storage_too_new"

    def __init__(self, path: str, version: str) -> None:
        super().__init__(
            f"{path} has version {version}, unknown to this program; open it with the version that wrote it"
            " or a newer one"
        )
        self.path = path
        self.version = version


class StorageBusy(StorageError):
    """Another process held the store for longer than the time limit; trying again is safe."""

    code = "storage_busy"


class WriteOutcomeUnknown(StorageBusy):
    """The answer to the end of a write was lost: it may or may not have been stored."""

    code = "write_outcome_unknown"


class LockLost(StorageBusy):
    """This process was not heard of for so long that another one does its work by now."""

    def __init__(self, work: str) -> None:
        super().__init__(f"another process may do this by now: {work}")
        self.work = work


class IndexReplaced(StorageError):
    """Another process has built the index anew meanwhile; ask again."""

    code = "index_replaced"


class RecordsDamaged(StorageError):
    """A record cannot be decoded, which trying again does not change; it is restored from a backup."""

    code = "records_damaged"


class IndexDamaged(StorageError):
    """Derived data at `path` cannot be read; `conspectus reindex` rebuilds it from the records."""

    code = "index_damaged"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; run `conspectus reindex`, no record is lost")
        self.path = path
        self.reason = reason


def _some(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    shown = ", ".join(repr(each) for each in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown
