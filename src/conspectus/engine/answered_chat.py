"""A chat while it is answered, and the answer record that it leaves."""

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime

from conspectus.deferred import dataclass
from conspectus.engine.answer_parts import options_of_chat
from conspectus.model.answers import AnswerCandidate, AnswerRecord, AnswerSummary
from conspectus.model.chat import ChatRequest, Citations, Failure, Looked
from conspectus.model.results import Citation, Message
from conspectus.text.clean import clean


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The context that a model was given: its text, what it cites, and its candidates."""

    text: str
    outcome: Looked
    tokens: int
    citations: tuple[Citation, ...]
    candidates: tuple[AnswerCandidate, ...]
    documents: frozenset[str]
    confidence: float


@dataclass(slots=True)
class AnsweredChat:
    """A request with its prompt and the pieces of the answer so far."""

    request: ChatRequest
    began: datetime
    prompt: Sequence[Message]
    context: AnswerContext
    pieces: list[str] = field(default_factory=list)
    has_ended: bool = False

    @property
    def earlier_answers(self) -> tuple[str, ...]:
        """The earlier answers of the model in the conversation, which this one may repeat."""
        turns = (*self.request.history, *self.request.since)
        return tuple(clean(turn.content) for turn in turns if turn.role == "assistant" and turn.content)

    @property
    def has_results_of_tools(self) -> bool:
        """Whether the prompt has results of tools, which may be any texts."""
        return any(turn.role == "tool" for turn in (*self.request.history, *self.request.since))

    def record(
        self, beginning: AnswerSummary, model: str, tokenizer: str, end: Citations | Failure
    ) -> AnswerRecord:
        """Return the record of the chat, which an event ends."""
        self.has_ended = True
        context, request = self.context, self.request
        citations = end if isinstance(end, Citations) else Citations(())
        return AnswerRecord(
            summary=replace(
                beginning,
                created=self.began,
                question=clean(request.message),
                collection=request.collection,
                outcome=context.outcome,
                passages=len(context.citations),
                tokens=context.tokens,
                model=model,
                failure=end.code if isinstance(end, Failure) else "",
            ),
            options=options_of_chat(request, tokenizer),
            text=context.text,
            citations=context.citations,
            candidates=context.candidates,
            prompt=tuple(Message(message.role, message.content) for message in self.prompt),
            answer=clean("".join(self.pieces)),
            cited=tuple(source.number for source in citations.cited),
            unknown=citations.unknown,
            confidence=context.confidence,
        )
