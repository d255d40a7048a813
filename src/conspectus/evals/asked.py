"""Conversations of any kind from a directory, and the way in which their questions are asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from conspectus.engine import Engine
from conspectus.evals.conversation_turns import read_chat_set, read_meeting_set
from conspectus.evals.datasets import CitedQuestion, ConversationSet, read_conversation_set
from conspectus.model.filter import And, Between, Eq, Filter, Not, Or, Overlaps
from conspectus.model.query import Query, QueryContext
from conspectus.model.records import NewDocument
from conspectus.retrieval.scoring_profiles import WITHOUT


def read_conversations(directory: Path) -> ConversationSet:
    """Questions about conversations, chats with threads made by hand, or meetings: what the files are for.

    Raises InvalidInput for a directory without any, or with something unreadable in them.
    """
    if (directory / "questions.jsonl").exists() or not directory.is_dir():
        return read_conversation_set(directory)
    if (directory / "messages.jsonl").exists():
        return read_chat_set(directory)
    if (directory / "corpus.jsonl").exists():
        return read_meeting_set(directory)
    return read_conversation_set(directory)


def profile_without(profile: str, parts: Sequence[str]) -> str:
    """The name of a profile with parts switched off."""
    return f"{profile}{WITHOUT}{', '.join(parts)}" if parts else profile


@dataclass(frozen=True, slots=True)
class Asker:
    """How questions of a set are asked: in their conversation, with what had been said there before.

    With a profile they are asked in their channel and at their time, which is the end of the conversation
    where none is given. Without one they have no situation.
    """

    engine: Engine
    given: ConversationSet
    profile: str | None = None

    async def query(self, question: CitedQuestion) -> Query:
        """What the engine is asked."""
        source = await self.engine.collections.get_or_create_source(question.conversation)
        here = Eq("source", str(source.id))
        at = question.at or _end(self.given.conversations[question.conversation])
        situation = (
            None
            if self.profile is None
            else QueryContext(question.conversation, question.thread, at, self.profile)
        )
        return Query(question.text, where=_known(question, here, at), situation=situation)


def _known(question: CitedQuestion, here: Filter, at: datetime | None) -> Filter:
    """What had been said when the question was asked."""
    if question.before is None:
        return here
    before = And((here, Between("sequence", None, question.before)))
    return before if at is None else Or((before, And((Not(here), Overlaps(None, at)))))


def _end(turns: Sequence[NewDocument]) -> datetime | None:
    return max((each.occurred for each in turns if isinstance(each.occurred, datetime)), default=None)
