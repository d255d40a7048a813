"""Requests on memories that are not those of an operation."""

from typing import Annotated, Any

from pydantic import Field

from conspectus.memory.retention import MOST_DAYS, MOST_MEMORIES
from conspectus.model.memory import MEMORY, MemoryClass, Retention, Scope
from conspectus.web.schemas.base import Finite, JsonObject, Label, Name, RequestModel, Text
from conspectus.web.schemas.graphs import FactBody, Moment

MOST_ENTITIES = 1_000


class MemoryChange(RequestModel):
    """The fields to change of a memory; those that are not named stay. Metadata are replaced whole."""

    text: Text = ""
    role: Label | None = Field(None, examples=["user"])
    speaker: Label | None = None
    at: Moment | Finite | None = Field(
        None, description="When it was said: an ISO 8601 time, or seconds since 1970; by default now."
    )
    kind: MemoryClass = Field("turn", description="A note is a standing one, considered for every window.")
    pinned: bool = Field(False, description="No retention deletes it.")
    fact: FactBody | None = None
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    entities: list[Label] = Field(default=[], max_length=MOST_ENTITIES, description="Names it mentions.")
    metadata: JsonObject = Field(default={})

    def given(self) -> dict[str, Any]:
        """The fields that the client named, as the engine takes them."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if self.fact is not None:
            fields["fact"] = self.fact.fact()
        if "entities" in fields:
            fields["entities"] = tuple(self.entities)
        return fields


class RetentionBody(RequestModel):
    """How long, and how many, turns of each conversation of a scope are kept; null is no bound."""

    user: Name | None = Field(None, description="None: memories of no user, never those of all.")
    agent: Name | None = None
    conversation: Name | None = None
    collection: Name = MEMORY
    days: Annotated[float, Field(ge=0, le=MOST_DAYS, allow_inf_nan=False)] | None = None
    most: Annotated[int, Field(ge=0, le=MOST_MEMORIES)] | None = None

    def scope(self) -> Scope:
        """The scope as the engine takes it."""
        return Scope(self.user, self.agent, self.conversation)

    def retention(self) -> Retention:
        """As the engine takes it."""
        return Retention(self.days, self.most)
