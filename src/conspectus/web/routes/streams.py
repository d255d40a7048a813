"""Streams and alerts: live and imported captions, captions as JSON lines, and matches of alerts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from tempfile import TemporaryDirectory
from typing import Annotated, Final

from fastapi import Depends, File, Form, Query, Request, Response, UploadFile
from pydantic import ValidationError

from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound
from conspectus.ingest.captions import CaptionImportOptions, caption_document
from conspectus.model import parameters
from conspectus.model.alerts import AlertEvent
from conspectus.model.captions import CaptionImport, LiveCaption, NewCaption
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Source
from conspectus.operations.alerts import ALERT_OPERATIONS
from conspectus.operations.declared import facts_of, facts_of_field
from conspectus.operations.streams import EVENT_OPERATIONS, STREAM_OPERATIONS
from conspectus.streams.caption_format import line_of
from conspectus.text.stream_clocks import StreamClock, clock_of
from conspectus.web.bodies import save_uploads
from conspectus.web.dependencies import EngineOf, Unhurried, without_limits
from conspectus.web.ndjson import LineBatches, LinesRoute, make_refusal, read_pieces, send_as_lines
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import answer_of, request_model, to_argument
from conspectus.web.problem_details import invalid_problem, problem_of
from conspectus.web.sse import frame
from conspectus.web.stream_dependencies import (
    CAPTIONS,
    STREAM,
    FoundStream,
    InCollection,
    StreamName,
    Within,
    stream_arguments,
)
from conspectus.web.subscriptions import (
    LastEvent,
    ListenersOf,
    LiveEvents,
    describe_stream,
    parse_resume_point,
)

PAGE_CAPTIONS: Final = 1_000
"""Captions that an export reads at once."""
_CAPTION: Final = request_model(NewCaption)
_OUTCOMES: Final = {"added": "added", "replaced": "replaced", "updated": "replaced", "unchanged": "unchanged"}
"""The outcomes that an import of lines counts, by the outcomes of captions."""

router = Section("streams")
lines = Section("streams", route_class=LinesRoute)
alerts = Section("alerts")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import of caption files."""

    collection: Annotated[str, Form(**facts_of(parameters.CollectionName))] = "default"
    sentences: Annotated[bool, Form(**facts_of_field(CaptionImportOptions, "sentences"))] = True
    replace: Annotated[bool, Form(**facts_of_field(CaptionImportOptions, "replace"))] = True
    wait: Annotated[bool, Form(**facts_of_field(CaptionImportOptions, "wait"))] = False
    skip_unsupported: Annotated[bool, Form(**facts_of_field(CaptionImportOptions, "skip_unsupported"))] = (
        False
    )


Files = Annotated[
    list[UploadFile],
    File(min_length=1, description="Captions: SRT, VTT, ASS, JSON, ...", examples=[["talk.srt"]]),
]
ImportOptionsOf = Annotated[ImportOptions, Depends()]


add_routes(router, EVENT_OPERATIONS)


@router.post("/streams/import", responses=problems(415), dependencies=[Unhurried])
async def import_streams(
    files: Files,
    options: ImportOptionsOf,
    engine: EngineOf,
    *,
    stream: Annotated[str | None, Form(**facts_of(parameters.StreamName))] = None,
) -> CaptionImport:
    """Import caption files, each as a stream of its own where none is named."""
    return await _import_captions(files, engine, stream, options)


@router.post(f"{CAPTIONS}/import", responses=problems(415), dependencies=[Unhurried])
async def import_captions(
    stream: StreamName, files: Files, options: ImportOptionsOf, engine: EngineOf
) -> CaptionImport:
    """Import caption files of one stream; importing again changes nothing."""
    return await _import_captions(files, engine, stream, options)


@router.get(f"{STREAM}/stream", response_class=Response, responses=describe_stream())
async def subscribe_captions(
    stream: FoundStream, request: Request, engine: EngineOf, listeners: ListenersOf, last: LastEvent = None
) -> Response:
    """Send new captions as events, from now on or after the event of Last-Event-ID."""
    listeners.require_room(request.state.person)
    newest = await engine.streams.last_sequence(**stream_arguments(stream))
    after = parse_resume_point(last, newest)
    await without_limits(request)
    events = engine.streams.subscribe(**stream_arguments(stream), after=after)

    def to_frame(live: LiveCaption) -> bytes:
        return frame(answer_of(live).model_dump_json(), name="caption", id=str(live.sequence))

    return LiveEvents(events, to_frame, listeners, after=after, still_good=request.state.still_good)


add_routes(router, STREAM_OPERATIONS)


async def _import_captions(
    files: Sequence[UploadFile], engine: Engine, stream: str | None, options: ImportOptions
) -> CaptionImport:
    with TemporaryDirectory() as folder:
        uploads = await save_uploads(files, folder)
        return await engine.streams.import_captions(uploads, stream=stream, **asdict(options))


@lines.post(CAPTIONS, include_in_schema=False, dependencies=[Unhurried], status_code=201)
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
    pieces = read_pieces(request.stream(), request.app.state.listeners.settings.request_timeout_seconds)
    source = await _source(engine, stream, collection)

    async def write(_: Sequence[int], captions: Sequence[NewCaption]) -> Iterable[str]:
        done = await engine.streams.add_captions(
            captions, stream=stream, collection=collection, replace=replace
        )
        return [_OUTCOMES[caption.outcome] for caption in done]

    batches = LineBatches(partial(_caption, source, clock_of(source)), write, _OUTCOMES.values())
    outcome_counts = await batches.take(pieces)
    if wait:
        await engine.documents.wait_until_embedded(collection=collection)
    return outcome_counts


@lines.get(CAPTIONS, include_in_schema=False, dependencies=[Unhurried])
async def export_lines(stream: FoundStream, within: Within, engine: EngineOf) -> Response:
    """Export all captions of a range."""
    read = partial(
        engine.streams.list_captions, **stream_arguments(stream), range=within, limit=PAGE_CAPTIONS
    )
    return await send_as_lines(read, lambda page: map(line_of, page.captions))


def _caption(source: Source, clock: StreamClock, number: int, line: bytes) -> tuple[NewCaption, int]:
    """Return the caption of a line, and its size. Raises Refused with its number."""
    try:
        caption: NewCaption = to_argument(NewCaption, _CAPTION.model_validate_json(line))
        caption_document(caption, source, clock)
    except ValidationError as fault:
        errors = [{**error, "loc": ("body", *error["loc"])} for error in fault.errors(include_context=False)]
        raise make_refusal(invalid_problem(errors), line=number) from fault
    except InvalidInput as fault:
        raise make_refusal(problem_of(fault), line=number) from fault
    return caption, len(caption.text)


async def _source(engine: Engine, stream: str, collection: str) -> Source:
    """Return the stream as it is, or as it will be made."""
    try:
        return (await engine.streams.get(stream, collection=collection)).source
    except NotFound:
        return Source(SourceId(stream), CollectionId(collection), stream, kind="stream")


OfAlert = Annotated[str | None, Query(**facts_of(parameters.AlertIdentifier))]


@alerts.get("/alerts/stream", response_class=Response, responses=describe_stream())
async def subscribe_alerts(
    request: Request,
    engine: EngineOf,
    listeners: ListenersOf,
    *,
    alert: OfAlert = None,
    last: LastEvent = None,
) -> Response:
    """Send matches of alerts as events, from now on or after the event of Last-Event-ID."""
    listeners.require_room(request.state.person)
    if alert is not None:
        await engine.alerts.get(alert)
    after = parse_resume_point(last, await engine.alerts.last_match())
    await without_limits(request)
    events = engine.alerts.subscribe(alert=alert, after=after)

    def to_frame(event: AlertEvent) -> bytes:
        return frame(answer_of(event).model_dump_json(), name="alert", id=str(event.number))

    return LiveEvents(events, to_frame, listeners, after=after, still_good=request.state.still_good)


add_routes(alerts, ALERT_OPERATIONS)


router.routes[:0] = (*alerts.routes, *lines.routes)
