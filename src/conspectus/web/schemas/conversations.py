"""Channels and messages."""

from typing import Annotated

from pydantic import Field

from conspectus.model.channels import ChannelQuery, NewMessage
from conspectus.model.query import Budget
from conspectus.web.schemas.base import (
    Finite,
    Instant,
    Int64,
    JsonObject,
    Label,
    Name,
    Question,
    RequestModel,
    Text,
)
from conspectus.web.schemas.search import BudgetBody, MinSimilarity, Tokens, budget_of

MOST_MESSAGES = 10_000


class MessageBody(RequestModel):
    """What somebody wrote; with a key that is stored already, an edit."""

    text: Text = Field(examples=["It's under Developer Settings > API Keys"])
    key: Label | None = Field(None, description="The platform's id for it, unique in its channel.")
    author: Label | None = Field(None, examples=["dana"])
    at: Annotated[str, Field(max_length=100)] | Finite | None = Field(
        None, description="An ISO 8601 time with a zone, or seconds since 1970; by default now."
    )
    reply_to: Label | None = Field(None, description="The key of the message that it answers.")
    thread: Label | None = None
    role: Label | None = Field(None, description="None for people; bot, assistant or system.")
    metadata: JsonObject = Field(default={})
    sequence: Int64 | None = Field(None, description="Its place in the channel, where times do not order it.")

    def message(self) -> NewMessage:
        """The message as the engine takes it."""
        return NewMessage(**{name: getattr(self, name) for name in self.model_fields_set | {"text"}})


class MessagesBody(RequestModel):
    """Messages to store in a channel, in the order in which they were written."""

    channel: Name = Field(examples=["support"])
    collection: Name = "default"
    messages: list[MessageBody] = Field(max_length=MOST_MESSAGES)
    link: bool = Field(True, description="Find what a message seems to answer where nobody says.")
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class ChannelQuestionBody(RequestModel):
    """A question asked in a channel, and the tokens for what matters to it."""

    prompt: Question
    channel: Name
    budget: Tokens | BudgetBody = Field(4_000, description="Tokens counted with o200k_base, or a budget.")
    collection: Name = "default"
    thread: Name | None = None
    at: Instant | None = Field(None, description="When it is asked; by default now.")
    profile: Name = "default"
    related: bool = Field(False, description="Ask other channels about the same thing, too.")
    member: Name | None = Field(None, description="Only channels that this author may be in.")
    floor: MinSimilarity | None = None
    chain: int = Field(8, ge=0, le=1_000, description="Most messages that come along with each.")

    def question(self) -> ChannelQuery:
        """The question as the engine takes it."""
        return ChannelQuery(**self.model_dump(exclude={"budget"}))

    def allowed(self) -> Budget:
        """The budget as the engine takes it."""
        return budget_of(self.budget)
