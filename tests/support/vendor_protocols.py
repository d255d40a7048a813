"""What model vendors expect and answer, with words in common for meaning: small, honest, deterministic."""

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from conspectus.ports import Vectors
from conspectus.testing.reranker_contract import overlap
from tests.support.model_servers import ModelCall, Say, failing, told
from tests.support.web_server import Answer

TEI_MOST = 32
GOOGLE_MOST = 100
GOOGLE_TASKS = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")


def vectors(texts: Sequence[str], dimensions: int, kind: str) -> list[list[float]]:
    """A vendor's vectors: of any length, of words, and other ones for documents than for questions."""
    return [_counted(text, dimensions, kind) for text in texts]


def _counted(text: str, dimensions: int, kind: str) -> list[float]:
    row = [0.25] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        row[zlib.crc32(f"{kind} {word}".encode()) % dimensions] += len(word)
    return row


def expected(texts: Sequence[str], dimensions: int, kind: str) -> Vectors:
    """The unit rows that an adapter must make of `vectors`."""
    rows = np.array(vectors(texts, dimensions, kind))
    units: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


def ranked(query: str, texts: Sequence[str], top_n: int | None, name: str) -> list[dict[str, Any]]:
    """Entries as rerank services send them, best first."""
    scored = [(overlap(query, text), number) for number, text in enumerate(texts)]
    ordered = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:top_n]
    return [{"index": number, name: score} for score, number in ordered]


def openai(*, dimensions: int = 8, key: str | None = None) -> dict[str, Say]:
    """Embeddings by OpenAI's protocol, `dimensions` long unless asked for other."""

    def embeddings(call: ModelCall) -> Answer:
        if key is not None and call.headers.get("authorization") != f"Bearer {key}":
            return failing(401, f"Incorrect API key provided: {call.headers.get('authorization')}")
        texts = call.body["input"]
        if not all(isinstance(text, str) and text for text in texts):
            return failing(400, "input cannot be an empty string")
        rows = vectors(texts, call.body.get("dimensions", dimensions), "any")
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        usage = {"prompt_tokens": 7 * len(texts), "total_tokens": 7 * len(texts)}
        return told({"object": "list", "data": data, "model": call.body["model"], "usage": usage})

    return {"/v1/embeddings": embeddings}


def google(model: str, *, dimensions: int = 8, key: str | None = None) -> dict[str, Say]:
    """Embeddings by the protocol of Google's Gemini API; the key comes in a header of its own."""

    def batch(call: ModelCall) -> Answer:
        api_key = call.headers.get("x-goog-api-key")
        if not api_key:
            return failing(403, "Method doesn't allow unregistered callers")
        if key is not None and api_key != key:
            return failing(400, f"API key not valid: {api_key}")
        requests = call.body["requests"]
        if len(requests) > GOOGLE_MOST:
            return failing(400, f"at most {GOOGLE_MOST} requests can be in one batch")
        if any(request["model"] != f"models/{model}" for request in requests):
            return failing(400, "the model of each request must be that of the batch")
        if any(request["taskType"] not in GOOGLE_TASKS for request in requests):
            return failing(400, "Invalid value at 'requests.task_type'")
        rows = [_google_vector(request, dimensions) for request in requests]
        return told({"embeddings": [{"values": row} for row in rows]})

    return {f"/v1beta/models/{model}:batchEmbedContents": batch}


def _google_vector(request: Mapping[str, Any], dimensions: int) -> list[float]:
    text = "".join(part["text"] for part in request["content"]["parts"])
    size = request.get("outputDimensionality", dimensions)
    return vectors([text], size, request["taskType"])[0]


def cohere(*, key: str | None = None) -> dict[str, Say]:
    """Cohere's rerank, version 2."""

    def rerank(call: ModelCall) -> Answer:
        if key is not None and call.headers.get("authorization") != f"Bearer {key}":
            return failing(401, f"invalid api token {call.headers.get('authorization')}")
        body = call.body
        if not body["query"] or not all(body["documents"]):
            return failing(400, "invalid request: query and documents must not be empty")
        results = ranked(body["query"], body["documents"], body.get("top_n"), "relevance_score")
        meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
        return told({"id": "1", "results": results, "meta": meta})

    return {"/v2/rerank": rerank}


def bedrock(model: str, *, answers: Say | None = None) -> dict[str, Say]:
    """Cohere's models by Bedrock's protocol; a signature must be there, and is believed."""

    def invoke(call: ModelCall) -> Answer:
        signed = call.headers.get("authorization", "")
        if not signed.startswith("AWS4-HMAC-SHA256 ") or "/bedrock/aws4_request" not in signed:
            return failing(403, "Missing Authentication Token")
        return (answers or _cohere_on_bedrock)(call)

    return {f"/model/{quote(model, safe='')}/invoke": invoke}


def _cohere_on_bedrock(call: ModelCall) -> Answer:
    body = call.body
    if "query" in body:
        if body.get("api_version") != 2:
            return failing(400, "Malformed input request: api_version is required")
        results = ranked(body["query"], body["documents"], body["top_n"], "relevance_score")
        return told({"results": results})
    if len(body["texts"]) > 96:
        return failing(400, "Malformed input request: at most 96 texts")
    rows = vectors(body["texts"], body["output_dimension"], body["input_type"])
    content = {"id": "1", "response_type": "embeddings_by_type", "embeddings": {"float": rows}}
    return told(content, X_Amzn_Bedrock_Input_Token_Count=str(5 * len(rows)))


def jina() -> dict[str, Say]:
    """The `/rerank` of Jina, which vLLM and others have too."""

    def rerank(call: ModelCall) -> Answer:
        body = call.body
        if "documents" not in body:
            return told({"detail": [{"loc": ["body", "documents"], "msg": "field required"}]}, 422)
        results = ranked(body["query"], body["documents"], body.get("top_n"), "relevance_score")
        usage = {"total_tokens": 3 * len(body["documents"])}
        return told({"model": body.get("model", "served"), "results": results, "usage": usage})

    return {"/v1/rerank": rerank}


def tei() -> dict[str, Say]:
    """The `/rerank` of Text Embeddings Inference, which takes 32 texts at once."""

    def rerank(call: ModelCall) -> Answer:
        body = call.body
        if "texts" not in body:
            message = "Failed to deserialize the JSON body into the target type: missing field `texts`"
            return Answer(message.encode(), 422)
        if len(body["texts"]) > TEI_MOST:
            words = f"batch size {len(body['texts'])} > maximum allowed batch size {TEI_MOST}"
            return told({"error": words, "error_type": "Validation"}, 413)
        entries = ranked(body["query"], body["texts"], None, "score")
        return told(entries, X_Compute_Tokens=str(2 * len(entries)))

    return {"/rerank": rerank}
