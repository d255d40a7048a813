"""Run summaries: validate requests and call the model for each batch."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import (
    ChatAuthFailed,
    ChatError,
    ChatModelUnknown,
    ChatNotConfigured,
    InvalidInput,
    TooLarge,
)
from conspectus.model.captions import CaptionRange, When
from conspectus.model.records import Json, Metadata
from conspectus.model.stream_summaries import BatchSummary, SummaryRequest
from conspectus.ports.streams import Span
from conspectus.streams.caption_batches import Batch
from conspectus.streams.summarizer import CaptionText, Summarizer, run_all
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

logger = logging.getLogger(__name__)

HOPELESS: Final = (ChatAuthFailed, ChatModelUnknown, ChatNotConfigured)
"""Errors that affect all further requests too."""


class NotStored(Exception):
    """The summary is not stored, and the model must not be called."""

    code: Final = "not_summarized"
    user_message: Final = "It was not summarized yet, or could not be."


@dataclass(frozen=True, slots=True)
class Finished:
    """The results of all batches and of the overall summary. `fault` is the first error, if any."""

    batches: tuple[BatchSummary, ...]
    full_text: CaptionText | None
    fault: ChatError | NotStored | None


@dataclass(frozen=True, slots=True)
class _Ended:
    batch: Batch
    user_message: CaptionText | None
    fault: ChatError | NotStored | None = None

    def summary(self) -> BatchSummary:
        """Return the report, with an error message without internals."""
        start, end = self.batch.times
        number, captions = self.batch.number, len(self.batch.captions)
        if self.user_message is not None:
            return BatchSummary(number, start, end, captions, "done", self.user_message.text)
        code, error = (None, None) if self.fault is None else (self.fault.code, self.fault.user_message)
        return BatchSummary(number, start, end, captions, "failed", "", code, error)


async def in_batches(
    writer: Summarizer, batches: Sequence[Batch], done: Callable[[int], None], *, workers: int, together: bool
) -> Finished:
    """Summarize each batch on its own, concurrently up to the number of workers, then all if `together`."""
    waiting = iter(batches)
    ended: list[_Ended] = []

    async def work() -> None:
        for batch in waiting:
            ended.append(await _attempt(batch, writer.batch(batch)))
            done(len(ended))

    await run_all([work() for _ in range(min(workers, len(batches)))])
    ended.sort(key=lambda summarized: summarized.batch.number)
    values = [
        (summarized.user_message, summarized.batch)
        for summarized in ended
        if summarized.user_message is not None
    ]
    full_text = await writer.merge(values) if together and values else None
    return _finish(ended, full_text)


async def in_turn(writer: Summarizer, batches: Sequence[Batch], done: Callable[[int], None]) -> Finished:
    """Summarize batches in sequence, each with the summary of the earlier ones."""
    values: CaptionText | None = None
    ended: list[_Ended] = []
    for batch in batches:
        ended.append(await _attempt(batch, writer.refine_with(values, batch)))
        values = ended[-1].user_message or values
        done(len(ended))
    return _finish(ended, values)


def _finish(ended: Sequence[_Ended], full_text: CaptionText | None) -> Finished:
    fault = next((summarized.fault for summarized in ended if summarized.fault is not None), None)
    return Finished(tuple(summarized.summary() for summarized in ended), full_text, fault)


async def _attempt(batch: Batch, work: Awaitable[CaptionText]) -> _Ended:
    try:
        return _Ended(batch, await work)
    except HOPELESS:
        raise
    except ChatError as fault:
        logger.warning(
            "summary_batch_failed batch=%(batch)s error=%(error)s", {"batch": batch.number, "error": fault}
        )
        return _Ended(batch, None, fault)
    except NotStored as fault:
        return _Ended(batch, None, fault)


def check_request(request: SummaryRequest, *, max_characters: int) -> SummaryRequest:
    """Return the request in its stored form. Raises InvalidInput or TooLarge."""
    if request.mode not in {"batches", "refine"}:
        raise InvalidInput("mode", f"{request.mode!r} is unknown; expected one of batches, refine")
    size = len(request.instructions)
    if size > max_characters:
        raise TooLarge("instructions", size=size, limit=max_characters, unit="characters")
    return replace(request, instructions=clean(request.instructions))


def recipe(request: SummaryRequest, span: Span, model: str) -> str:
    """Return a key over all settings that determine how captions are grouped and prompted."""
    bounds = [None if bound is None else bound.isoformat() for bound in (span.start, span.end)]
    schema = None if request.schema is None else json.dumps(dict(request.schema), sort_keys=True)
    values = [
        model, request.mode, request.batch_size, request.instructions, schema,
        *bounds, span.contains, span.first, span.last,
    ]  # fmt: skip
    return stable_id("recipe", json.dumps(values))


def request_to_json(request: SummaryRequest) -> dict[str, Json]:
    """Return the request as JSON for `request_from_json`."""
    within = request.range
    values: dict[str, Json] = {
        request_field.name: getattr(request, request_field.name)
        for request_field in fields(request)
        if request_field.name not in {"range", "schema"}
    }
    values["schema"] = None if request.schema is None else dict(request.schema)
    values["range"] = {
        "start": _time(within.start),
        "end": _time(within.end),
        "contains": within.contains,
        "first": within.first,
        "last": within.last,
    }
    return values


def request_from_json(values: Metadata) -> SummaryRequest:
    """Parse a request. The inverse of `request_to_json`."""
    arguments: dict[str, Any] = dict(values)
    within = arguments.pop("range", None)
    return SummaryRequest(
        **arguments, range=CaptionRange(**within) if isinstance(within, Mapping) else CaptionRange()
    )


def _time(when: When | None) -> Json:
    return when.isoformat() if isinstance(when, datetime) else when
