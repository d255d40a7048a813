"""Summaries of streams: made, read, and kept up with live streams."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response

from conspectus.errors import InvalidInput, NotFound
from conspectus.model.streams import SummaryMode, SummaryRequest
from conspectus.text.times import clock_of
from conspectus.web.deps import EngineOf, Unhurried, without_limits
from conspectus.web.logs import API
from conspectus.web.openapi import Responses, Section, problems
from conspectus.web.schemas.jobs import JobAnswer
from conspectus.web.schemas.summaries import (
    BatchSize,
    Extractive,
    Prompt,
    Sentences,
    StandingSummaryBody,
    SummaryAnswer,
    SummaryBody,
)
from conspectus.web.streams import STREAM, FoundStream, Within, found_by

router = Section("streams")
SUMMARY = f"{STREAM}/summary"
LONGEST_SCHEMA = 50_000
MADE_LATER: dict[str, Any] = {
    "model": JobAnswer,
    "description": "The job that makes it.",
    "headers": {"Location": {"description": "Where the job can be watched.", "schema": {"type": "string"}}},
}
OR_A_JOB: Responses = {202: MADE_LATER, **problems(429)}


@dataclass(frozen=True, slots=True)
class Manner:
    """How the summary that is read was to be made."""

    mode: Annotated[SummaryMode, Query()] = "batches"
    batch_size: Annotated[BatchSize, Query()] = 6
    prompt: Annotated[Prompt, Query()] = ""
    schema: Annotated[str | None, Query(max_length=LONGEST_SCHEMA, description="A JSON Schema.")] = None
    extractive: Annotated[Extractive, Query()] = False
    sentences: Annotated[Sentences, Query()] = 10


@router.post(SUMMARY, response_model=SummaryAnswer, responses=OR_A_JOB, dependencies=[Unhurried])
async def summarise(
    found: FoundStream, body: SummaryBody, request: Request, engine: EngineOf
) -> SummaryAnswer | Response:
    """Summarise the captions of a range; what was summarised before is not asked for again."""
    asked = body.request(**found_by(found))
    if not body.wait:
        job = await engine.summaries.start_job(asked)
        told = JobAnswer.model_validate(job).model_dump_json()
        place = {"Location": f"{API}/jobs/{job.id}"}
        return Response(told, 202, place, "application/json")
    # A copy that is kept for a write that is sent twice would outlive captions that are deleted.
    request.state.shown_once = True
    without_limits(request)
    return SummaryAnswer.of(await engine.summaries.summarize(asked), clock_of(found.source))


@router.get(SUMMARY, response_model=SummaryAnswer, responses=problems())
async def get_summary(
    found: FoundStream, within: Within, manner: Annotated[Manner, Depends()], engine: EngineOf
) -> SummaryAnswer:
    """The summary as far as it is kept, without asking a model."""
    made = await engine.summaries.get(
        SummaryRequest(
            **found_by(found),
            range=within,
            mode=manner.mode,
            batch_size=manner.batch_size,
            prompt=manner.prompt,
            schema=_schema(manner.schema),
            extractive=manner.extractive,
            sentences=manner.sentences,
        )
    )
    if made is None:
        raise NotFound("summary", found.source.name)
    return SummaryAnswer.of(made, clock_of(found.source))


@router.put(f"{SUMMARY}/live", status_code=204, responses=problems())
async def keep_summarised(found: FoundStream, body: StandingSummaryBody, engine: EngineOf) -> None:
    """Summarise each batch of a live stream when it is full, and the rest when the stream ends."""
    await engine.summaries.summarize_live(body.request(**found_by(found)), **found_by(found))


@router.delete(f"{SUMMARY}/live", status_code=204, responses=problems())
async def stop_summarising(found: FoundStream, engine: EngineOf) -> None:
    """Summarise a live stream no more; what is kept stays."""
    await engine.summaries.summarize_live(None, **found_by(found))


def _schema(text: str | None) -> Any:
    if text is None:
        return None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput("schema", "is not JSON") from fault
    if not isinstance(read, dict):
        raise InvalidInput("schema", "must be an object")
    return read
