"""Streams: live and imported captions, captions by time, and searches."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import Annotated, Final

from fastapi import Depends, File, Form, Request, Response, UploadFile

from conspectus.engine import Engine
from conspectus.model.streams import CaptionImport, LiveCaption
from conspectus.operations import EVENT_OPERATIONS, STREAM_OPERATIONS
from conspectus.web.bodies import handed_in
from conspectus.web.deps import EngineOf, Unhurried, without_limits
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import response_model
from conspectus.web.schemas.base import NAME
from conspectus.web.sse import frame
from conspectus.web.streams import CAPTIONS, STREAM, FoundStream, StreamName, found_by
from conspectus.web.subscriptions import LastEvent, ListenersOf, LiveEvents, StillGood, resumed, streamed

router = Section("streams")
IMPORTED: Final = response_model(CaptionImport)


@dataclass(frozen=True, slots=True)
class Importing:
    """Options of an import of caption files."""

    collection: Annotated[str, Form(min_length=1, max_length=NAME)] = "default"
    sentences: Annotated[bool, Form(description="Put sentences together over the borders of cues.")] = True
    replace: Annotated[bool, Form(description="Let those of a stored key take its place.")] = True
    wait: Annotated[bool, Form(description="Answer when everything is found by meaning too.")] = False
    skip_unsupported: Annotated[bool, Form(description="Count files without captions, and go on.")] = False


Files = Annotated[list[UploadFile], File(min_length=1, description="Captions: SRT, VTT, ASS, JSON, ...")]
How = Annotated[Importing, Depends()]


add_routes(router, EVENT_OPERATIONS)


@router.post(
    "/streams/import",
    response_model=IMPORTED,
    responses=problems(415),
    dependencies=[Unhurried],
)
async def import_streams(
    files: Files,
    how: How,
    engine: EngineOf,
    *,
    stream: Annotated[str | None, Form(min_length=1, max_length=NAME)] = None,
) -> CaptionImport:
    """Import caption files, each as a stream of its own where none is named."""
    return await _import_captions(files, engine, stream, how)


@router.post(
    f"{CAPTIONS}/import",
    response_model=IMPORTED,
    responses=problems(415),
    dependencies=[Unhurried],
)
async def import_captions(stream: StreamName, files: Files, how: How, engine: EngineOf) -> CaptionImport:
    """Import caption files of one stream; importing again changes nothing."""
    return await _import_captions(files, engine, stream, how)


@router.get(f"{STREAM}/stream", response_class=Response, responses=streamed())
async def subscribe_captions(
    found: FoundStream, request: Request, engine: EngineOf, listeners: ListenersOf, last: LastEvent = None
) -> Response:
    """New captions as events, from now on or after the event of Last-Event-ID."""
    listeners.require_room(request.state.person)
    newest = await engine.streams.last_sequence(**found_by(found))
    given = resumed(last)
    after = newest if given is None else given
    await without_limits(request)
    events = engine.streams.subscribe(**found_by(found), after=after)
    still_good: StillGood = request.state.still_good
    return LiveEvents(events, _event, listeners, after=after, still_good=still_good)


add_routes(router, STREAM_OPERATIONS)


async def _import_captions(
    files: Sequence[UploadFile], engine: Engine, stream: str | None, how: Importing
) -> CaptionImport:
    with TemporaryDirectory() as folder:
        uploads = await handed_in(files, folder)
        return await engine.streams.import_captions(uploads, stream=stream, **asdict(how))


def _event(live: LiveCaption) -> bytes:
    body = response_model(LiveCaption).model_validate(live).model_dump_json()
    return frame(body, name="caption", id=str(live.sequence))
