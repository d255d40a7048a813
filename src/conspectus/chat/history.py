"""How much of a conversation goes into the prompt."""

from collections.abc import Sequence

from conspectus.chat.token_allocation import cost
from conspectus.model.results import Message
from conspectus.ports import CountTokens


def trimmed(history: Sequence[Message], count: CountTokens, most: int) -> tuple[Message, ...]:
    """The newest turns that cost at most `most` tokens in all, beginning with one of the user's.

    Each costs its role, its content and TOKENS_PER_MESSAGE. No turn is cut, and none is left out between two.
    """
    left = most
    first = len(history)
    for place in range(len(history) - 1, -1, -1):
        left -= cost([history[place]], count)
        if left < 0:
            break
        first = place
    kept = history[first:]
    start = next((place for place, turn in enumerate(kept) if turn.role == "user"), len(kept))
    return tuple(kept[start:])
