"""A chat request, checked, with its parts as they will be sent and the room that is left for context."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from conspectus.chat.history import trimmed
from conspectus.chat.prompt import NOTHING_FOUND, Prompt
from conspectus.chat.query_rewriting import standalone
from conspectus.chat.token_allocation import TokenAllowance, cost, room
from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.chat import ChatRequest, Turn
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.settings import Settings
from conspectus.text.clean import clean

MOST_TEMPERATURE = 2.0


@dataclass(frozen=True, slots=True)
class PreparedChat:
    """What will be sent, but for the context; `question` is what to look for, empty if nothing is."""

    prompt: Prompt
    room: TokenAllowance
    question: str
    count: CountTokens

    @property
    def frame(self) -> int:
        """What stands around a context, in tokens."""
        return self.prompt.added_by(NOTHING_FOUND, self.count) - self.count(NOTHING_FOUND)

    def added_by(self, context: str) -> int:
        """Tokens that a context adds to the prompt."""
        return self.prompt.added_by(context, self.count) if context else 0

    def fits(self, context: str) -> bool:
        """Whether a context costs no more than its share."""
        return self.added_by(context) <= self.room.context


def drafted(request: ChatRequest, settings: Settings, *, window: int, count: CountTokens) -> PreparedChat:
    """Check a request and share out the window. Raises InvalidInput or TooLarge."""
    message, history, since = _checked(request, settings)
    shares = request.allocation
    look = (
        settings.chat_use_context == "on" if request.inject is None else request.inject
    ) and shares.context > 0
    silent = shares.system == 0 and request.instructions is None
    prompt = Prompt.of(
        "" if silent else request.instructions, history, message, rules=look and shares.system > 0
    ).with_since(since)
    left = room(
        shares,
        window=window,
        system=cost(prompt.instructions, count),
        question=cost([prompt.last(""), *prompt.since], count),
    )
    sent = prompt.with_history(trimmed(prompt.history, count, left.history))
    said = [turn for turn in history if turn.role != "tool" and turn.content]
    question = standalone(message, said)[: settings.max_query_characters] if look else ""
    return PreparedChat(sent, left, question, count)


def _checked(request: ChatRequest, settings: Settings) -> tuple[str, Sequence[Message], Sequence[Message]]:
    message = clean(request.message)
    if not message.strip():
        raise InvalidInput("message", "is empty")
    if len(message) > settings.max_chat_characters:
        raise TooLarge("message", size=len(message), limit=settings.max_chat_characters, unit="characters")
    turns = (*request.history, *request.since)
    if len(turns) > settings.max_history_turns:
        raise TooLarge("history", size=len(turns), limit=settings.max_history_turns, unit="turns")
    if request.temperature is not None and not 0.0 <= request.temperature <= MOST_TEMPERATURE:
        raise InvalidInput("temperature", f"must be from 0 to {MOST_TEMPERATURE:g}")
    for turn in turns:
        answers = isinstance(turn, Turn) and turn.answers is not None
        if turn.role not in {"user", "assistant"} and not (turn.role == "tool" and answers):
            raise InvalidInput("history", f"{turn.role!r} is no role of a turn; there are user and assistant")
    cleaned = [replace(turn, content=clean(turn.content)) for turn in turns]
    return message, cleaned[: len(request.history)], cleaned[len(request.history) :]
