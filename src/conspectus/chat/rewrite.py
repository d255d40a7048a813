"""What to search for when a message leans on what was said before."""

from collections.abc import Sequence

from conspectus.model.results import Message


def standalone(message: str, history: Sequence[Message]) -> str:
    """The message as it stands."""
    return message
