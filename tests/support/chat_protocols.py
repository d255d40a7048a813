"""Streamed answers as Anthropic, Google and Amazon Bedrock send them, for a ScriptedServer.

    async with ScriptedServer({"/v1/messages": anthropic(["Paris"], words=3)}) as server: ...

`words` are the tokens read; each piece is a token said.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.web_server import Answer


def anthropic(pieces: Sequence[str], *, words: int, reason: str = "end_turn") -> Answer:
    """Anthropic's messages, on `/v1/messages`."""
    usage = {"input_tokens": words, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": len(pieces)},
        },
        {"type": "message_stop"},
    ]
    frames = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Answer("".join(frames).encode(), type="text/event-stream")


def google(pieces: Sequence[str], *, words: int, reason: str = "STOP") -> Answer:
    """Google's Gemini, on `/v1beta/models/MODEL:streamGenerateContent`."""
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]} for piece in pieces
    ]
    counts = {
        "promptTokenCount": words,
        "candidatesTokenCount": len(pieces),
        "totalTokenCount": words + len(pieces),
    }
    chunks.append({"candidates": [{"finishReason": reason}], "usageMetadata": counts})
    frames = (f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks)
    return Answer("".join(frames).encode(), type="text/event-stream")


def bedrock(pieces: Sequence[str], *, words: int, reason: str = "end_turn") -> Answer:
    """Bedrock's ConverseStream, on `/model/MODEL/converse-stream`."""
    counts = {"inputTokens": words, "outputTokens": len(pieces), "totalTokens": words + len(pieces)}
    events: list[tuple[str, dict[str, Any]]] = [
        ("messageStart", {"role": "assistant"}),
        *(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}) for piece in pieces),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": reason}),
        ("metadata", {"usage": counts, "metrics": {"latencyMs": 1}}),
    ]
    return Answer(b"".join(_framed(*event) for event in events), type="application/vnd.amazon.eventstream")


def _framed(kind: str, content: Mapping[str, Any]) -> bytes:
    """An event in Amazon's binary form: lengths, headers and payload, each under a checksum."""
    headers_by_name = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_header(name, value) for name, value in headers_by_name.items())
    payload = json.dumps(content).encode()
    size = 16 + len(headers) + len(payload)
    lengths = size.to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    message = lengths + zlib.crc32(lengths).to_bytes(4, "big") + headers + payload
    return message + zlib.crc32(message).to_bytes(4, "big")


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + len(text).to_bytes(2, "big") + text
