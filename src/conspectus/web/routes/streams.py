"""Streams: captions as they come and by the file, what was when, and what a question finds in them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import Depends, File, Form, Request, Response, UploadFile

from conspectus.engine import Engine
from conspectus.model.records import Receipt
from conspectus.model.streams import CaptionImport, LiveCaption
from conspectus.operations import EVENT_OPERATIONS, STREAM_OPERATIONS
from conspectus.text.times import StreamClock, clock_of
from conspectus.web.bodies import handed_in
from conspectus.web.deps import After, EngineOf, Limit, Purge, Unhurried, without_limits
from conspectus.web.ndjson import LINES, SENT_AS_LINES
from conspectus.web.openapi import Responses, Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.schemas.base import NAME
from conspectus.web.schemas.records import ReceiptAnswer
from conspectus.web.schemas.streams import (
    CaptionAnswer,
    CaptionFilesAnswer,
    CaptionPageAnswer,
    CaptionsBody,
    CaptionsWrittenAnswer,
    LiveCaptionAnswer,
)
from conspectus.web.sse import frame
from conspectus.web.streams import CAPTIONS, STREAM, FoundStream, InCollection, StreamName, Within, found_by
from conspectus.web.subscriptions import LastEvent, ListenersOf, LiveEvents, StillGood, resumed, streamed

router = Section("streams")
OR_LINES: Responses = {200: {"content": LINES}, **problems()}


@dataclass(frozen=True, slots=True)
class Importing:
    """How files of captions are taken in."""

    collection: Annotated[str, Form(min_length=1, max_length=NAME)] = "default"
    sentences: Annotated[bool, Form(description="Put sentences together over the borders of cues.")] = True
    replace: Annotated[bool, Form(description="Let those of a stored key take its place.")] = True
    wait: Annotated[bool, Form(description="Answer when everything is found by meaning too.")] = False
    skip_unsupported: Annotated[bool, Form(description="Count files without captions, and go on.")] = False


Files = Annotated[list[UploadFile], File(min_length=1, description="Captions: SRT, VTT, ASS, JSON, ...")]
How = Annotated[Importing, Depends()]


add_routes(router, EVENT_OPERATIONS)


@router.post(
    CAPTIONS, response_model=CaptionsWrittenAnswer, status_code=201, responses=problems(),
    dependencies=[Unhurried], openapi_extra=SENT_AS_LINES,
)  # fmt: skip
async def add_captions(
    stream: StreamName, body: CaptionsBody, engine: EngineOf, *, collection: InCollection = "default"
) -> CaptionsWrittenAnswer:
    """Store captions in any order, any number of times; the stream is made if it is new."""
    captions = [each.caption() for each in body.captions]
    written = await engine.streams.add_captions(
        captions, stream=stream, collection=collection, replace=body.replace, wait=body.wait
    )
    return CaptionsWrittenAnswer.of(written)


@router.get(CAPTIONS, response_model=CaptionPageAnswer, responses=OR_LINES)
async def list_captions(
    found: FoundStream, within: Within, engine: EngineOf, *, after: After = None, limit: Limit = 100
) -> CaptionPageAnswer:
    """A page of the captions of a range in the order of time; as JSON lines, all of them."""
    page = await engine.streams.captions(**found_by(found), within=within, after=after, limit=limit)
    return CaptionPageAnswer.of(page, clock_of(found.source))


@router.post(
    "/streams/import", response_model=CaptionFilesAnswer, responses=problems(415), dependencies=[Unhurried]
)
async def import_streams(
    files: Files,
    how: How,
    engine: EngineOf,
    *,
    stream: Annotated[str | None, Form(min_length=1, max_length=NAME)] = None,
) -> CaptionImport:
    """Take in files of captions, each as a stream of its own where none is named."""
    return await _taken_in(files, engine, stream, how)


@router.post(
    f"{CAPTIONS}/import", response_model=CaptionFilesAnswer, responses=problems(415), dependencies=[Unhurried]
)
async def import_captions(stream: StreamName, files: Files, how: How, engine: EngineOf) -> CaptionImport:
    """Take in files of captions of one stream; again changes nothing."""
    return await _taken_in(files, engine, stream, how)


@router.get(f"{STREAM}/stream", response_class=Response, responses=streamed())
async def follow_captions(
    found: FoundStream, request: Request, engine: EngineOf, listeners: ListenersOf, last: LastEvent = None
) -> Response:
    """New captions as events, from now on or after the event of Last-Event-ID."""
    listeners.require_room(request.state.person)
    newest = await engine.streams.newest_change(**found_by(found))
    given = resumed(last)
    after = newest if given is None else given
    clock = clock_of(found.source)
    without_limits(request)
    events = engine.streams.subscribe(**found_by(found), after=after)
    still_good: StillGood = request.state.still_good
    return LiveEvents(events, lambda each: _event(each, clock), listeners, after=after, still_good=still_good)


add_routes(router, STREAM_OPERATIONS)


@router.delete(STREAM, response_model=ReceiptAnswer, responses=problems(), dependencies=[Unhurried])
async def delete_stream(found: FoundStream, engine: EngineOf, *, purge: Purge = False) -> Receipt:
    """Delete a stream with everything in it."""
    return await engine.collections.delete_source(found.source.id, purge=purge)


async def _taken_in(
    files: Sequence[UploadFile], engine: Engine, stream: str | None, how: Importing
) -> CaptionImport:
    with TemporaryDirectory() as folder:
        uploads = await handed_in(files, folder)
        return await engine.streams.import_captions(uploads, stream=stream, **asdict(how))


def _event(live: LiveCaption, clock: StreamClock) -> bytes:
    told = LiveCaptionAnswer(sequence=live.sequence, caption=CaptionAnswer.of(live.caption, clock))
    return frame(told.model_dump_json(), name="caption", id=str(live.sequence))
