"""The chat models of vendors, as pydantic-ai makes them, with the keys and addresses that belong to them."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from conspectus.errors import InvalidInput, MissingExtra
from conspectus.providers.bedrock import runtime_client
from conspectus.settings import vendor_variable


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: the extra and the package that reach it, and the variable that has its key."""

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
OLLAMA: Final = "http://localhost:11434/v1"
NO_KEY: Final = "none"
WHOLE: Final = {"openai_chat_streaming_requires_finish_reason": True}
"""An answer that ends without saying that it ended was cut."""
COMPATIBLE: Final = {**WHOLE, "openai_chat_supports_max_completion_tokens": False}
"""Other servers with OpenAI's protocol know its older name for the most tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which model is asked and where; `url` is that of another server with OpenAI's protocol."""

    vendor: str
    model: str
    url: str

    @classmethod
    def of(cls, setting: str, url: str = "") -> "Choice":
        """What a setting names. Raises InvalidInput for no known form, MissingExtra for a missing library."""
        vendor, _, model = setting.partition(":")
        if not model or vendor not in VENDORS:
            vendors = ", ".join(VENDORS)
            raise InvalidInput("chat_model", f"{setting!r} is not none or vendor:model, of {vendors}")
        if url and not url.startswith(("http://", "https://")):
            raise InvalidInput("chat_base_url", "must begin with http:// or https://")
        chosen = cls(vendor, model, url)
        chosen.require()
        return chosen

    def require(self) -> None:
        """Raise MissingExtra if what reaches the vendor is not installed; nothing is imported."""
        if find_spec("pydantic_ai") is None:
            raise MissingExtra(self.needed.extra, "pydantic-ai-slim")
        top, _, inner = self.needed.package.partition(".")
        if find_spec(top) is None or (inner and find_spec(self.needed.package) is None):
            raise MissingExtra(self.needed.extra, f"pydantic-ai-slim[{self.needed.extra}]")

    @property
    def needed(self) -> Vendor:
        """What reaches the model: of another's server, what OpenAI's protocol needs."""
        vendor = VENDORS[self.vendor]
        return Vendor("openai", "openai", vendor.key) if self.url else vendor

    @property
    def transport_error(self) -> type[Exception]:
        """The base of the errors that pydantic-ai lets through from the library below it."""
        below = ("httpx2", "HTTPError")
        if self.vendor == "bedrock" and not self.url:
            below = ("botocore.exceptions", "BotoCoreError")
        found: type[Exception] = getattr(importlib.import_module(below[0]), below[1])
        return found

    def connect(self, timeout: float) -> tuple[Any, Any]:
        """The model and its connection. Raises the library's UserError where a key or a region is missing."""
        if self.url or self.vendor == "ollama":
            connection = self._compatible()
            return self._speaking_openai(connection, COMPATIBLE), connection
        if self.vendor == "bedrock":
            client = runtime_client(timeout=timeout)
            connection = library("providers.bedrock").BedrockProvider(bedrock_client=client)
        else:
            connection = library("providers").infer_provider(self.vendor)
        if self.vendor == "openai":
            return self._speaking_openai(connection, WHOLE), connection
        name = f"{self.vendor}:{self.model}"
        return library("models").infer_model(name, provider_factory=lambda _: connection), connection

    def _compatible(self) -> Any:
        url = self.url or vendor_variable("OLLAMA_BASE_URL") or OLLAMA
        key = vendor_variable(self.needed.key) or NO_KEY
        provider = library("providers.openai_compatible").OpenAICompatibleProvider
        return provider(self.vendor, base_url=url, api_key=key)

    def _speaking_openai(self, connection: Any, profile: Mapping[str, bool]) -> Any:
        model = library("models.openai").OpenAIChatModel
        return model(self.model, provider=connection, profile=dict(profile))


def library(module: str) -> Any:
    """A module of pydantic-ai, imported when it is first needed."""
    return importlib.import_module(f"pydantic_ai.{module}")
