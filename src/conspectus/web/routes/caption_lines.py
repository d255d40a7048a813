"""Captions as JSON lines: taken in as they arrive, and given out as they are read."""

from collections.abc import AsyncIterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from fastapi import Request, Response
from pydantic import ValidationError

from conspectus.engine import Engine
from conspectus.errors import ConspectusError, InvalidInput, NotFound
from conspectus.ingest.captions import caption_document
from conspectus.ingest.prepare import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Source
from conspectus.model.streams import NewCaption
from conspectus.streams.caption_format import line_of
from conspectus.text.times import clock_of
from conspectus.web.deps import EngineOf, Unhurried
from conspectus.web.ndjson import LinesRoute, arriving, lines_in, sent_as_lines
from conspectus.web.openapi import Section
from conspectus.web.operation_schemas import given, request_model
from conspectus.web.problem_details import Problem, Refused, invalid, problem_of
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
    """Store captions, batch by batch, and count what became of them."""
    pieces = arriving(request.stream(), request.app.state.listeners.settings.request_timeout_seconds)
    taken = await take_lines(pieces, engine, stream=stream, collection=collection, replacing=replace)
    if wait:
        await engine.documents.wait_until_embedded(collection=collection)
    return taken


@router.get(CAPTIONS, include_in_schema=False, dependencies=[Unhurried])
async def export_lines(found: FoundStream, within: Within, engine: EngineOf) -> Response:
    """All captions of a range."""
    read = partial(engine.streams.captions, **found_by(found), within=within, limit=PAGE)
    return await sent_as_lines(read, lambda page: map(line_of, page.captions))


class ImportedCaptions:
    """What is written so far, and the lines that wait to be."""

    def __init__(self, engine: Engine, source: Source, **where: Any) -> None:
        self._engine = engine
        self._source = source
        self._where = where
        self._clock = clock_of(source)
        self.counts = dict.fromkeys(_OUTCOMES.values(), 0)
        """How many were added, replaced and unchanged."""
        self._waiting: list[tuple[int, NewCaption]] = []
        self._size = 0

    async def take(self, number: int, line: bytes) -> None:
        """Take in one line. Raises Refused with its number."""
        try:
            caption: NewCaption = given(NewCaption, _CAPTION.model_validate_json(line))
            caption_document(caption, self._source, self._clock)
        except ValidationError as fault:
            raise _refused(invalid(_in_body(fault)), line=number) from fault
        except InvalidInput as fault:
            raise _refused(problem_of(fault), line=number) from fault
        self._size += len(caption.text)
        if len(self._waiting) == BATCH_DOCUMENTS or self._size > BATCH_CHARACTERS:
            await self.write()
            self._size = len(caption.text)
        self._waiting.append((number, caption))

    async def write(self) -> None:
        """Write what waits, whole or not at all. Raises Refused with the numbers of its lines."""
        if not self._waiting:
            return
        first, last = self._waiting[0][0], self._waiting[-1][0]
        try:
            written = await self._engine.streams.add_captions(
                [each for _, each in self._waiting], **self._where
            )
        except ConspectusError as fault:
            raise _refused(problem_of(fault), first_line=first, last_line=last) from fault
        for each in written:
            self.counts[_OUTCOMES[each.outcome]] += 1
        self._waiting = []


async def take_lines(
    pieces: AsyncIterable[bytes], engine: Engine, *, stream: str, collection: str, replacing: bool
) -> Mapping[str, int]:
    """Write the captions of a body, of which never more than a batch is held.

    Raises Refused, in whose problem are the numbers of the lines at fault, counted from 1, and what is
    written of those before them.
    """
    source = await _source(engine, stream, collection)
    taken = ImportedCaptions(engine, source, stream=stream, collection=collection, replace=replacing)
    try:
        async for number, line in lines_in(pieces):
            await taken.take(number, line)
        await taken.write()
    except Refused as refused:
        raise _refused(refused.problem, **taken.counts) from refused
    except ConspectusError as fault:
        raise _refused(problem_of(fault), **taken.counts) from fault
    return taken.counts


async def _source(engine: Engine, stream: str, collection: str) -> Source:
    """The stream as it is, or as it will be made."""
    try:
        return (await engine.streams.get(stream, collection=collection)).source
    except NotFound:
        return Source(SourceId(stream), CollectionId(collection), stream, kind="stream")


def _refused(problem: Problem, **facts: int) -> Refused:
    return Refused(replace(problem, facts={**problem.facts, **facts}))


def _in_body(fault: ValidationError) -> list[dict[str, Any]]:
    return [{**each, "loc": ("body", *each["loc"])} for each in fault.errors(include_context=False)]
