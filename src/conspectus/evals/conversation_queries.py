"""The queries for the questions of a conversation set."""

from collections.abc import Sequence
from datetime import datetime

from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.evals.datasets import (
    CitedQuestion,
    ConversationSet,
)
from conspectus.model.filter import And, Between, Eq, Filter, Not, Or, Overlaps
from conspectus.model.query import Query, QueryContext
from conspectus.model.records import NewDocument
from conspectus.retrieval.profiles import WITHOUT


def profile_without(profile: str, parts: Sequence[str]) -> str:
    """Return the name of a profile without some parts."""
    return f"{profile}{WITHOUT}{', '.join(parts)}" if parts else profile


@dataclass(frozen=True, slots=True)
class QueryBuilder:
    """Makes queries for the questions of a set, limited to what was said before in the conversation.

    With a profile, a query has the channel and time of its question. The default time is the end of the
    conversation. Without a profile, it has no query context.
    """

    engine: Engine
    conversation_set: ConversationSet
    profile: str | None = None

    async def query(self, question: CitedQuestion) -> Query:
        """Return the query for a question."""
        source = await self.engine.collections.get_or_create_source(question.conversation)
        here = Eq("source", str(source.id))
        at = question.at or _end(self.conversation_set.conversations[question.conversation])
        query_context = (
            None
            if self.profile is None
            else QueryContext(question.conversation, question.thread, at, self.profile)
        )
        visible: Filter = here
        if question.before is not None:
            visible = And((here, Between("sequence", None, question.before)))
            visible = visible if at is None else Or((visible, And((Not(here), Overlaps(None, at)))))
        return Query(question.text, filter=visible, query_context=query_context)


def _end(turns: Sequence[NewDocument]) -> datetime | None:
    return max((turn.occurred for turn in turns if isinstance(turn.occurred, datetime)), default=None)
