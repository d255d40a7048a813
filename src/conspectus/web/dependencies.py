"""Dependencies of routes, as types.

They are coroutines, since the framework would call a plain function in a thread.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Header, Path, Query, Request

from conspectus.engine import Engine
from conspectus.model import parameters
from conspectus.model.filter import Filter
from conspectus.model.filter_json import parse_filters
from conspectus.operations.declared import facts_of
from conspectus.web.operation_schemas import Filters
from conspectus.web.request_slots import RequestSlot

MAX_TAGS_LENGTH = 2_000
EXAMPLE_TAG: Final = '"5d41402abc4b2a76"'


async def _engine(request: Request) -> Engine:
    engine: Engine = request.state.engine
    return engine


def of_app(name: str) -> Any:
    """Return the dependency on a part of the application's state."""

    async def read_state(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(read_state)


async def _lift_limits(request: Request) -> None:
    deadline: asyncio.Timeout = request.state.deadline
    deadline.reschedule(None)


async def without_limits(request: Request) -> None:
    """Let a request that only waits for a chat model take its time, without its request slot."""
    deadline: asyncio.Timeout = request.state.deadline
    slot: RequestSlot = request.state.slot
    if not deadline.expired():
        deadline.reschedule(None)
    slot.give_back()


async def _no_store(request: Request) -> None:
    request.state.shown_once = True


async def _filter(filter: Annotated[Filters, Query()] = None) -> Filter:
    return parse_filters(filter or [])


EngineOf = Annotated[Engine, Depends(_engine)]
Unhurried = Depends(_lift_limits)
"""The route may take longer than the time limit: what it does grows with the store."""
NoStore = Depends(_no_store)
"""The answer holds a secret, of which nothing may be kept."""
Selected = Annotated[Filter, Depends(_filter)]
CollectionName = Annotated[str, Path(**facts_of(parameters.CollectionName))]
DocumentIdentifier = Annotated[str, Path(**facts_of(parameters.DocumentIdentifier))]
SourceIdentifier = Annotated[str, Path(**facts_of(parameters.SourceIdentifier))]
After = Annotated[str | None, Query(**facts_of(parameters.Cursor))]
Limit = Annotated[int, Query(**facts_of(parameters.PageLimit))]
Purge = Annotated[bool, Query(**facts_of(parameters.Purge))]
IfMatch = Annotated[
    str | None,
    Header(max_length=MAX_TAGS_LENGTH, description="The ETag that was read.", examples=[EXAMPLE_TAG]),
]
IfNoneMatch = Annotated[
    str | None,
    Header(max_length=MAX_TAGS_LENGTH, description="An ETag held already.", examples=[EXAMPLE_TAG]),
]


Recording: TypeAlias = Callable[[Iterable[str | None]], AbstractContextManager[None]]
"""Opens a block that writes documents with these keys. A document without a key would be stored twice by a
repeated request, so once the block has stored anything, the idempotency key of the request is not released.
"""


async def _open_recording(request: Request, engine: EngineOf) -> Recording:
    claim = getattr(request.state, "claim", None)

    def record_claim(keys: Iterable[str | None]) -> AbstractContextManager[None]:
        if claim is None or None not in keys:
            return nullcontext()
        person, key, at = claim
        return engine.idempotency.record_claim(person, key, at=at)

    return record_claim


RecordingOf = Annotated[Recording, Depends(_open_recording)]
