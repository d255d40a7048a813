"""Asking a model for summaries: each is kept as soon as it is there, and none is asked for that is kept."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final
from xml.sax.saxutils import escape

from conspectus.errors import ChatBadAnswer, ChatError, ChatRateLimited, ChatTimedOut, ChatUnreachable
from conspectus.model.chat import Delta
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.retry_policy import RetryPolicy
from conspectus.ports.chat import ChatModel
from conspectus.ports.summaries import NewSummary, Summaries
from conspectus.streams.summarizer import CaptionText, JsonSchemaOutput, SummaryPrompt, Unsatisfied
from conspectus.streams.summary_runner import NotKept
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id
from conspectus.text.prompt_escaping import disarm

SILENT: Final = (ChatRateLimited, ChatUnreachable, ChatTimedOut)
PASSING: Final = (*SILENT, ChatBadAnswer)
"""Errors after which the same question may be answered."""
MOST_SILENCE: Final = 3
"""Questions in a row that a model may leave unanswered before it is asked nothing more."""
AGAIN: Final = "Your last answer could not be used: {reason}. Answer again, in the form that is asked for."


@dataclass(frozen=True, slots=True)
class SummaryBatch:
    """Where summaries are kept: under which stream and request, and what its captions are now."""

    store: Summaries
    source: SourceId
    recipe: str
    fingerprints: Mapping[DocumentId, str]


@dataclass(slots=True)
class SummaryModel:
    """Answers the questions of one request; `calls` and `used` say what that took.

    With `reading`, nothing is asked of the model.
    """

    model: ChatModel
    paper: SummaryBatch
    form: JsonSchemaOutput | None
    patience: RetryPolicy
    turns: asyncio.Semaphore
    reading: bool = False
    calls: int = 0
    used: set[str] = field(default_factory=set)
    silence: list[ChatError] = field(default_factory=list)

    async def ask(self, question: SummaryPrompt) -> CaptionText:
        """The answer that is kept, else a new one, kept. Raises ChatError, Changed, or NotKept."""
        name = self._name(question)
        text = await self.paper.store.text(name)
        if text is None:
            if self.reading:
                raise NotKept
            async with self.turns:
                text = await self._patiently(question, question)
                await self._keep(name, text, question)
        self.used.add(name)
        return CaptionText(name, text)

    async def _keep(self, name: str, text: str, question: SummaryPrompt) -> None:
        paper = self.paper
        captions = tuple((each, paper.fingerprints[each]) for each in question.captions)
        new = NewSummary(name, paper.recipe, text, captions, question.parts)
        await paper.store.keep(paper.source, new)

    async def _patiently(self, question: SummaryPrompt, asked: SummaryPrompt, attempt: int = 1) -> str:
        """An answer that can be used, asked for again as long as that may help."""
        if len(self.silence) >= MOST_SILENCE:
            raise self.silence[-1]
        try:
            text = await self._once(asked)
        except PASSING as fault:
            await self.patience.sleep(self._wait(attempt, fault))
            again = _with_reason(question, fault)
        else:
            self.silence.clear()
            return text
        return await self._patiently(question, again, attempt + 1)

    def _wait(self, attempt: int, fault: ChatError) -> float:
        """Seconds until the next attempt; raises the fault where there is to be none."""
        wait = self.patience.wait(attempt - 1, getattr(fault, "retry_after", None))
        if attempt >= self.patience.attempts or wait > self.patience.longest_wait:
            if isinstance(fault, SILENT):
                self.silence.append(fault)
            raise fault
        return wait

    async def _once(self, question: SummaryPrompt) -> str:
        self.calls += 1
        async with aclosing(self.model.stream(question.messages, most=question.most)) as pieces:
            said = [piece.text async for piece in pieces if isinstance(piece, Delta)]
        text = clean("".join(said)).strip()
        if not text:
            raise ChatBadAnswer(self.model.name, "the answer is empty")
        if self.form is None:
            return text
        try:
            return json.dumps(dict(self.form.read(text)), ensure_ascii=False)
        except Unsatisfied as fault:
            raise ChatBadAnswer(self.model.name, str(fault)) from fault

    def _name(self, question: SummaryPrompt) -> str:
        """The same for the same question about the same captions to the same model."""
        said = [(each.role, each.content) for each in question.messages]
        told = [self.paper.source, self.model.name, said, question.captions, question.parts]
        return stable_id("summary", json.dumps(told))


def _with_reason(question: SummaryPrompt, fault: ChatError) -> SummaryPrompt:
    """The question with what was wrong with its last answer, where there was one."""
    if not isinstance(fault, ChatBadAnswer):
        return question
    last = question.messages[-1]
    reason = AGAIN.format(reason=escape(disarm(fault.reason)))
    return replace(
        question, messages=(*question.messages[:-1], replace(last, content=f"{last.content}\n\n{reason}"))
    )
