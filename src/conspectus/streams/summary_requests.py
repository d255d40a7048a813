"""What is asked for in a summary: checked, named, and as JSON."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final

from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.records import Json, Metadata
from conspectus.model.streams import CaptionRange, SummaryRequest, When
from conspectus.ports.timelines import Span
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

MOST_BATCH: Final = 1_024
MOST_SENTENCES: Final = 1_000


def checked(request: SummaryRequest, *, most_characters: int) -> SummaryRequest:
    """The request as it can be stored. Raises InvalidInput or TooLarge."""
    if request.mode not in {"batches", "refine"}:
        raise InvalidInput("mode", f"{request.mode!r} is none; there are batches and refine")
    if not 1 <= request.batch_size <= MOST_BATCH:
        raise InvalidInput("batch_size", f"must be from 1 to {MOST_BATCH}")
    if not 1 <= request.sentences <= MOST_SENTENCES:
        raise InvalidInput("sentences", f"must be from 1 to {MOST_SENTENCES}")
    if len(request.prompt) > most_characters:
        raise TooLarge("prompt", size=len(request.prompt), limit=most_characters, unit="characters")
    return replace(request, prompt=clean(request.prompt))


def recipe(request: SummaryRequest, span: Span, model: str) -> str:
    """A name for all that decides how captions are put together and what is asked about them."""
    bounds = [None if each is None else each.isoformat() for each in (span.start, span.end)]
    schema = None if request.schema is None else json.dumps(dict(request.schema), sort_keys=True)
    told = [
        model, request.mode, request.batch_size, request.prompt, schema,
        *bounds, span.contains, span.first, span.last,
    ]  # fmt: skip
    return stable_id("recipe", json.dumps(told))


def request_to_json(request: SummaryRequest) -> dict[str, Json]:
    """The request as JSON, for `request_from_json`."""
    within = request.range
    told: dict[str, Json] = {
        each.name: getattr(request, each.name)
        for each in fields(request)
        if each.name not in {"range", "schema"}
    }
    told["schema"] = None if request.schema is None else dict(request.schema)
    told["range"] = {
        "start": _time(within.start),
        "end": _time(within.end),
        "contains": within.contains,
        "first": within.first,
        "last": within.last,
    }
    return told


def request_from_json(told: Metadata) -> SummaryRequest:
    """The inverse of `request_to_json`."""
    given: dict[str, Any] = dict(told)
    within = given.pop("range", None)
    return SummaryRequest(
        **given, range=CaptionRange(**within) if isinstance(within, Mapping) else CaptionRange()
    )


def _time(when: When | None) -> Json:
    return when.isoformat() if isinstance(when, datetime) else when
