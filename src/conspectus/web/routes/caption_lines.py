"""Captions as JSON lines: taken in as they arrive, and given out as they are read."""

from collections.abc import AsyncGenerator

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from conspectus.engine import Engine
from conspectus.model.streams import CaptionRange, Stream
from conspectus.streams.caption_format import line_of
from conspectus.web.caption_import import take_lines
from conspectus.web.deps import EngineOf, Unhurried
from conspectus.web.ndjson import MEDIA_TYPE, LinesRoute, arriving
from conspectus.web.openapi import Section
from conspectus.web.schemas.streams import CaptionsWrittenAnswer
from conspectus.web.streams import CAPTIONS, FoundStream, InCollection, StreamName, Within, found_by

router = Section("streams", route_class=LinesRoute)
PAGE = 1_000


@router.post(CAPTIONS, include_in_schema=False, dependencies=[Unhurried], status_code=201)
async def add_lines(
    stream: StreamName,
    request: Request,
    engine: EngineOf,
    *,
    collection: InCollection = "default",
    replace: bool = False,
    wait: bool = False,
) -> CaptionsWrittenAnswer:
    """Store captions, batch by batch."""
    pieces = arriving(request.stream(), request.app.state.listeners.settings.request_timeout_seconds)
    taken = await take_lines(pieces, engine, stream=stream, collection=collection, replacing=replace)
    if wait:
        await engine.documents.settle(collection=collection)
    return taken


@router.get(CAPTIONS, include_in_schema=False, dependencies=[Unhurried])
async def export_lines(found: FoundStream, within: Within, engine: EngineOf) -> Response:
    """All captions of a range. What goes wrong with the first of them is answered as such."""
    pages = _pages(engine, found, within)
    begun = await anext(pages)

    async def all_of_them() -> AsyncGenerator[bytes, None]:
        yield begun
        async for page in pages:
            yield page

    return StreamingResponse(all_of_them(), media_type=MEDIA_TYPE)


async def _pages(engine: Engine, found: Stream, within: CaptionRange) -> AsyncGenerator[bytes, None]:
    after = None
    while True:
        page = await engine.streams.captions(**found_by(found), within=within, after=after, limit=PAGE)
        yield "".join(f"{line_of(each)}\n" for each in page.captions).encode("utf-8", "replace")
        after = page.next
        if after is None:
            return
