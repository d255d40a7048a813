"""Every error Conspectus raises, as one tree.

ConspectusError
├── InvalidInput            a value the caller gave cannot be used
│   ├── TooLarge            it is over a limit named in the settings
│   ├── UnindexableText     the text cannot be analyzed for keyword search
│   ├── DanglingEdges       edges lead to nodes that are not there
│   └── UnknownTokenizer    no tokenizer has that name
├── NotFound                nothing with that name exists, or the caller may not read it
├── Unauthenticated         there is no key, or none that is valid
│   ├── InvalidToken        a token of an identity provider is not valid here
│   └── LoginFailed         a login of the command line was refused, or has ended
├── PermissionDenied        the role or the scope of the key does not allow it
├── Conflict                it exists already, or contradicts what is stored
│   └── PreconditionFailed  it was changed since the caller read it
├── ForkedEngine            it was opened before this process was forked
├── UnreadableFile          a file could not be added
│   └── UnsupportedContent  no text can be read from content of this kind
├── FetchFailed             a web server gave no usable response
│   └── ForbiddenAddress    requests to the address are not allowed
├── Overloaded              too many requests, jobs or streams at once; try again later
│   └── RateLimited         the key has reached its limit of requests per minute
│       └── TooManyBodyBytes    the bodies of a user's requests are too large together
├── ServerUnavailable       a Conspectus server could not be reached, or its response is not valid
├── MissingExtra            an optional dependency is not installed
├── ProviderError           a model provider refused
│   ├── ProviderUnavailable the provider may answer later
│   └── ChatError           a chat model gave no complete answer: ChatNotConfigured, ChatAuthFailed,
│       ChatRateLimited, ChatUnreachable, ChatTimedOut, ChatModelUnknown, ChatTooLong, ChatBadAnswer,
│       ChatFiltered
└── StorageError            a store failed
    ├── StorageTooNew       the data have a version unknown to this program
    ├── StorageTooOld       the data were written before versions were numbered
    ├── StoreClosed         the engine was closed
    ├── ExtensionMissing    the database lacks pgvector, or has one that cannot be used
    ├── StorageBusy         another process holds the store
    │   ├── WriteOutcomeUnknown the write may or may not be stored
    │   └── LockLost        another process holds the lease now
    ├── RecordsDamaged      a record cannot be decoded
    ├── IndexReplaced       another process has rebuilt the index
    └── IndexDamaged        derived data cannot be read; rebuild it
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, Final, Literal

REFUSAL_STATUSES: Final = frozenset({401, 403, 404})
MAX_SHOWN: Final = 20
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
    """Raise errors about an argument of a function below as errors about the caller's field."""
    try:
        yield
    except InvalidInput as fault:
        if type(fault) is not InvalidInput or fault.field != was:
            raise
        raise InvalidInput(name, fault.reason) from fault


class TooLarge(InvalidInput):
    """A value is over a limit; `size` and `limit` are in the unit that the message names.

    `advice` says what to do.
    """

    code = "too_large"

    def __init__(
        self,
        field: str,
        *,
        size: int,
        limit: int,
        unit: str = "bytes",
        advice: str = "split it or raise the limit",
    ) -> None:
        super().__init__(field, f"is {size} {unit}, the limit is {limit}; {advice}")
        self.size = size
        self.limit = limit


TEXT_FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a function raises that cannot handle a text. Faults of disk, memory and services are none of these."""


class UnindexableText(InvalidInput):
    """A text makes the analysis for search fail; `fault` is the name of the error, without the text."""

    code = "unindexable_text"

    def __init__(self, fault: str, field: str = "text") -> None:
        super().__init__(
            field, f"cannot be analyzed: {fault}, an error of this program. Change the text, and report it"
        )
        self.fault = fault


class UnknownTokenizer(InvalidInput):
    """No tokenizer has the given `name`."""

    code = "unknown_tokenizer"

    def __init__(self, name: str) -> None:
        super().__init__(
            "tokenizer",
            f"{name!r} is unknown; use o200k_base, cl100k_base, hf:PATH or an estimator such as chars4_ceil",
        )
        self.name = name


class NotFound(ConspectusError):
    """Nothing of this `kind` and `name` exists, or the caller may not read it; `advice` says what to do."""

    code = "not_found"

    def __init__(self, kind: str, name: str, advice: str = "") -> None:
        super().__init__(f"no {kind} {name!r}; {advice}" if advice else f"no {kind} {name!r}")
        self.kind = kind
        self.name = name


class Unauthenticated(ConspectusError):
    """The key is missing, unknown, expired, revoked or of a disabled user; the message does not say which."""

    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__("a valid API key is needed: Authorization: Bearer KEY")


class InvalidToken(Unauthenticated):
    """A token of an identity provider is not valid here; the log of the server says why."""

    code = "invalid_token"

    def __init__(self) -> None:
        ConspectusError.__init__(self, "the token is not valid here")


class LoginFailed(Unauthenticated):
    """A login of the command line was refused by the identity provider, or has ended."""

    code = "login_failed"

    def __init__(self, reason: str) -> None:
        ConspectusError.__init__(self, f"{reason}; run: conspectus login --url URL")
        self.reason = reason


class PermissionDenied(ConspectusError):
    """The role or the scope of the key does not allow `action`; `needs` is what is required."""

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
    """The stored version is not the one that the caller read; read it again, then decide."""

    code = "precondition_failed"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name, "was changed meanwhile; read it again")


class DanglingEdges(InvalidInput):
    """Edges lead to nodes that are not in their graph; `missing` has the ids, each once."""

    code = "dangling_edges"

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__("edges", f"lead to unknown nodes: {_some(missing)}; add them first")
        self.missing = tuple(missing)


class ForkedEngine(ConspectusError):
    """The engine was opened before this process was forked; open another one here."""

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
    """No text can be read from content of this kind; trying again does not help."""

    code = "unsupported_content"


class FetchFailed(ConspectusError):
    """A web server gave no usable response; `status` is its HTTP status, if there was one.

    `passing` says that trying again later may help, `refused` that the server itself withholds the content:
    with 401, 403 or 404, or in the words of its protocol.
    """

    code = "fetch_failed"

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        status: int | None = None,
        passing: bool = False,
        refused: bool | None = None,
    ) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.status = status
        self.passing = passing
        self.refused = status in REFUSAL_STATUSES if refused is None else refused


class ForbiddenAddress(FetchFailed):
    """The address is inside this machine or network, and requests to it are not allowed."""

    code = "forbidden_address"

    def __init__(self, url: str) -> None:
        super().__init__(url, "leads to an address that is not public; the operator can allow it")


class AccessLost(ConspectusError):
    """The remote of a connection refuses access, so that its documents are hidden until a sync succeeds."""

    code = "access_lost"

    def __init__(self, refusal: object) -> None:
        super().__init__(f"{refusal}; give the connection access or other credentials, and sync it again")


class RequestBudgetSpent(ConspectusError):
    """A sync has sent as many requests to its remote as it may; the next sync continues."""

    code = "request_budget_spent"

    def __init__(self, budget: int) -> None:
        super().__init__(
            f"the sync has sent all {budget} requests that `sync_max_requests` allows; sync again to continue"
        )


class Overloaded(ConspectusError):
    """The server is overloaded; `what` names the limit, `retry_after` is in seconds."""

    code = "overloaded"

    def __init__(self, what: str, *, retry_after: float = 1.0) -> None:
        super().__init__(f"{what}; ask again in {retry_after:g} s")
        self.what = what
        self.retry_after = retry_after


class RateLimited(Overloaded):
    """The key has reached its limit of requests per minute, counted over all processes."""

    code = "rate_limited"

    def __init__(self, limit: int, *, retry_after: float) -> None:
        super().__init__(
            f"the key has reached its limit of {limit} requests per minute", retry_after=retry_after
        )
        self.limit = limit


class TooManyBodyBytes(RateLimited):
    """The bodies of a user's requests that are being read have too many bytes together."""

    code = "too_many_body_bytes"

    def __init__(self, limit: int) -> None:
        Overloaded.__init__(
            self,
            f"the bodies of your requests that are being read may have {limit} bytes together; send"
            " large ones one after the other",
        )
        self.limit = limit


class ServerUnavailable(ConspectusError):
    """The Conspectus server at `url` could not be reached, or its response is not valid."""

    code = "server_unavailable"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class MissingExtra(ConspectusError):
    """An optional dependency is missing; the message is the line that installs it.

    Without an `extra` of ours, the package itself is installed.
    """

    code = "missing_extra"

    def __init__(self, extra: str, package: str) -> None:
        requirement = f"'conspectus[{extra}]'" if extra else package
        super().__init__(f"this needs {package}: pip install {requirement}")
        self.extra = extra
        self.package = package


def optional(module: str, extra: str, package: str) -> Any:
    """A module that is an optional dependency, or imports one, when it is first needed.

    Raises MissingExtra, whose message installs the package by an extra of ours.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(extra, package) from error


Verdict = Literal["text", "answer", "service"]
"""What failed: this text, this answer, or this service. Only the last two are worth another attempt."""

TEXT_STATUSES: Final = frozenset({400, 413, 422})
"""Statuses by which a provider may refuse one text and accept another."""


class ProviderError(ConspectusError):
    """A model provider refused the request; trying again does not help.

    `status` is the HTTP status of its answer, if there was one. `verdict` is derived from it unless it is
    given.
    """

    code = "provider_error"

    def __init__(
        self, provider: str, reason: str, *, status: int | None = None, verdict: Verdict | None = None
    ) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider = provider
        self.reason = reason
        self.status = status
        by_status: Verdict = "text" if status is None or status in TEXT_STATUSES else "service"
        self.verdict: Verdict = verdict or by_status


class ProviderUnavailable(ProviderError):
    """A model provider cannot answer now; `retry_after` is in seconds where the provider gave it.

    The verdict `answer` says that it answered, but not with what was asked for.
    """

    code = "provider_unavailable"

    def __init__(
        self,
        provider: str,
        reason: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        verdict: Verdict = "service",
    ) -> None:
        super().__init__(provider, reason, status=status, verdict=verdict)
        self.retry_after = retry_after


class ChatError(ProviderError):
    """A chat model gave no complete answer; `reason` is for the operator, `user_message` for the user."""

    code = "LLM_ERROR"
    user_message: ClassVar[str] = "The language model failed to answer."


class ChatNotConfigured(ChatError):
    """No chat model is set."""

    code = "LLM_NOT_CONFIGURED"
    user_message = "No language model is configured; set CONSPECTUS_CHAT_MODEL."

    def __init__(self) -> None:
        super().__init__("chat model", "none is set; set CONSPECTUS_CHAT_MODEL, for instance to openai:gpt-5")


class ChatAuthFailed(ChatError):
    """The provider refused the key, or the account."""

    code = "LLM_AUTH_FAILED"
    user_message = "The provider of the language model rejected the API key of this server."


class ChatRateLimited(ChatError):
    """The provider received too many requests; `retry_after` is in seconds, if the provider gave it."""

    code = "LLM_RATE_LIMIT"
    user_message = "The provider of the language model is rate-limited or overloaded; try again later."

    def __init__(
        self, provider: str, reason: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(provider, reason, status=status)
        self.retry_after = retry_after


class ChatUnreachable(ChatError):
    """The provider could not be reached, closed the connection, or failed."""

    code = "LLM_CONNECTION_ERROR"
    user_message = "The connection to the language model failed."


class ChatTimedOut(ChatError):
    """The provider took longer than the settings allow."""

    code = "LLM_TIMEOUT"
    user_message = "The language model did not answer in time."


class ChatModelUnknown(ChatError):
    """The provider has no model of that name, or not for this account."""

    code = "LLM_MODEL_NOT_FOUND"
    user_message = "The configured language model does not exist."


class ChatTooLong(ChatError):
    """Prompt and answer are longer than the context window of the model."""

    code = "LLM_CONTEXT_TOO_LONG"
    user_message = "The conversation exceeds the context window of the language model."


class ChatBadAnswer(ChatError):
    """The response of the provider is not valid, or the model refused to answer."""

    code = "LLM_BAD_RESPONSE"
    user_message = "The language model returned no valid answer."


class ChatFiltered(ChatBadAnswer):
    """A content filter of the provider ended the answer; what came before it is not complete."""

    code = "LLM_CONTENT_FILTER"
    user_message = "A content filter of the language model's provider ended the answer."


class StorageError(ConspectusError):
    """A store failed; nothing was partly written."""

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


class StorageTooOld(StorageError):
    """The store at `path` was written before the schema had numbered versions."""

    code = "storage_too_old"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was written before 29 November 2026, and this version cannot read its tables."
            " It is unchanged. Export its memories and graphs with the version that wrote it, import them"
            " into a new store, and add documents and messages again; see Upgrade in the documentation"
        )
        self.path = path


class StoreClosed(StorageError):
    """The engine was closed, or its block has ended; open the store again."""

    code = "store_closed"

    def __init__(self) -> None:
        super().__init__("the store is closed; open it again with conspectus.open or conspectus.connect")


class ExtensionMissing(StorageError):
    """The database has no pgvector that can be used; the message says what an administrator has to do."""


class StorageBusy(StorageError):
    """Another process held the store for longer than the time limit; trying again is safe."""

    code = "storage_busy"


class WriteOutcomeUnknown(StorageBusy):
    """The connection was lost while a write was committed: it may or may not be stored."""

    code = "write_outcome_unknown"


class LockLost(StorageBusy):
    """The lease of this process has expired, and another process does the work now."""

    def __init__(self, work: str) -> None:
        super().__init__(f"another process may do this by now: {work}")
        self.work = work


class IndexReplaced(StorageError):
    """Another process has rebuilt the index; try again."""

    code = "index_replaced"


class RecordsDamaged(StorageError):
    """A record cannot be decoded; restore it from a backup."""

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
    text = ", ".join(repr(name) for name in names[:MAX_SHOWN])
    return f"{text} and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else text
