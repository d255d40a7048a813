"""Vendors of chat models, the model of an address, and the errors of their library."""

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatError,
    ChatFiltered,
    ChatModelUnknown,
    ChatRateLimited,
    ChatTimedOut,
    ChatTooLong,
    ChatUnreachable,
    InvalidInput,
    MissingExtra,
)
from conspectus.providers.bedrock import runtime_client
from conspectus.settings import vendor_variable

Kind: TypeAlias = tuple[str, type[ChatError], str]

KINDS: Final[tuple[Kind, ...]] = (
    ("ModelContextWindowExceededError", ChatTooLong, "prompt and answer exceed the model's context window"),
    ("ModelAuthenticationError", ChatAuthFailed, "authentication failed, or the key has no permission"),
    ("ModelQuotaExceededError", ChatAuthFailed, "the quota of the account is used up"),
    ("ModelNotFoundError", ChatModelUnknown, "unknown model or wrong address"),
    ("ModelRateLimitError", ChatRateLimited, "rate limit exceeded"),
    ("ModelOverloadedError", ChatRateLimited, "the service is overloaded"),
    ("ModelTimeoutError", ChatTimedOut, "the connection timed out"),
    ("ModelConnectionError", ChatUnreachable, "the connection failed"),
    ("ModelUnavailableError", ChatUnreachable, "the service is unavailable"),
    ("ModelServerError", ChatUnreachable, "it failed"),
    ("ModelRequestRejectedError", ChatError, "the request was refused"),
    ("UnexpectedModelBehavior", ChatBadAnswer, "unexpected response"),
)
"""Exceptions of the library, most specific first, with the error and message for each."""

_NO_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})
_FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})
_MAX_WAIT_SECONDS: Final = 86_400.0


def chat_error(provider: str, fault: Exception, library: Any) -> ChatError:
    """Return the error for an exception of the library, given its module of exceptions."""
    status = getattr(fault, "status_code", None)
    if type(fault).__name__ in _NO_CREDENTIALS:
        return ChatAuthFailed(provider, "no credentials are set")
    if getattr(fault, "provider_error_code", None) in _FILTERED:
        return ChatFiltered(provider, "the model refused to answer", status=status)
    if isinstance(fault.__cause__ or fault, ValueError):
        return ChatBadAnswer(provider, "the response cannot be read", status=status)
    for name, kind, reason in KINDS:
        if isinstance(fault, getattr(library, name)):
            reason = _with_status(reason, status)
            if kind is not ChatRateLimited:
                return kind(provider, reason, status=status)
            wait = getattr(fault, "retry_after", None)
            wait = None if wait is None else min(float(wait), _MAX_WAIT_SECONDS)
            return ChatRateLimited(provider, reason, status=status, retry_after=wait)
    return ChatUnreachable(provider, _with_status("the answer is incomplete", status), status=status)


def _with_status(reason: str, status: int | None) -> str:
    return reason if status is None else f"HTTP {status}: {reason}"


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: the extra and the package that it needs, and the environment variable of its key."""

    extra: str
    package: str
    key: str


VENDORS: Final = {
    "openai": Vendor("openai", "openai", "OPENAI_API_KEY"),
    "anthropic": Vendor("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
    "google": Vendor("google", "google.genai", "GOOGLE_API_KEY"),
    "bedrock": Vendor("bedrock", "boto3", "AWS_BEARER_TOKEN_BEDROCK"),
    "ollama": Vendor("openai", "openai", "OLLAMA_API_KEY"),
}
EXPLICIT_CACHES: Final = frozenset({"anthropic", "bedrock"})
OLLAMA: Final = "http://localhost:11434/v1"
NO_KEY: Final = "none"
WHOLE: Final = {"openai_chat_streaming_requires_finish_reason": True}
"""Finish reasons. A response that ends without one is treated as incomplete."""
COMPATIBLE: Final = {**WHOLE, "openai_chat_supports_max_completion_tokens": False}
"""The older name of the limit of completion tokens, which other OpenAI-compatible servers know."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The model and its address. `url` is that of another OpenAI-compatible server."""

    vendor: str
    model: str
    url: str

    @classmethod
    def of(cls, setting: str, url: str = "") -> "Choice":
        """Parse a setting. Raises InvalidInput for an unknown form, MissingExtra for a missing library."""
        vendor, _, model = setting.partition(":")
        if not model or vendor not in VENDORS:
            vendors = ", ".join(VENDORS)
            raise InvalidInput("chat_model", f"{setting!r} is not none or vendor:model, of {vendors}")
        if url and not url.startswith(("http://", "https://")):
            raise InvalidInput("chat_base_url", "must begin with http:// or https://")
        choice = cls(vendor, model, url)
        choice.require()
        return choice

    def require(self) -> None:
        """Raise MissingExtra if the vendor's library is not installed. Nothing is imported."""
        if find_spec("pydantic_ai") is None:
            raise MissingExtra(self.needed.extra, "pydantic-ai-slim")
        top, _, inner = self.needed.package.partition(".")
        if find_spec(top) is None or (inner and find_spec(self.needed.package) is None):
            raise MissingExtra(self.needed.extra, f"pydantic-ai-slim[{self.needed.extra}]")

    @property
    def needed(self) -> Vendor:
        """Return the connection arguments of the model; for another server, those of the OpenAI protocol."""
        vendor = VENDORS[self.vendor]
        return Vendor("openai", "openai", vendor.key) if self.url else vendor

    @property
    def caches(self) -> bool:
        """Whether the vendor caches what a request marks; others cache by themselves, or not at all."""
        return self.vendor in EXPLICIT_CACHES and not self.url

    @property
    def transport_error(self) -> type[Exception]:
        """Return the base class of transport errors that pydantic-ai does not convert."""
        below = ("httpx2", "HTTPError")
        if self.vendor == "bedrock" and not self.url:
            below = ("botocore.exceptions", "BotoCoreError")
        error_class: type[Exception] = getattr(importlib.import_module(below[0]), below[1])
        return error_class

    def connect(self, timeout: float) -> tuple[Any, Any]:
        """Return the model and its connection. Raises the library's UserError without a key or region."""
        if self.url or self.vendor == "ollama":
            url = self.url or vendor_variable("OLLAMA_BASE_URL") or OLLAMA
            key = vendor_variable(self.needed.key) or NO_KEY
            provider = library("providers.openai_compatible").OpenAICompatibleProvider
            connection = provider(self.vendor, base_url=url, api_key=key)
            return self._make_openai_model(connection, COMPATIBLE), connection
        if self.vendor == "bedrock":
            client = runtime_client(timeout=timeout)
            connection = library("providers.bedrock").BedrockProvider(bedrock_client=client)
        else:
            connection = library("providers").infer_provider(self.vendor)
        if self.vendor == "openai":
            return self._make_openai_model(connection, WHOLE), connection
        name = f"{self.vendor}:{self.model}"
        return library("models").infer_model(name, provider_factory=lambda _: connection), connection

    def _make_openai_model(self, connection: Any, profile: Mapping[str, bool]) -> Any:
        model = library("models.openai").OpenAIChatModel
        return model(self.model, provider=connection, profile=dict(profile))


def library(module: str) -> Any:
    """Return a module of pydantic-ai, imported on first use."""
    return importlib.import_module(f"pydantic_ai.{module}")
