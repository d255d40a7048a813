"""A chat model that answers prompts about documents, with stored answers, retries and a token budget."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import field, replace
from typing import Final, Protocol

from conspectus.deferred import dataclass
from conspectus.errors import ChatBadAnswer, ChatError, ChatRateLimited, ChatTimedOut, ChatUnreachable
from conspectus.model.chat import Delta, Usage
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Metadata
from conspectus.model.retries import RetryPolicy
from conspectus.ports import CountTokens
from conspectus.ports.chat import ChatModel
from conspectus.ports.streams import NewSummary, Summaries
from conspectus.settings import Settings
from conspectus.streams.json_schema_output import Unsatisfied
from conspectus.streams.summarizer import CaptionText, SummaryPrompt
from conspectus.streams.summary_runner import NotStored
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id
from conspectus.text.prompt_frame import escape_text
from conspectus.text.tokens import TOKENS_PER_MESSAGE

NO_ANSWER: Final = (ChatRateLimited, ChatUnreachable, ChatTimedOut)
RETRIED: Final = (*NO_ANSWER, ChatBadAnswer)
"""Errors after which the same prompt is sent again."""
MAX_FAILURES: Final = 3
"""Consecutive prompts without an answer after which the model is not called any more."""
RETRY_PROMPT: Final = (
    "Your last answer could not be used: {reason}. Answer again, in the form that is asked for."
)


@dataclass(frozen=True, slots=True)
class AnswerStore:
    """Where answers about one source by one recipe are stored, with the fingerprints of its documents."""

    store: Summaries
    source: SourceId
    recipe: str
    fingerprints: Mapping[DocumentId, str]


class BudgetSpent(Exception):
    """A call might use more tokens than are left."""


@dataclass(slots=True)
class TokenBudget:
    """The tokens of prompts and answers that calls may use.

    A running call counts as the tokens of its prompt and of the longest answer it may have.
    """

    limit: int
    count: CountTokens
    used: int = 0

    def reserve(self, prompt: SummaryPrompt) -> int:
        """Reserve the tokens of a call; return those of its prompt. Raises BudgetSpent."""
        prompt_tokens = sum(self.count(message.content) + TOKENS_PER_MESSAGE for message in prompt.messages)
        if self.used + prompt_tokens + prompt.max_tokens > self.limit:
            raise BudgetSpent
        self.used += prompt_tokens + prompt.max_tokens
        return prompt_tokens

    def settle(self, prompt: SummaryPrompt, prompt_tokens: int, answer: str, usage: Usage | None) -> None:
        """Replace the reservation of a call by the tokens that it used, counted here if it did not say."""
        spent = prompt_tokens + self.count(answer) if usage is None else usage.input + usage.output
        self.used += spent - prompt_tokens - prompt.max_tokens


class AnswerForm(Protocol):
    """The JSON form that answers must have."""

    def read(self, answer: str) -> Metadata:
        """Parse an answer. Raises Unsatisfied."""


@dataclass(slots=True)
class SummaryModel:
    """Answers the prompts of one request from the store, or with a chat model.

    `calls` counts the calls of the model, and `used` are the names of the answers. With `reading`, the model
    is not called. With a `budget`, calls beyond it raise BudgetSpent. `unanswered` are the errors of
    consecutive prompts without an answer.
    """

    model: ChatModel
    answers: AnswerStore
    form: AnswerForm | None
    retries: RetryPolicy
    turns: asyncio.Semaphore
    reading: bool = False
    budget: TokenBudget | None = None
    calls: int = 0
    used: set[str] = field(default_factory=set)
    unanswered: list[ChatError] = field(default_factory=list)

    async def ask(self, prompt: SummaryPrompt) -> CaptionText:
        """Return the stored answer, or a new one, which is stored.

        Raises ChatError, BudgetSpent, PreconditionFailed if a document has changed, or NotStored.
        """
        name = self.name_of(prompt)
        text = await self.answers.store.text(name)
        if text is None:
            if self.reading:
                raise NotStored
            async with self.turns:
                text = await self._ask_with_retries(prompt)
                captions = tuple((caption, self.answers.fingerprints[caption]) for caption in prompt.captions)
                new = NewSummary(name, self.answers.recipe, text, captions, prompt.parts)
                await self.answers.store.add(self.answers.source, new)
        self.used.add(name)
        return CaptionText(name, text)

    async def _ask_with_retries(self, prompt: SummaryPrompt) -> str:
        """Return a usable answer, retrying as long as that may help."""
        attempt, request = 1, prompt
        while True:
            if len(self.unanswered) >= MAX_FAILURES:
                raise self.unanswered[-1]
            try:
                text = await self._call_model(request)
            except RETRIED as fault:
                await self.retries.sleep(self._seconds_to_retry(attempt, fault))
                attempt, request = attempt + 1, _with_reason(prompt, fault)
                continue
            self.unanswered.clear()
            return text

    def _seconds_to_retry(self, attempt: int, fault: ChatError) -> float:
        """Return the seconds until the next attempt. Raises the error after the last one."""
        wait = self.retries.wait(attempt - 1, getattr(fault, "retry_after", None))
        if attempt >= self.retries.attempts or wait > self.retries.max_wait:
            if isinstance(fault, NO_ANSWER):
                self.unanswered.append(fault)
            raise fault
        return wait

    async def _call_model(self, prompt: SummaryPrompt) -> str:
        prompt_tokens = self.budget.reserve(prompt) if self.budget is not None else 0
        self.calls += 1
        answer = ""
        usage: Usage | None = None
        try:
            stream = self.model.stream(prompt.messages, max_tokens=prompt.max_tokens)
            async with aclosing(stream) as events:
                async for event in events:
                    answer += event.text if isinstance(event, Delta) else ""
                    usage = event if isinstance(event, Usage) else usage
        finally:
            if self.budget is not None:
                self.budget.settle(prompt, prompt_tokens, answer, usage)
        text = clean(answer).strip()
        if not text:
            raise ChatBadAnswer(self.model.name, "the answer is empty")
        if self.form is None:
            return text
        try:
            return json.dumps(dict(self.form.read(text)), ensure_ascii=False)
        except Unsatisfied as fault:
            raise ChatBadAnswer(self.model.name, str(fault)) from fault

    def name_of(self, prompt: SummaryPrompt) -> str:
        """Return a name that is equal for equal prompts about equal captions to the same model."""
        messages = [(message.role, message.content) for message in prompt.messages]
        identity = [self.answers.source, self.model.name, messages, prompt.captions, prompt.parts]
        return stable_id("summary", json.dumps(identity))


def _with_reason(prompt: SummaryPrompt, fault: ChatError) -> SummaryPrompt:
    """Add the error of the last answer to the prompt."""
    if not isinstance(fault, ChatBadAnswer):
        return prompt
    last = prompt.messages[-1]
    reason = RETRY_PROMPT.format(reason=escape_text(fault.reason))
    return replace(
        prompt, messages=(*prompt.messages[:-1], replace(last, content=f"{last.content}\n\n{reason}"))
    )


def summary_retries(settings: Settings) -> RetryPolicy:
    """Return how calls of the chat model are retried in the background."""
    longest = float(settings.embed_max_backoff_seconds)
    first = settings.job_backoff_ms / 1_000
    return RetryPolicy(max(1, settings.summary_max_attempts), first_wait=first, max_wait=longest)
