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

    def until(self, place: int) -> "Pieces":
        """The first pieces, without an end."""
        return replace(self, texts=self.texts[:place], words=None, reason=None)

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


def chunks(said: Pieces) -> Iterator[dict[str, Any]]:
    """The chunks: who speaks, each piece, the reason of the end, the tokens."""
    yield _chunk(said.model, {"role": "assistant", "content": ""})
    for text in said.texts:
        yield _chunk(said.model, {"content": text})
    if said.reason is not None:
        yield _chunk(said.model, {}, said.reason)
    if said.words is not None:
        count = len(said.texts)
        usage = {"prompt_tokens": said.words, "completion_tokens": count, "total_tokens": said.words + count}
        yield {**_chunk(said.model, {}), "choices": [], "usage": usage}


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
