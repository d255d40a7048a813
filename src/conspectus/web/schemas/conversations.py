"""Channels and messages."""

from pydantic import Field

from conspectus.model.channels import ChannelQuery
from conspectus.model.query import Budget
from conspectus.web.schemas.base import (
    Instant,
    Name,
    Question,
    RequestModel,
)
from conspectus.web.schemas.search import BudgetBody, MinSimilarity, Tokens, budget_of


class ChannelQuestionBody(RequestModel):
    """A question asked in a channel, and the tokens for what matters to it."""

    query: Question
    channel: Name
    max_tokens: Tokens | BudgetBody = Field(4_000, description="Tokens counted with o200k_base, or a budget.")
    collection: Name = "default"
    thread: Name | None = None
    at: Instant | None = Field(None, description="When it is asked; by default now.")
    profile: Name = "default"
    related: bool = Field(False, description="Ask other channels about the same thing, too.")
    member: Name | None = Field(None, description="Only channels that this author may be in.")
    min_similarity: MinSimilarity | None = None
    thread_messages: int = Field(8, ge=0, le=1_000, description="Most messages that come along with each.")

    def question(self) -> ChannelQuery:
        """The question as the engine takes it."""
        return ChannelQuery(**self.model_dump(exclude={"max_tokens"}))

    def allowed(self) -> Budget:
        """The budget as the engine takes it."""
        return budget_of(self.max_tokens)
