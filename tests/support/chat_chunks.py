"""The chunks of OpenAI's streaming chat completions, as a server sends them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is said; `words` are the tokens read, told at the end unless None; without a `reason` no end."""

    model: str
    texts: tuple[str, ...]
    words: int | None
    reason: str | None = "stop"

    def until(self, end: int) -> "Pieces":
        """The first pieces, without an end."""
        return replace(self, texts=self.texts[:end], words=None, reason=None)

    def ending(self, trouble: str) -> Iterator[str]:
        """The data that end an answer in trouble."""
        if trouble == "garbage":
            yield "{ this is not JSON"
        if trouble == "error":
            yield dump({"error": {"message": "planned", "type": "server_error", "code": "server_error"}})
        if trouble in {"empty", "filtered"}:
            reason = "stop" if trouble == "empty" else "content_filter"
            yield dump(_chunk(self.model, {}, reason))
            yield "[DONE]"


def chunks(pieces: Pieces) -> Iterator[dict[str, Any]]:
    """The chunks: who speaks, each piece, the reason of the end, the tokens."""
    yield _chunk(pieces.model, {"role": "assistant", "content": ""})
    for text in pieces.texts:
        yield _chunk(pieces.model, {"content": text})
    if pieces.reason is not None:
        yield _chunk(pieces.model, {}, pieces.reason)
    if pieces.words is not None:
        count = len(pieces.texts)
        usage = {
            "prompt_tokens": pieces.words,
            "completion_tokens": count,
            "total_tokens": pieces.words + count,
        }
        yield {**_chunk(pieces.model, {}), "choices": [], "usage": usage}


def dump(content: Any) -> str:
    """As JSON without a line break."""
    return json.dumps(content, ensure_ascii=False)


def _chunk(model: str, delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [choice],
    }
