"""Every result survives the way through the server's schemas and the client's decoder."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.client.decode import decode
from conspectus.client.request import to_json
from conspectus.model import (
    access,
    alerts,
    channels,
    connections,
    graph,
    jobs,
    records,
    reports,
    results,
    stream_events,
)
from conspectus.model.annotations import base_of
from conspectus.model.records import Json
from conspectus.web.operation_schemas import response_type

ANSWERS = (
    *(access.Person, access.User, access.Group, access.Key, access.NewKey, access.Grant),
    *(records.Collection, records.Source, records.Document, records.Chunk, records.Written, records.Receipt),
    *(reports.Page, reports.Status, reports.CheckReport),
    *(results.Retrieval, results.Reranking, results.ContextWindow),
    *(jobs.Job, jobs.JobPage, jobs.IngestReport, jobs.EmbeddingRequest, jobs.RequestTotals),
    *(connections.Connection, channels.ChannelMessage, channels.ReplyChain, channels.ImportReport),
    *(graph.NodePage, graph.EdgePage, graph.Neighbor, graph.NodeHit, graph.GraphState, graph.GraphSummary),
    *(graph.GraphWritten, graph.GraphReceipt, graph.EntityLink, graph.EntityCount, graph.NodeEvent),
    *(alerts.AlertEvent, stream_events.EventSpan, stream_events.EntitySpan),
)
"""What a server answers with."""
TEXTS = st.text(max_size=12)
WHOLE = st.integers(0, 2**63 - 1)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
INSTANTS = st.datetimes(timezones=st.just(UTC))
SIMPLE = {
    str: TEXTS,
    int: WHOLE,
    bool: st.booleans(),
    float: st.floats(0.0, 1.0),
    datetime: INSTANTS,
    NoneType: st.none(),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that fields of the model have."""
    if hint == Json:
        return JSON
    if base_of(hint) is not hint:
        return values(base_of(hint))
    if is_dataclass(hint):
        # What does not count in comparisons stays in the engine that made it.
        return st.builds(hint, **{field.name: values(field.type) for field in fields(hint) if field.compare})
    if hint in SIMPLE:
        return SIMPLE[hint]
    return _composed(hint)


def _composed(hint: Any) -> st.SearchStrategy[Any]:
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return st.sampled_from(inner)
        case origin if origin in {Union, UnionType}:
            return st.one_of(*map(values, inner))
        case origin if origin is Mapping:
            return st.dictionaries(values(inner[0]), values(inner[1]), max_size=3)
    if inner[-1] is Ellipsis:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    return st.tuples(*map(values, inner))


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
@settings(max_examples=tries(25))
@given(data=st.data())
def test_what_a_server_answers_is_what_its_engine_gave(kind: Any, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    wire = response_type(kind).model_validate(value).model_dump_json()
    assert decode(kind, json.loads(wire)) == value


@pytest.mark.parametrize(
    "kind", [*ANSWERS, reports.FilesReport, connections.SyncReport], ids=lambda kind: kind.__name__
)
@settings(max_examples=tries(25))
@given(data=st.data())
def test_encoding_and_decoding_are_inverse(kind: Any, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    wire = json.dumps(to_json(value), ensure_ascii=False, allow_nan=False)
    assert to_json(decode(kind, json.loads(wire))) == to_json(value)


@given(hours=st.integers(-14, 14))
def test_instants_keep_their_zone(hours: int) -> None:
    moment = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=hours)))
    again = decode(records.Period, to_json(records.Period(moment, moment))).start
    assert (again, again.utcoffset()) == (moment, moment.utcoffset())
