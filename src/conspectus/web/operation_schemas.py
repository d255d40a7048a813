"""Schemas of requests and answers, derived from the types of an operation's method."""

import inspect
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, NewType, Union, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, create_model
from pydantic import Field as Limited

from conspectus.access.keys import MAX_NAME_LENGTH
from conspectus.engine.alerts import MAX_ADDRESS_LENGTH, MAX_GAP_SECONDS, MAX_STREAMS
from conspectus.memory.retention import MAX_DAYS, MAX_MEMORIES
from conspectus.model.access import SCOPES, Person, Scope
from conspectus.model.checks import hints
from conspectus.model.filter import EVERYTHING, Filter, filter_from_json, filter_to_json
from conspectus.model.jobs import JobRates, RequestTotals
from conspectus.model.memory import MAX_FACT_TOKENS
from conspectus.model.query import QueryContext, Retriever
from conspectus.model.reports import CheckReport
from conspectus.model.results import Retrieval
from conspectus.model.streams import Stream
from conspectus.operations.operation import member_of
from conspectus.streams.summary_runner import MAX_BATCH, MAX_SENTENCES
from conspectus.text.vectors import MAX_DIMENSIONS
from conspectus.web.schemas.base import (
    CURSOR,
    INT64,
    MAX_DESCRIPTION_LENGTH,
    MAX_IDS,
    MAX_QUESTION_LENGTH,
    BudgetBody,
    Finite,
    Identifier,
    Instant,
    Int64,
    JsonObject,
    Label,
    MinSimilarity,
    Name,
    QueryContextBody,
    Question,
    Renderer,
    RequestModel,
    ResponseModel,
    Share,
    Span,
    Text,
    Tokenizer,
    Tokens,
    Where,
)

MAX_PARTS: Final = 1_000_000
"""Most elements of a list when it is parsed; the settings limit how many are accepted."""
MAX_TIME_LENGTH: Final = 100
Moment = Annotated[str, Limited(max_length=MAX_TIME_LENGTH, examples=["2026-03-02T08:00:00Z"])]
When = Annotated[
    Annotated[str, Limited(max_length=MAX_TIME_LENGTH)] | Annotated[float, Limited(allow_inf_nan=False)],
    Limited(
        description="Seconds or a timecode on the stream's clock, or an ISO 8601 instant.",
        examples=["00:12:30"],
    ),
]
_LISTS: Final = (Sequence, Iterable, list, tuple)
_REQUESTED: Final[Mapping[Any, Any]] = {
    str: Annotated[str, Limited(max_length=MAX_QUESTION_LENGTH)],
    int: Int64,
    float: Finite,
    datetime: Instant,
    tuple[int, int]: Span,
    QueryContext: QueryContextBody,
}
_PLAIN: Final = frozenset({str, int, float, bool})
_ANSWERED: Final[Mapping[Any, Any]] = {
    Filter: Annotated[JsonObject, BeforeValidator(filter_to_json)],
}
_SHOWN: Final[Mapping[Any, Sequence[str]]] = {
    CheckReport: ("clean",),
    JobRates: ("failure_rate", "retry_rate"),
    RequestTotals: ("error_rate",),
    Stream: ("wall",),
}
"""Properties that an answer has besides the fields of a dataclass."""
_HIDDEN: Final[Mapping[Any, Sequence[str]]] = {Person: ("key",), Retrieval: ("terms", "nearest")}
"""Fields of a dataclass that no answer has."""
_CURSOR: Final = Annotated[str, Limited(max_length=CURSOR, description="The `next` of the page before.")]
TEXTS: Final[Mapping[str, Any]] = {
    "after": _CURSOR,
    "channel": Name,
    "collection": Name,
    "embedder": Name,
    "graph": Name,
    "name": Name,
    "tokenizer": Tokenizer,
}
"""Bounds of texts by the name of the parameter."""

_IDS: Final = Annotated[list[Identifier], Limited(max_length=MAX_IDS)]
_PAGE: Final = Annotated[int, Limited(ge=1, lt=INT64, description="Most of them on a page.")]
_STREAMS: Final = Annotated[list[Name], Limited(max_length=MAX_STREAMS)]
_ACCOUNT: Final = Annotated[str, Limited(min_length=1, max_length=MAX_NAME_LENGTH)]
_FEW: Final = Annotated[int, Limited(ge=0, lt=INT64)]
_MAX_WRITTEN: Final = 10_000
_ENTITIES: Final = Annotated[list[Label], Limited(max_length=1_000)]
_VECTOR: Final = Annotated[list[Finite], Limited(min_length=1, max_length=MAX_DIMENSIONS)] | None
_DAYS: Final = Annotated[float, Limited(ge=0, le=MAX_DAYS, allow_inf_nan=False)]
_BUDGET: Final = Annotated[
    Tokens | BudgetBody, Limited(description="Tokens counted with o200k_base, or a budget.")
]
_HITS: Final = _FEW
"""Bounded by the settings, which the engine names."""
_ALONG: Final = "Maximum number of messages of its thread added to a hit."
_MAX_ITEMS: Final = frozenset(
    {"add_captions.captions", "add_events.events", "add_memories.memories", "add_messages.messages"}
)
"""Lists of at most `_MAX_WRITTEN` elements, by method and parameter."""
_SHARED: Final[Sequence[tuple[Any, str]]] = (
    (Question, "Query.query ChannelQuery.query MemoryQuery.query StreamQuery.query"),
    (
        MinSimilarity | None,
        """
        Query.min_similarity ChannelQuery.min_similarity MemoryQuery.min_similarity
        StreamQuery.min_similarity
        """,
    ),
    (
        Share,
        """
        Query.min_confidence ChannelQuery.min_confidence MemoryQuery.min_confidence
        StreamQuery.min_confidence MemoryQuery.notes_share GraphExpansion.alpha Traversal.min_weight
        """,
    ),
    (
        Renderer,
        """
        context.format augment.format channel_context.format memory_context.format stream_context.format
        """,
    ),
    (
        _PAGE,
        """
        list_alert_matches.limit list_captions.limit list_documents.limit list_memories.limit
        list_messages.limit list_requests.limit get_reply_chain.limit
        """,
    ),
    (_BUDGET, "channel_context.max_tokens memory_context.max_tokens stream_context.max_tokens"),
    (Tokens, "Budget.max_tokens"),
    (Tokens | None, "MemoryQuery.recent_tokens"),
    (_HITS, "StreamQuery.limit search_and_rerank.candidates"),
    (_FEW, "list_alert_matches.after"),
    (_FEW | None, "list_recent_memories.limit list_recent_memories.max_tokens list_requests.after"),
    (_DAYS | None, "MemorySelection.older_than_days Retention.days"),
    (_IDS, "delete_documents.ids get_texts.ids"),
    (_STREAMS, "NewAlert.streams StreamQuery.streams"),
    (_VECTOR, "Query.vector NewCaption.vector NewMemory.vector"),
    (_ENTITIES, "NewCaption.entities NewEvent.entities NewMemory.entities update_memory.entities"),
    (Text, "NewCaption.text NewEvent.description NewMemory.text NewMessage.text update_memory.text"),
    (_ACCOUNT, "create_group.name create_user.name"),
    (Identifier | None, "explain.document list_alert_matches.alert"),
    (
        Name,
        """
        ChannelQuery.profile NewAlert.collection NewAlert.name NewEvent.type create_connection.connector
        entity_timeline.entity get_document_by_key.key get_document_by_key.source
        """,
    ),
    (Name | None, "ChannelQuery.thread Scope.agent Scope.conversation list_events.type"),
    (Label, "Fact.subject Fact.predicate Fact.object"),
    (
        Label | None,
        """
        NewCaption.key NewCaption.speaker NewEvent.key NewMemory.key NewMemory.role NewMemory.speaker
        NewMessage.author NewMessage.key NewMessage.reply_to NewMessage.role NewMessage.thread
        NewStream.time_zone NewStream.title list_memories.entity update_memory.role update_memory.speaker
        """,
    ),
    (When, "NewEvent.start"),
    (When | None, "NewCaption.start NewCaption.end NewEvent.end"),
    (_REQUESTED[str] | None, "list_edges.after list_nodes.after"),
    (Share | None, "link_entities.min_score"),
)
_LIMITS: Final[Mapping[str, Any]] = {
    **{name: kind for kind, names in _SHARED for name in names.split()},
    "Query.limit": Annotated[_HITS | None, Limited(description="Maximum number of hits.")],
    "Query.retrievers": Annotated[list[Retriever], Limited(max_length=2)] | None,
    "Query.rerank": Annotated[bool, Limited(description="Rerank the hits, where a reranker is set.")],
    "Query.thread_messages": Annotated[_HITS, Limited(description=_ALONG)],
    "Query.as_of": Annotated[
        Instant | None, Limited(description="Answer with the state known at that instant.")
    ],
    "Budget.system": Annotated[
        Question, Limited(description="A system prompt that `max_tokens` must also cover.")
    ],
    "Budget.budget_query": Annotated[
        Question, Limited(description="A user message that `max_tokens` must also cover.")
    ],
    "Budget.reserved_tokens": Annotated[Tokens, Limited(description="Tokens kept free for the answer.")],
    "augment.min_similarity": Annotated[
        MinSimilarity | None, Limited(description="Lowest similarity; by default 0.25, with null none.")
    ],
    "search_and_rerank.limit": Annotated[
        _HITS | None, Limited(description="Maximum number of hits; by default 5.")
    ],
    "GraphExpansion.hops": _FEW,
    "GraphExpansion.graphs": Annotated[list[Name], Limited(max_length=1_000)] | None,
    "ChannelQuery.member": Annotated[
        Name | None, Limited(description="Only channels that this author may be in.")
    ],
    "ChannelQuery.thread_messages": Annotated[_FEW, Limited(description=_ALONG)],
    "create_key.label": Annotated[str, Limited(max_length=MAX_NAME_LENGTH)],
    "create_key.scopes": Annotated[list[Scope], Limited(min_length=1, max_length=len(SCOPES))] | None,
    "update_collection.description": Annotated[str, Limited(max_length=MAX_DESCRIPTION_LENGTH)] | None,
    "list_jobs.limit": Annotated[int, Limited(ge=1, le=100, description="Most of them on a page.")],
    "request_totals.hours": Annotated[int, Limited(ge=1, le=366 * 24, description="How far to look back.")],
    "ingest_url.url": Annotated[str, Limited(min_length=1, max_length=8_192)],
    "ingest_url.method": Annotated[str, Limited(min_length=1, max_length=20)],
    "ingest_url.headers": Annotated[
        dict[str, Annotated[str, Limited(max_length=8_192)]],
        Limited(max_length=100, description="Sent with the request, and stored nowhere."),
    ]
    | None,
    "ingest_url.source": Annotated[Name, Limited(description="By default one for each domain.")] | None,
    "ingest_url.chunk_size": Annotated[int, Limited(ge=1, le=1_000_000)] | None,
    "ingest_url.overlap": Annotated[int, Limited(ge=0, le=1_000_000)] | None,
    "export_memories.limit": Annotated[Int64, Limited(description="Most lines on a page.")] | None,
    "import_memories.lines": Annotated[list[Text], Limited(max_length=_MAX_WRITTEN)],
    "NewCaption.index": Annotated[int, Limited(ge=0, lt=INT64, description="Its number in the stream.")]
    | None,
    "SummaryRequest.batch_size": Annotated[
        int, Limited(ge=1, le=MAX_BATCH, description="Captions that are summarized together.")
    ],
    "SummaryRequest.instructions": Annotated[str, Limited(max_length=100_000, description="What matters.")],
    "SummaryRequest.sentences": Annotated[
        int, Limited(ge=1, le=MAX_SENTENCES, description="Most captions that are chosen.")
    ],
    "NewStream.start_time": Moment | None,
    "CaptionRange.last": Annotated[Int64, Limited(ge=-1)] | None,
    "extract_facts.max_tokens": Annotated[
        int, Limited(ge=1, le=MAX_FACT_TOKENS, description="Most tokens of all calls of the model.")
    ]
    | None,
    "Scope.user": Annotated[Name, Limited(description="None: memories of no user, never those of all.")]
    | None,
    "Grep.pattern": Annotated[str, Limited(min_length=1, max_length=1_000)],
    "Grep.context": Annotated[int, Limited(ge=0, le=20, description="Lines before and after a match.")],
    "Grep.limit": Annotated[int, Limited(ge=1, lt=INT64, description="Most matching lines.")],
    "Grep.max_seconds": Annotated[float, Limited(ge=0, le=60)],
    "MemorySelection.ids": Annotated[list[Identifier], Limited(max_length=100_000)],
    "Retention.max_count": Annotated[int, Limited(ge=0, le=MAX_MEMORIES)] | None,
    "NewAlert.min_similarity": Annotated[float, Limited(ge=-1, le=1, allow_inf_nan=False)] | None,
    "NewAlert.gap_seconds": Annotated[float, Limited(ge=0, le=MAX_GAP_SECONDS, allow_inf_nan=False)],
    "NewAlert.webhook": Annotated[str, Limited(min_length=1, max_length=MAX_ADDRESS_LENGTH)] | None,
    "NewEdge.weight": Annotated[float, Limited(gt=0, le=1, allow_inf_nan=False)],
}
"""Bounds that the type of a parameter or field does not say, by method or class."""


def limited(owners: Iterable[str], name: str, hint: Any, text: Any = None) -> Any:
    """The request type of a method's parameter, or of a field of a class."""
    places = [f"{owner}.{name}" for owner in owners]
    maximum = MAX_PARTS if _MAX_ITEMS.isdisjoint(places) else _MAX_WRITTEN
    return next((_LIMITS[each] for each in places if each in _LIMITS), None) or requested(
        hint, text, maximum=maximum
    )


def _object(text: str) -> Any:
    try:
        read = json.loads(text)
    except RecursionError as fault:
        raise ValueError("is nested too deeply") from fault
    if not isinstance(read, dict):
        raise ValueError("must be a JSON object")
    return read


_OBJECT_TEXT: Final = Annotated[
    str, Limited(max_length=50_000, description="A JSON object."), AfterValidator(_object)
]


def in_address(hint: Any) -> Any:
    """The type of a query parameter: text for an object, and for a type that is also a number."""
    members = get_args(hint)
    if any(get_origin(each) is Mapping for each in members):
        return _OBJECT_TEXT | None
    if not {str, float}.issubset(members):
        return hint
    return reduce(or_, (each for each in members if each is not float))


def requested(hint: Any, text: Any = None, *, maximum: int = MAX_PARTS) -> Any:
    """The request type for values of this type; `text` is the one for a string."""
    if hint is str and text is not None:
        return text
    if hint == Filter:
        return Where | None
    if hint in _REQUESTED:
        return _REQUESTED[hint]
    origin, members = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        several = {get_args(each)[0] for each in members if get_origin(each) in _LISTS}
        kinds = [each for each in members if not ((each is datetime and str in members) or each in several)]
        text = Moment if datetime in members else requested(str, text)
        return reduce(or_, (text if each is str else requested(each, maximum=maximum) for each in kinds))
    if origin in _LISTS:
        member: Any = requested(members[0])
        return Annotated[list[member], Limited(max_length=maximum)]
    if origin is Mapping:
        return JsonObject
    return request_model(cast(Hashable, hint)) if is_dataclass(hint) else hint


@cache
def request_model(kind: Any) -> type[BaseModel]:
    """The schema of a dataclass that a request holds."""
    known = hints(kind)
    members: dict[str, Any] = {}
    for each in fields(kind):
        values = limited([kind.__name__], each.name, known[each.name])
        whole = is_dataclass(each.default)
        members[each.name] = (values | None, None) if whole else (values, _default(each))
    return create_model(kind.__name__, __base__=RequestModel, __doc__=inspect.getdoc(kind), **members)


def gathered(hint: Any, named: Mapping[str, Any]) -> Any:
    """A dataclass as the method takes it, of the values of its fields and of those of a scope in it."""
    known = hints(hint)
    return hint(
        **{
            each.name: given(known[each.name], named[name])
            if name in named
            else gathered(known[each.name], named)
            for each, name in ((each, member_of(hint, each.name)) for each in fields(hint))
            if name not in named or named[name] is not None or not is_dataclass(each.default)
        }
    )


def given(hint: Any, value: Any) -> Any:
    """The value of a request as the method takes it."""
    if type(value) in _PLAIN:
        return value
    members = get_args(hint)
    if hint == Filter:
        return EVERYTHING if value is None else filter_from_json(value) if isinstance(value, dict) else value
    if get_origin(hint) in {Union, UnionType}:
        kinds = [each for each in members if each is not NoneType and _holds(each, value)]
        return given(kinds[0], value) if value is not None and len(kinds) == 1 else value
    if isinstance(value, list):
        return tuple(given(members[0], each) for each in value)
    if not isinstance(value, BaseModel):
        return value
    known = hints(hint)
    values = {each.name: getattr(value, each.name) for each in fields(hint)}
    return hint(
        **{
            each.name: given(known[each.name], values[each.name])
            for each in fields(hint)
            if values[each.name] is not None or not is_dataclass(each.default)
        }
    )


def _holds(kind: Any, value: Any) -> bool:
    """Whether a value can belong to this member of a union."""
    if isinstance(value, list):
        return get_origin(kind) in _LISTS
    return is_dataclass(kind) or not isinstance(value, BaseModel)


def answered(hint: Any) -> Any:
    """The response type for values of this type."""
    if hint in _ANSWERED:
        return _ANSWERED[hint]
    origin, members = get_origin(hint), get_args(hint)
    if isinstance(hint, NewType):
        return answered(hint.__supertype__)
    if origin in {Union, UnionType}:
        return reduce(or_, (answered(each) for each in members))
    if origin in _LISTS:
        return GenericAlias(list, (answered(members[0]),))
    if origin is Mapping:
        is_json = members[1] in (Any, object) or get_origin(members[1]) in {Union, UnionType}
        return JsonObject if is_json else GenericAlias(dict, tuple(map(answered, members)))
    return response_model(cast(Hashable, hint)) if is_dataclass(hint) else hint


@cache
def response_model(kind: Any) -> type[BaseModel]:
    """The schema of a dataclass that an answer holds."""
    known = hints(kind)
    members: dict[str, Any] = {
        each.name: (answered(known[each.name]), ...)
        for each in fields(kind)
        if each.name not in _HIDDEN.get(kind, ())
    }
    members |= {name: (hints(getattr(kind, name).fget)["return"], ...) for name in _SHOWN.get(kind, ())}
    return create_model(kind.__name__, __base__=ResponseModel, __doc__=inspect.getdoc(kind), **members)


def answer_of(value: Any) -> BaseModel:
    """A dataclass as an answer holds it."""
    return response_model(cast(Hashable, type(value))).model_validate(value)


def _default(field: Field[Any]) -> Any:
    made = field.default if field.default_factory is MISSING else field.default_factory()
    if made is MISSING:
        return ...
    return list(made) if isinstance(made, tuple) else made
