"""Memories: the operations of the table, and by hand what they do not cover, JSON lines among it."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Final, TypedDict

from fastapi import Depends, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.memory.jsonl_reader import renumber
from conspectus.model import parameters
from conspectus.model.memory import MEMORY, MemoryReceipt, MemorySelection, Scope
from conspectus.operations.declared import facts_of, facts_of_field
from conspectus.operations.memory import MEMORY_OPERATIONS
from conspectus.web.dependencies import EngineOf, Purge, Unhurried
from conspectus.web.ndjson import LineBatches, LinesRoute, decode_line, read_pieces, send_as_lines
from conspectus.web.openapi import Section
from conspectus.web.operation_routes import add_routes
from conspectus.web.problem_details import Refused, problem_of
from conspectus.web.schemas.base import ImportedAnswer

MEMORIES: Final = "/memories"
MemoryId = Annotated[str, Path(**facts_of(parameters.MemoryIdentifier))]
InMemory = Annotated[str, Query(**facts_of(parameters.MemoryCollection))]


class MemoryBodyFields(TypedDict):
    """The arguments of the engine that name a scope."""

    scope: Scope
    collection: str


@dataclass(frozen=True, slots=True)
class MemoryScopeQuery:
    """The memories of a scope in a collection."""

    user: Annotated[str | None, Query(**facts_of_field(Scope, "user"))] = None
    agent: Annotated[str | None, Query(**facts_of_field(Scope, "agent"))] = None
    conversation: Annotated[str | None, Query(**facts_of_field(Scope, "conversation"))] = None
    collection: InMemory = MEMORY

    @property
    def scope(self) -> Scope:
        """The scope."""
        return Scope(self.user, self.agent, self.conversation)

    @property
    def arguments(self) -> MemoryBodyFields:
        """The arguments of the engine."""
        return {"scope": self.scope, "collection": self.collection}


OfScope = Annotated[MemoryScopeQuery, Depends()]
"""The scope of the parameters user, agent and conversation, in the collection of the parameter collection."""


async def require_known_parameters(request: Request) -> None:
    """Raise InvalidInput for an unknown parameter: a misspelt one would select other memories."""
    route = request.scope.get("route")
    parameter_names = _parameters(route.dependant) if isinstance(route, APIRoute) else frozenset()
    for name in request.query_params:
        if name not in parameter_names:
            expected = f"; expected are {', '.join(sorted(parameter_names))}" if parameter_names else ""
            raise InvalidInput(name, f"is not a parameter{expected}")


def _parameters(dependant: Dependant) -> frozenset[str]:
    """Return the names of a route's parameters, with those of its dependencies."""
    own_names = frozenset(parameter.alias for parameter in dependant.query_params)
    return own_names.union(*map(_parameters, dependant.dependencies))


as_lines = Section("memory", route_class=LinesRoute, dependencies=[Depends(require_known_parameters)])
memories = Section("memory", dependencies=[Depends(require_known_parameters)])


@as_lines.post(f"{MEMORIES}/import", include_in_schema=False, dependencies=[Unhurried])
async def import_lines(scope_query: OfScope, request: Request, engine: EngineOf) -> ImportedAnswer:
    """Import lines, batch by batch; without a scope, each goes into its own."""
    settings = request.app.state.listeners.settings
    pieces = read_pieces(request.stream(), settings.request_timeout_seconds)
    scope = None if scope_query.scope == Scope() else scope_query.scope

    async def write(numbers: Sequence[int], lines: Sequence[str]) -> Iterable[str]:
        try:
            done = await engine.memory.import_lines(lines, collection=scope_query.collection, scope=scope)
        except InvalidInput as fault:
            renumber(fault, lambda number: numbers[number - 1])
            raise Refused(problem_of(fault)) from fault
        return [memory.outcome for memory in done]

    batches = LineBatches(decode_line, write, ImportedAnswer.model_fields)
    return ImportedAnswer(**await batches.take(pieces, settings.max_request_bytes))


@as_lines.get(f"{MEMORIES}/export", include_in_schema=False, dependencies=[Unhurried])
async def export_lines(scope: OfScope, engine: EngineOf) -> Response:
    """Export all memories of a scope."""
    return await send_as_lines(partial(engine.memory.export, **scope.arguments), lambda page: page.lines)


add_routes(memories, MEMORY_OPERATIONS)


@memories.delete(f"{MEMORIES}/{{memory}}", dependencies=[Unhurried])
async def forget_memory(
    memory: MemoryId, scope: OfScope, engine: EngineOf, *, purge: Purge = False
) -> MemoryReceipt:
    """Delete a memory with its versions; one that the scope does not have counts as nothing."""
    return await engine.memory.forget(MemorySelection(ids=(memory,)), **scope.arguments, purge=purge)


router = Section("memory")
router.routes.extend((*as_lines.routes, *memories.routes))
