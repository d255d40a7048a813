"""What routes of memories have in common: whose memories are meant, and in which collection."""

from dataclasses import dataclass
from typing import Annotated, Final, TypedDict

from fastapi import Depends, Path, Query

from conspectus.model.memory import MEMORY, Scope
from conspectus.web.schemas.base import IDENTIFIER, NAME

MEMORIES: Final = "/memories"
OF_USER = "Of this user; without one, what belongs to no user."
Party = Annotated[str | None, Query(min_length=1, max_length=NAME)]
MemoryId = Annotated[str, Path(min_length=1, max_length=IDENTIFIER, description="The id of a memory.")]
InMemory = Annotated[str, Query(min_length=1, max_length=NAME, description="The collection.")]


class Told(TypedDict):
    """A scope as the engine is asked for it."""

    scope: Scope
    collection: str


@dataclass(frozen=True, slots=True)
class Whose:
    """The memories of a scope in a collection."""

    user: Annotated[str | None, Query(min_length=1, max_length=NAME, description=OF_USER)] = None
    agent: Party = None
    conversation: Party = None
    collection: InMemory = MEMORY

    @property
    def scope(self) -> Scope:
        """The scope."""
        return Scope(self.user, self.agent, self.conversation)

    @property
    def told(self) -> Told:
        """As the engine is asked."""
        return {"scope": self.scope, "collection": self.collection}


OfScope = Annotated[Whose, Depends()]
"""The scope of the parameters user, agent and conversation, in the collection of the parameter collection."""
