"""Create the adapter of a setting. Keys are found by the vendor's library."""

from typing import Final

from conspectus.errors import InvalidInput, ProviderError
from conspectus.model.retries import RetryPolicy
from conspectus.ports.web import Reranker
from conspectus.providers.bedrock import DEFAULT_DIMENSIONS, Bedrock, BedrockEmbedder
from conspectus.providers.chat_model import HostedChatModel
from conspectus.providers.hosted_embedder import HostedEmbedder
from conspectus.providers.request_log import Note
from conspectus.providers.rerankers import DocumentsReranker, HttpReranker, JsonService
from conspectus.settings import Settings, vendor_variable

BEDROCK: Final = "bedrock"
COHERE_ON_BEDROCK: Final = "cohere.embed-v4"
COHERE: Final = "https://api.cohere.com"
TOKENS_A_DOCUMENT: Final = 4096
"""Maximum tokens of a text that rerank 3.5 reads."""


def embedder_of(setting: str, *, timeout: float, note: Note) -> BedrockEmbedder | HostedEmbedder:
    """Return the embedder of `vendor:model@dimensions`.

    Raises InvalidInput for another form, ProviderError if the key or the region is not set, and MissingExtra
    if the vendor's library is not installed.
    """
    model, _, size = setting.partition("@")
    vendor, _, name = model.partition(":")
    cohere_on_bedrock = vendor == BEDROCK and COHERE_ON_BEDROCK in name
    if not size and cohere_on_bedrock:
        size = str(DEFAULT_DIMENSIONS)
    if not size.isdecimal() or not int(size):
        raise InvalidInput("embedder", f"{setting!r} needs the length of its vectors, as in {model}@1536")
    if cohere_on_bedrock:
        return BedrockEmbedder(name, int(size), timeout=timeout, note=note)
    return HostedEmbedder(model, int(size), timeout=timeout, note=note)


def reranker_of(setting: str, *, retry_policy: RetryPolicy, timeout: float, note: Note) -> Reranker:
    """Return the reranker of `cohere:MODEL`, `bedrock:MODEL`, or the URL of a `/rerank`, optionally with
    #MODEL.

    Raises InvalidInput for another form, ProviderError if the key or the region is not set, and MissingExtra
    if the vendor's library is not installed.
    """
    if setting.startswith(("http://", "https://")):
        url, _, model_of_server = setting.partition("#")
        server = JsonService("reranker", url, key=vendor_variable("CONSPECTUS_RERANKER_KEY"), timeout=timeout)
        fields = {"return_documents": False, **({"model": model_of_server} if model_of_server else {})}
        return HttpReranker(
            model_of_server or server.address, server, fields, retry_policy=retry_policy, note=note
        )
    vendor, _, model = setting.partition(":")
    if not model or vendor not in {BEDROCK, "cohere"}:
        raise InvalidInput("reranker", f"{setting!r} is not none, cohere:MODEL, bedrock:MODEL or a URL")
    on_bedrock = vendor == BEDROCK
    service = Bedrock(model, timeout=timeout) if on_bedrock else _open_cohere(timeout)
    named = {"api_version": 2} if on_bedrock else {"model": model}
    fields = {**named, "max_tokens_per_doc": TOKENS_A_DOCUMENT}
    return DocumentsReranker(setting, service, fields, retry_policy=retry_policy, note=note)


def _open_cohere(timeout: float) -> JsonService:
    key = vendor_variable("CO_API_KEY")
    if key is None:
        raise ProviderError("cohere", "no key is set; put it into CO_API_KEY")
    url = vendor_variable("CO_API_URL") or COHERE
    return JsonService("cohere", f"{url.rstrip('/')}/v2/rerank", key=key, timeout=timeout)


def chat_model_of(settings: Settings, *, note: Note) -> HostedChatModel:
    """Return the chat model of the settings, which connects on first use.

    Raises InvalidInput for a setting of another form, and MissingExtra if the vendor's library is missing.
    """
    return HostedChatModel(
        settings.chat_model,
        url=settings.chat_base_url,
        window=settings.chat_context_tokens,
        tokenizer=settings.chat_tokenizer,
        seconds=float(settings.chat_timeout_seconds),
        note=note,
    )
