"""The dependencies of routes, as types: the engine of the caller, pages, preconditions.

All are coroutines, as the framework calls a plain function in a thread.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Header, Path, Query, Request, Response
from pydantic import BaseModel

from conspectus.engine import Engine
from conspectus.errors import PreconditionFailed
from conspectus.model.filter import Filter, parse_filters
from conspectus.web.limits import RequestSlot
from conspectus.web.schemas.base import CURSOR, IDENTIFIER, NAME

MAX_FILTERS = 20
MAX_FILTER_LENGTH = 100_000
MAX_TAGS_LENGTH = 2_000


async def _engine(request: Request) -> Engine:
    engine: Engine = request.state.engine
    return engine


def of_app(name: str) -> Any:
    """The dependency on what the application has under this name."""

    async def found(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(found)


async def _unhurried(request: Request) -> None:
    deadline: asyncio.Timeout = request.state.deadline
    deadline.reschedule(None)


async def without_limits(request: Request) -> None:
    """Let a request that only waits for a chat model take its time, without its request slot."""
    deadline: asyncio.Timeout = request.state.deadline
    place: RequestSlot = request.state.place
    if not deadline.expired():
        deadline.reschedule(None)
    place.give_back()


async def _no_store(request: Request) -> None:
    request.state.shown_once = True


Filters = Annotated[
    list[Annotated[str, Query(max_length=MAX_FILTER_LENGTH)]] | None,
    Query(max_length=MAX_FILTERS, description="A JSON filter or field=value; all must match."),
]


async def _filter(filter: Filters = None) -> Filter:
    return parse_filters(filter or [])


EngineOf = Annotated[Engine, Depends(_engine)]
Unhurried = Depends(_unhurried)
"""The route may take longer than the time limit: what it does grows with the store."""
NoStore = Depends(_no_store)
"""The answer holds a secret, of which nothing may be kept."""
Selected = Annotated[Filter, Depends(_filter)]
CollectionName = Annotated[
    str, Path(min_length=1, max_length=NAME, description="The id or the name of a collection.")
]
NamedInPath = Annotated[str, Path(min_length=1, max_length=NAME)]
IdInPath = Annotated[str, Path(min_length=1, max_length=IDENTIFIER)]
After = Annotated[str | None, Query(max_length=CURSOR, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="Most of them on a page.")]
Purge = Annotated[bool, Query(description="Answer when no file holds them any more.")]
IfMatch = Annotated[str | None, Header(max_length=MAX_TAGS_LENGTH, description="The ETag that was read.")]
IfNoneMatch = Annotated[str | None, Header(max_length=MAX_TAGS_LENGTH, description="An ETag held already.")]


Recording: TypeAlias = Callable[[Iterable[str | None]], AbstractContextManager[None]]
"""Opens a block for things with these keys: without one they would be there twice if stored twice.

Its idempotency key is not given back once anything of it is stored.
"""


async def _recording(request: Request, engine: EngineOf) -> Recording:
    claim = getattr(request.state, "claim", None)

    def recording(keys: Iterable[str | None]) -> AbstractContextManager[None]:
        if claim is None or None not in keys:
            return nullcontext()
        person, key, at = claim
        return engine.idempotency.recording(person, key, at=at)

    return recording


RecordingOf = Annotated[Recording, Depends(_recording)]


def tag_of(body: BaseModel) -> str:
    """The ETag of a representation: its fingerprint or that of its document, or a hash of it."""
    own = getattr(body, "fingerprint", None)
    fingerprint = own or getattr(getattr(body, "document", None), "fingerprint", None)
    return quoted(fingerprint or hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:32])


def quoted(tag: str) -> str:
    """A tag as headers hold it."""
    return f'"{tag}"'


def tags_in(header: str | None) -> list[str]:
    """The tags of a header, `*` among them; with weak ones as they are."""
    return [each.strip() for each in (header or "").split(",") if each.strip()]


def is_not_modified(tag: str, header: str | None) -> bool:
    """Whether If-None-Match says that the client has this representation already."""
    return any(each.removeprefix("W/") in {tag, "*"} for each in tags_in(header))


def require_match(tag: str, header: str | None, *, kind: str, name: str) -> None:
    """Raise PreconditionFailed unless If-Match, where given, names this representation."""
    if header is not None and not {tag, "*"} & set(tags_in(header)):
        raise PreconditionFailed(kind, name)


async def fingerprint_in(header: str | None, document: str, engine: Engine) -> str | None:
    """The fingerprint that If-Match asks for; of several tags, the one the document has, if any."""
    tags = tags_in(header)
    if header is None or "*" in tags:
        return None
    if len(tags) > 1:
        current = quoted((await engine.documents.get(document)).fingerprint)
        tags = [current] if current in tags else tags
    return tags[0].removeprefix('"').removesuffix('"') if tags else ""


def unless_not_modified(body: BaseModel, tag: str, header: str | None) -> Response:
    """The representation with its tag, or only that the client has it already."""
    headers = {"ETag": tag}
    if is_not_modified(tag, header):
        return Response(status_code=304, headers=headers)
    return Response(body.model_dump_json(), headers=headers, media_type="application/json")
