"""Validate a chat request, and prepare its prompt with the history that fits."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus.chat.allocation import TokenAllowance, cost, count_tokens_left, options_cost, trim_history
from conspectus.chat.prompt import NOTHING_FOUND, Prompt
from conspectus.chat.query_rewriting import standalone
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.chat import (
    ChatRequest,
    Turn,
)
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, require_fitting


@dataclass(frozen=True, slots=True)
class PreparedChat:
    """The prompt without context. `question` is the search query, empty if no search is needed."""

    prompt: Prompt
    room: TokenAllowance
    question: str
    count: CountTokens

    @property
    def frame(self) -> int:
        """The tokens around a context."""
        return self.prompt.count_added(NOTHING_FOUND, self.count) - self.count(NOTHING_FOUND)

    def count_added(self, context: str) -> int:
        """Return the tokens that a context adds to the prompt."""
        return self.prompt.count_added(context, self.count) if context else 0

    def fits(self, context: str) -> bool:
        """Return whether a context fits into its share."""
        return self.count_added(context) <= self.room.context


def draft_chat(request: ChatRequest, settings: Settings, *, window: int, count: CountTokens) -> PreparedChat:
    """Validate a request and divide the context window. Raises InvalidInput or TooLarge."""
    message, history, since = _check(request, settings)
    shares = request.allocation
    look = (
        settings.chat_use_context == "on" if request.use_context is None else request.use_context
    ) and shares.context > 0
    silent = shares.system == 0 and request.instructions is None
    prompt = Prompt.of(
        "" if silent else request.instructions, history, message, rules=look and shares.system > 0
    ).with_since(since)
    prompt = replace(prompt, leads=request.session is not None)
    system, question = cost(prompt.instructions, count), cost([prompt.last(""), *prompt.since], count)
    options = options_cost(request.options, count)
    free = max(window - system - question - shares.answer, 0)
    if options > free:
        rest = f"instructions ({system} tokens), message ({question}) and answer ({shares.answer})"
        raise TooLarge(
            "tools",
            size=options,
            limit=free,
            unit="tokens with the schema of the answer",
            advice=f"{rest} take the rest of {window}; send fewer, or choose a model with a larger window",
        )
    left = count_tokens_left(shares, window=window - options, system=system, question=question)
    sent = prompt.with_history(trim_history(prompt.history, count, left.history))
    spoken_turns = [turn for turn in history if turn.role != "tool" and turn.content]
    query = standalone(message, spoken_turns)[: settings.max_query_characters] if look else ""
    return PreparedChat(sent, left, query, count)


def _check(request: ChatRequest, settings: Settings) -> tuple[str, Sequence[Message], Sequence[Message]]:
    message = clean(request.message)
    if not message.strip():
        raise InvalidInput("message", "is empty")
    if len(message) > settings.max_chat_characters:
        raise TooLarge("message", size=len(message), limit=settings.max_chat_characters, unit="characters")
    require_fitting("session", request.session or "", NAME_BYTES)
    turns = (*request.history, *request.since)
    if len(turns) > settings.max_history_turns:
        raise TooLarge("history", size=len(turns), limit=settings.max_history_turns, unit="turns")
    for turn in turns:
        answers = isinstance(turn, Turn) and turn.answers is not None
        if turn.role not in {"user", "assistant"} and not (turn.role == "tool" and answers):
            raise InvalidInput(
                "history", f"{turn.role!r} is not a role of a turn; expected user or assistant"
            )
    cleaned = [replace(turn, content=clean(turn.content)) for turn in turns]
    return message, cleaned[: len(request.history)], cleaned[len(request.history) :]
