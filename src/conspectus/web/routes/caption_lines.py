"""Captions as JSON lines: imported as they arrive, and exported as they are read."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fastapi import Request, Response
from pydantic import ValidationError

from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound
from conspectus.ingest.captions import caption_document
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Source
from conspectus.model.streams import NewCaption
from conspectus.streams.caption_format import line_of
from conspectus.text.times import StreamClock, clock_of
from conspectus.web.deps import EngineOf, Unhurried
from conspectus.web.ndjson import LineBatches, LinesRoute, arriving, refused, sent_as_lines
from conspectus.web.openapi import Section
from conspectus.web.operation_schemas import given, request_model
from conspectus.web.problem_details import invalid, problem_of
from conspectus.web.streams import CAPTIONS, FoundStream, InCollection, StreamName, Within, found_by

router = Section("streams", route_class=LinesRoute)
PAGE = 1_000
_CAPTION: Final = request_model(NewCaption)
_OUTCOMES: Final = {"added": "added", "replaced": "replaced", "updated": "replaced", "unchanged": "unchanged"}


@router.post(CAPTIONS, include_in_schema=False, dependencies=[Unhurried], status_code=201)
async def add_lines(
    stream: StreamName,
    request: Request,
    engine: EngineOf,
    *,
    collection: InCollection = "default",
    replace: bool = False,
    wait: bool = False,
) -> Mapping[str, int]:
    """Store captions, batch by batch, and count their outcomes."""
    pieces = arriving(request.stream(), request.app.state.listeners.settings.request_timeout_seconds)
    home = await _source(engine, stream, collection)

    async def write(_: Sequence[int], captions: Sequence[NewCaption]) -> Iterable[str]:
        done = await engine.streams.add_captions(
            captions, stream=stream, collection=collection, replace=replace
        )
        return [_OUTCOMES[each.outcome] for each in done]

    batches = LineBatches(partial(_caption, home, clock_of(home)), write, _OUTCOMES.values())
    taken = await batches.take(pieces)
    if wait:
        await engine.documents.wait_until_embedded(collection=collection)
    return taken


@router.get(CAPTIONS, include_in_schema=False, dependencies=[Unhurried])
async def export_lines(found: FoundStream, within: Within, engine: EngineOf) -> Response:
    """All captions of a range."""
    read = partial(engine.streams.list_captions, **found_by(found), range=within, limit=PAGE)
    return await sent_as_lines(read, lambda page: map(line_of, page.captions))


def _caption(home: Source, clock: StreamClock, number: int, line: bytes) -> tuple[NewCaption, int]:
    """The caption of a line, and its size. Raises Refused with its number."""
    try:
        caption: NewCaption = given(NewCaption, _CAPTION.model_validate_json(line))
        caption_document(caption, home, clock)
    except ValidationError as fault:
        raise refused(invalid(_in_body(fault)), line=number) from fault
    except InvalidInput as fault:
        raise refused(problem_of(fault), line=number) from fault
    return caption, len(caption.text)


async def _source(engine: Engine, stream: str, collection: str) -> Source:
    """The stream as it is, or as it will be made."""
    try:
        return (await engine.streams.get(stream, collection=collection)).source
    except NotFound:
        return Source(SourceId(stream), CollectionId(collection), stream, kind="stream")


def _in_body(fault: ValidationError) -> list[dict[str, Any]]:
    return [{**each, "loc": ("body", *each["loc"])} for each in fault.errors(include_context=False)]
