"""How many tokens each part of a prompt may cost, so that prompt and answer never exceed a model's window."""

from collections.abc import Sequence
from dataclasses import dataclass

from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.chat import Allocation, Turn
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.text.tokens import TOKENS_PER_MESSAGE

SHRUNK = "The model's window is too small for what was allotted: "


@dataclass(frozen=True, slots=True)
class TokenAllowance:
    """What the history and the context may cost; `notice` says that a small window made it less."""

    history: int
    context: int
    notice: str | None = None


def cost(messages: Sequence[Message], count: CountTokens) -> int:
    """Tokens of messages as they are sent: role, content, and what models add to each."""
    return sum(TOKENS_PER_MESSAGE + count(each.role) + sum(map(count, _texts(each))) for each in messages)


def _texts(message: Message) -> list[str]:
    calls = message.calls if isinstance(message, Turn) else ()
    return [message.content, *(text for call in calls for text in (call.name, call.arguments))]


def room(allocation: Allocation, *, window: int, system: int, question: int) -> TokenAllowance:
    """What is left for history and context beside messages that cost `system` and `question`.

    A question over its share takes from the history, then from the context; where the window is too small for
    all, the history shrinks first, then the context. Raises InvalidInput for a negative share, TooLarge for
    instructions over theirs, and for a question that does not fit beside them and the answer.
    """
    for name in Allocation.__dataclass_fields__:
        if getattr(allocation, name) < 0:
            raise InvalidInput(f"allocation.{name}", "is a number of tokens, it cannot be negative")
    if system > allocation.system:
        raise TooLarge("instructions", size=system, limit=allocation.system, unit="tokens")
    left = window - system - allocation.answer
    if question > left:
        raise TooLarge("message", size=question, limit=max(left, 0), unit="tokens")
    over = max(question - allocation.question, 0)
    wanted = _taken(allocation.history, allocation.context, over)
    missing = max(sum(wanted) + question - left, 0)
    history, context = _taken(*wanted, missing)
    if not missing:
        return TokenAllowance(history, context)
    return TokenAllowance(
        history, context, f"{SHRUNK}{history} tokens are left for the history, {context} for context."
    )


def _taken(history: int, context: int, tokens: int) -> tuple[int, int]:
    from_history = min(history, tokens)
    return history - from_history, max(context - (tokens - from_history), 0)
