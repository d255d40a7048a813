"""Common parts of routes of memories: the memory scope and its collection."""

from dataclasses import dataclass
from typing import Annotated, Final, TypedDict

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from conspectus.errors import InvalidInput
from conspectus.model.memory import MEMORY, Scope
from conspectus.web.problem_details import RENAMED
from conspectus.web.schemas.base import IDENTIFIER, NAME

MEMORIES: Final = "/memories"
OF_USER = "Of this user; without one, what belongs to no user."
Party = Annotated[str | None, Query(min_length=1, max_length=NAME)]
MemoryId = Annotated[str, Path(min_length=1, max_length=IDENTIFIER, description="The id of a memory.")]
InMemory = Annotated[str, Query(min_length=1, max_length=NAME, description="The collection.")]


class MemoryBodyFields(TypedDict):
    """A scope as the engine is asked for it."""

    scope: Scope
    collection: str


@dataclass(frozen=True, slots=True)
class MemoryScopeQuery:
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
    def arguments(self) -> MemoryBodyFields:
        """As the engine is asked."""
        return {"scope": self.scope, "collection": self.collection}


OfScope = Annotated[MemoryScopeQuery, Depends()]
"""The scope of the parameters user, agent and conversation, in the collection of the parameter collection."""


async def spelt(request: Request) -> None:
    """Refuse a parameter that the route does not have: one that is misspelt would mean other memories."""
    route = request.scope.get("route")
    known = _parameters(route.dependant) if isinstance(route, APIRoute) else frozenset()
    for name in request.query_params:
        if name not in known:
            there = f"; there are {', '.join(sorted(known))}" if known else ""
            if RENAMED.get(name) in known:
                there = f"; use `{RENAMED[name]}`"
            raise InvalidInput(name, f"is not a parameter{there}")


def _parameters(dependant: Dependant) -> frozenset[str]:
    """The names of parameters of a route, with those of what it depends on."""
    own = frozenset(each.alias for each in dependant.query_params)
    return own.union(*map(_parameters, dependant.dependencies))
