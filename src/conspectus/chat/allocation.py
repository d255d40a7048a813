"""Divide the context window of a chat model between instructions, history, context and answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge
from conspectus.model.chat import (
    Allocation,
    ModelOptions,
    Turn,
)
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.text.tokens import TOKENS_PER_MESSAGE

TOKENS_PER_TOOL = 12
"""Tokens that models add around a tool."""
TOKENS_PER_FORM = 100
"""Tokens of the words that ask for an answer as JSON."""


@dataclass(frozen=True, slots=True)
class TokenAllowance:
    """The tokens for history and context. `notice` says that a small context window reduced them."""

    history: int
    context: int
    notice: str | None = None


def cost(messages: Sequence[Message], count: CountTokens) -> int:
    """Return the tokens of messages: role, content, and the overhead of the model per message."""
    return sum(
        TOKENS_PER_MESSAGE + count(message.role) + sum(map(count, _texts_of(message))) for message in messages
    )


def _texts_of(message: Message) -> list[str]:
    if not isinstance(message, Turn):
        return [message.content]
    calls = (text for call in message.calls for text in (call.id, call.name, call.arguments))
    answered = () if message.answers is None else (message.answers.id, message.answers.name)
    return [message.content, *calls, *answered]


def options_cost(options: ModelOptions, count: CountTokens) -> int:
    """Return the tokens of the tools with their schemas, and of the form of the answer."""
    total = 0
    for tool in options.tools:
        texts = (tool.name, tool.description or "", _as_json(tool.parameters))
        total += TOKENS_PER_TOOL + sum(map(count, texts))
    if options.form is not None:
        form = options.form
        texts = (form.name or "", form.description or "", _as_json(form.schema or {}))
        total += TOKENS_PER_FORM + sum(map(count, texts))
    return total


def _as_json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False)


def count_tokens_left(allocation: Allocation, *, window: int, system: int, question: int) -> TokenAllowance:
    """Return the tokens left for history and context beside `system` and `question`, in tokens.

    If the question exceeds its share, it reduces the history, then the context. If the context window is too
    small for all, the history is reduced first, then the context. Raises TooLarge if the instructions exceed
    their share, or if the question does not fit beside them and the answer.
    """
    if system > allocation.system:
        raise TooLarge("instructions", size=system, limit=allocation.system, unit="tokens")
    left = window - system - allocation.answer
    if question > left:
        rest = (
            f"instructions ({system} tokens) and the answer ({allocation.answer}) take the rest of {window}"
        )
        raise TooLarge(
            "message",
            size=question,
            limit=max(left, 0),
            unit="tokens",
            advice=f"{rest}; shorten it, or choose a model with a larger context window",
        )
    over = max(question - allocation.question, 0)
    shares = _reduce_shares(allocation.history, allocation.context, over)
    missing = max(sum(shares) + question - left, 0)
    history, context = _reduce_shares(*shares, missing)
    if not missing:
        return TokenAllowance(history, context)
    return TokenAllowance(
        history,
        context,
        "The context window of the model is smaller than the allocation. "
        f"The history gets {history} tokens and the context {context}.",
    )


def _reduce_shares(history: int, context: int, tokens: int) -> tuple[int, int]:
    from_history = min(history, tokens)
    return history - from_history, max(context - (tokens - from_history), 0)


def trim_history(history: Sequence[Message], count: CountTokens, maximum: int) -> tuple[Message, ...]:
    """Return the newest turns of at most `most` tokens in all, starting with a user turn.

    Each turn costs its role, its content and TOKENS_PER_MESSAGE. Turns are not truncated, and none is
    skipped.
    """
    left = maximum
    first = len(history)
    for position in range(len(history) - 1, -1, -1):
        left -= cost([history[position]], count)
        if left < 0:
            break
        first = position
    newest = history[first:]
    start = next((position for position, turn in enumerate(newest) if turn.role == "user"), len(newest))
    return tuple(newest[start:])
