"""Cohere's rerank models on Amazon Bedrock."""

from collections.abc import Sequence

from conspectus.model.retry_policy import RetryPolicy
from conspectus.providers.bedrock import PROVIDER, Bedrock
from conspectus.providers.request_logging import Calls, Note, drop
from conspectus.providers.rerank_response import RerankFormat, best
from conspectus.providers.rerankers import TOKENS_A_DOCUMENT
from conspectus.providers.vendor_api import sendable


class BedrockReranker:
    """A rerank model such as `cohere.rerank-v3-5:0`."""

    def __init__(
        self,
        model: str,
        *,
        endpoint_url: str | None = None,
        patience: RetryPolicy | None = None,
        timeout: float = 60.0,
        note: Note = drop,
    ) -> None:
        self._name = model
        self._bedrock = Bedrock(model, endpoint_url=endpoint_url, timeout=timeout)
        self._patience = patience or RetryPolicy()
        self._calls = Calls(note, self.model)

    @property
    def model(self) -> str:
        """The model as `bedrock:NAME`."""
        return f"{PROVIDER}:{self._name}"

    async def rerank(self, query: str, texts: Sequence[str], *, top_n: int) -> Sequence[tuple[int, float]]:
        """Places in `texts` with relevance, best first. Raises ProviderError, ProviderUnavailable."""
        if not texts or top_n < 1:
            return []
        wanted = min(top_n, len(texts))
        body = {
            "api_version": 2,
            "query": sendable(query),
            "documents": [sendable(text) for text in texts],
            "top_n": wanted,
            "max_tokens_per_doc": TOKENS_A_DOCUMENT,
        }

        async def ask() -> list[tuple[int, float]]:
            with self._calls.one("rerank", texts, query=query) as call:
                answer = await self._bedrock.invoke(body)
                call.tokens = answer.tokens
                entries = answer.body.get("results") if isinstance(answer.body, dict) else None
                return RerankFormat(PROVIDER, "relevance_score").read(entries, len(texts), least=wanted)

        return best(await self._patience.retry(ask), top_n)

    async def close(self) -> None:
        """Release the connections."""
        await self._bedrock.close()
