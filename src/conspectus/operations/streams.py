"""The operations on streams, their events and summaries, each declared once."""

from typing import Final

from conspectus.engine.events import EventService
from conspectus.engine.streams import StreamService
from conspectus.engine.summaries import SummaryService
from conspectus.model.stream_summaries import SummaryRequest
from conspectus.model.streams import StreamQuery
from conspectus.operations.operation import Operation

_IN: Final = ("collection",)
_STREAM: Final = "/streams/{stream}"
_CAPTIONS: Final = f"{_STREAM}/captions"

_SUMMARY: Final = f"{_STREAM}/summary"
_LIVE: Final = f"{_SUMMARY}/live"

STREAM_OPERATIONS: Final = (
    Operation(
        SummaryService.summarize,
        "POST",
        _SUMMARY,
        query=_IN,
        fields_of=SummaryRequest,
        reads=True,
        unhurried=True,
        asks_model=True,
        problems=(429,),
    ),
    Operation(SummaryService.get, "GET", _SUMMARY, id="get_summary", fields_of=SummaryRequest),
    Operation(
        SummaryService.start_job,
        "POST",
        f"{_SUMMARY}/start",
        query=_IN,
        fields_of=SummaryRequest,
        status=202,
        id="start_summary",
    ),
    Operation(
        SummaryService.set_live,
        "PUT",
        _LIVE,
        query=_IN,
        fields_of=SummaryRequest,
        status=204,
        id="set_live_summary",
    ),
    Operation(SummaryService.stop_live, "DELETE", _LIVE, status=204, id="stop_live_summary"),
    Operation(StreamService.put, "POST", "/streams", spread="stream", id="put_stream"),
    Operation(StreamService.list, "GET", "/streams", id="list_streams"),
    Operation(
        StreamService.search,
        "POST",
        "/streams/search",
        fields_of=StreamQuery,
        reads=True,
        id="search_streams",
    ),
    Operation(
        StreamService.window,
        "POST",
        "/streams/context",
        fields_of=StreamQuery,
        reads=True,
        id="stream_context",
    ),
    Operation(
        StreamService.add_captions,
        "POST",
        _CAPTIONS,
        query=_IN,
        unhurried=True,
        status=201,
        as_lines=True,
    ),
    Operation(StreamService.list_captions, "GET", _CAPTIONS, as_lines=True),
    Operation(StreamService.delete_captions, "DELETE", _CAPTIONS, unhurried=True, for_models="named"),
    Operation(StreamService.get, "GET", _STREAM, id="get_stream"),
    Operation(
        StreamService.delete, "DELETE", _STREAM, unhurried=True, id="delete_stream", for_models="named"
    ),
)
"""In matching order: a name may contain a slash, so the shorter path comes last."""

_EVENTS: Final = f"{_STREAM}/events"

EVENT_OPERATIONS: Final = (
    Operation(
        EventService.add,
        "POST",
        _EVENTS,
        query=("collection",),
        unhurried=True,
        status=201,
        id="add_events",
    ),
    Operation(EventService.list, "GET", _EVENTS, id="list_events"),
    Operation(EventService.count_entities, "GET", f"{_STREAM}/entities", wrapped="entities"),
    Operation(EventService.entity_timeline, "GET", f"{_STREAM}/timeline"),
)
