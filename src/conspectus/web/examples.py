"""An example of each request and answer of the OpenAPI document, made from its schemas.

A value is looked up by the name of its field, in `VALUES`; what has none there has an example or a default in
the schema, or is made from its type. So a new route has examples at once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conspectus.deferred import dataclass

Schema = Mapping[str, Any]
NOW: Final = "2026-03-02T08:00:00Z"
DOCUMENT: Final = "0195f3a1c2d47e80b6a4c1d2e3f40517"
_SOURCE: Final = "3f2a9c51d8e64b07"
_TEXT: Final = "The backup runs every night at two."
_QUERY: Final = "When does the backup run?"
_GRAPH: Final = {
    "id": "8c1d2e3f40517a92",
    "collection": "notes",
    "name": "default",
    "metadata": {},
    "kind": "graph",
}
_STREAM: Final = {
    "id": "b6a4c1d2e3f40517",
    "collection": "notes",
    "name": "camera-1",
    "metadata": {},
    "kind": "stream",
}
_SHARED: Final[Sequence[tuple[Any, str]]] = (
    (
        "ann",
        """
        actor author by owner speaker user user_id CountMemoriesBody.user CreateKeyBody.user
        CreateUserBody.name DocumentReader.name Person.name Principal-Input.name Principal-Output.name
        ScopeBody.user User.name
        """,
    ),
    (NOW, "at from start_time"),
    ("login.log", "attachment attachment_id StoredAttachment.id"),
    ([], "closed closes failures notices CheckReport.records"),
    (
        None,
        """
        closed_by code error failure known_until next notice revoked superseded valid_until Grant.source
        Job.finished Job.result
        """,
    ),
    ("notes", "collection collection_name name"),
    (_QUERY, "content message query question ChatMessageBody.content"),
    (DOCUMENT, "document evidence id root thread"),
    (_GRAPH, "Edge.graph GraphSummary.source Node.graph"),
    (
        "minilm",
        """
        embedder EmbeddingRequest.model EmbeddingSpace.model EmbeddingsBody.model RequestTotals.model
        """,
    ),
    ("backup", "entity into node subject Edge.source EntityCount.key Mention.key Node.id"),
    ("process", "EntityCount.type Mention.type Node.type"),
    ({"field": "kind", "eq": "page"}, "filter CountDocumentsBody.filter DeleteDocumentsBody.filter"),
    ("default", "graph profile GetOrCreateGraphBody.name"),
    ("operators", "group CreateGroupBody.name Group.name"),
    ("Fix login", "IdentifiedTaskBody.title StoredTask.title TaskBody.title"),
    (_TEXT, "snippet text EmbeddingsBody.input"),
    ("handbook", "source source_name Source.name SourceBody.name UpdateCollectionBody.name"),
    ("camera-1", "stream PutStreamBody.name Stream.name"),
    ("auth-1", "task task_id IdentifiedTaskBody.id StoredTask.id"),
    (True, "wait CheckReport.clean RevokeGrantAnswer.revoked SetUserDisabledBody.disabled"),
)
"""Values that several fields have."""
VALUES: Final[Mapping[str, Any]] = {
    **{name: value for value, names in _SHARED for name in names.split()},
    "Idempotency-Key": "import-2026-03-02",
    "Last-Event-ID": "12",
    "after": "bmV4dA",
    "agent": "assistant",
    "alert": "0195f3a1c2d47e80b6a4c1d2e3f40a1e",
    "aliases": ["the backup"],
    "alpha": 0.5,
    "arguments": {},
    "channel": "operations",
    "chunk": 0,
    "connector": "git",
    "content_hash": "9b74c9897bac770ffc029102a200c5de",
    "conversation": "support-17",
    "cursor": "4f1c0de",
    "description": "How we run our servers.",
    "detail": "collection 'notes' not found",
    "end": 35,
    "end_text": "00:12:38",
    "entities": ["backup"],
    "file": "export.zip",
    "files": ["backup.md"],
    "fingerprint": "5d41402abc4b2a76",
    "first_text": "00:00:00",
    "format": "text",
    "heading": "Backups",
    "headings": ["Backups"],
    "ids": [DOCUMENT],
    "if-match": '"5d41402abc4b2a76"',
    "if-none-match": '"5d41402abc4b2a76"',
    "if_match": "5d41402abc4b2a76",
    "instructions": "Name the decisions.",
    "job": "0195f3a1c2d47e80b6a4c1d2e3f40b0b",
    "key": "backup.md",
    "label": "laptop",
    "language": "english",
    "last_text": "01:02:03",
    "limit": 10,
    "lines": ['{"text": "Prefers short answers.", "kind": "note"}'],
    "location": "p. 3",
    "max_tokens": 1000,
    "memory": "0195f3a1c2d47e80b6a4c1d2e3f40c0c",
    "metadata": {"lang": "en"},
    "method": "GET",
    "mode": "extractive",
    "model": "gpt-5-mini",
    "nodes": ["backups"],
    "object": "02:00",
    "options": {"url": "https://git.example.org/handbook.git"},
    "owned_by": "conspectus",
    "page": 3,
    "param": "messages",
    "path": "/data/store",
    "predicate": "runs at",
    "prefix": "back",
    "q": "login issues",
    "reason": "Both mean the nightly backup.",
    "reference": "[auth-1]",
    "role": "user",
    "schema": {"type": "object", "properties": {"decisions": {"type": "array"}}},
    "score": 0.82,
    "secret": "csp_...",
    "similarity": 0.71,
    "start": 0,
    "start_text": "00:12:30",
    "stop": "END",
    "store_in": "support-17",
    "system": "Answer from the context.",
    "tag": "security",
    "tags": ["security"],
    "target": "database",
    "temperature": 0.2,
    "texts": {DOCUMENT: _TEXT},
    "time_zone": "Europe/Berlin",
    "title": "Backups",
    "tokenizer": "o200k_base",
    "tokens": 42,
    "tool_call_id": "call_1",
    "transfer_to": "ben",
    "type": "depends on",
    "uri": "https://www.wikidata.org/entity/Q194274",
    "url": "https://example.org/handbook/backup",
    "vector": [0.12, -0.48, 0.31],
    "version": "0.1.0",
    "viewed_as": "ben",
    "webhook": "https://example.org/hooks/alerts",
    "AddCaptionsBody.captions": [{"text": "A train arrives.", "start": "00:12:30", "end": "00:12:38"}],
    "AddEdgesBody.edges": [{"source": "backup", "target": "database", "type": "depends on"}],
    "AddEventsBody.events": [{"type": "arrival", "start": "00:12:30", "description": "A train arrives."}],
    "AddMemoriesBody.memories": [{"text": "Prefers short answers.", "kind": "note"}],
    "AddMessagesBody.messages": [{"text": _QUERY, "author": "ann", "key": "17"}],
    "AddNodesBody.nodes": [{"id": "backup", "type": "process", "name": "Nightly backup"}],
    "ChatMessageBody.role": "user",
    "DeleteEdgesBody.edges": ["0195f3a1c2d47e80b6a4c1d2e3f40e0e"],
    "DocumentsBody.documents": [{"title": "Backups", "text": _TEXT, "key": "backup.md"}],
    "LinkEntitiesBody.text": "The nightly backup failed.",
    "Message.role": "system",
    "NewMemory.text": "Prefers short answers.",
    "SetRetentionBody.days": 30,
    "StoredTask.description": "Users are logged out after a minute.",
    "StoredAttachment.title": "Log",
    "TaskBody.description": "Users are logged out after a minute.",
    "TaskChange.status": "completed",
    "UpdateCollectionBody.description": "How we run our servers.",
    "UpdateMemoryBody.text": "Prefers short answers with sources.",
    "UpdateSourceBody.name": "runbooks",
    "Source.id": _SOURCE,
    "Node.name": "Nightly backup",
    "Alert.query": "a train arrives",
    "Alert.name": "arrivals",
    "PutAlertBody.query": "a train arrives",
    "PutAlertBody.name": "arrivals",
    "SearchStreamsBody.query": "When does the train arrive?",
    "StreamContextBody.query": "When does the train arrive?",
    "TaskContextBody.query": "What is to do about the login?",
    "RerankBody.chunks": [17, 4],
    "CompletionBody.messages": [{"role": "user", "content": _QUERY}],
    "BatchSummary.state": "done",
    "CheckReport.index": {"notes": []},
    "Connection.name": "wiki",
    "CreateConnectionBody.name": "wiki",
    "CreateConnectionBody.options": {"url": "https://git.example.org/handbook.git"},
    "CreateKeyBody.label": "laptop",
    "EmbeddingSpace.dimensions": 384,
    "EmbeddingSpace.version": "1",
    "EntityCount.name": "Backup",
    "EventSpan.descriptions": ["A train arrives."],
    "EventSpan.end": 758.0,
    "EventSpan.start": 750.0,
    "EventSpan.type": "arrival",
    "ExtractEntitiesBody.text": "The nightly backup failed.",
    "GraphSummary.relations": {"depends on": 1},
    "GraphSummary.types": {"process": 1},
    "IngestReport.states": {"succeeded": 12, "failed": 1},
    "Job.state": "running",
    "Mention.text": "nightly backup",
    "Mention.start": 4,
    "Mention.end": 18,
    "Moment.stream": _STREAM,
    "Node.properties": {},
    "NodeEvent.after": ["backup"],
    "NodeEvent.before": ["backup", "backups"],
    "SessionBody.key": "csp_...",
    "Stream.source": _STREAM,
    "StreamWindow.streams": [_STREAM],
    "PutGrantBody.role": "viewer",
    "MergeNodesBody.nodes": ["backups", "nightly-backup"],
    "DeleteNodesBody.nodes": ["backups"],
    "Job.kind": "ingest_url",
    "Memory.text": "Prefers short answers.",
    "ForgetBody.older_than_days": 90,
}
"""Values by the name of a field, or by its schema and name where that says more."""
SHOWN: Final = frozenset({"key", "limit", "max_tokens", "wait"})
"""Optional fields that an example of a request has."""
LINES: Final = "application/x-ndjson"
_TEXTS: Final = {
    LINES: '{"text": "Prefers short answers.", "kind": "note"}\n',
    "text/event-stream": 'id: 1\nevent: text\ndata: {"text": "Every night"}\n\n',
    "application/graphml+xml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph/></graphml>',
    "image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "text/plain; version=0.0.4; charset=utf-8": "conspectus_ready 1.0\n",
}
"""Answers that are no JSON."""
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
    "null": type(None),
}  # fmt: skip
_BY_TYPE: Final[Mapping[str, Any]] = {"integer": 1, "number": 0.5, "boolean": False, "null": None}
_FORMATS: Final = {"date-time": NOW, "binary": "backup.md"}


@dataclass(frozen=True)
class _Place:
    """Where a value stands: the schema and the field, and the schemas around it."""

    is_answer: bool
    owner: str = ""
    field: str = ""
    above: tuple[str, ...] = ()

    def leads_back(self, schema: Schema) -> bool:
        """Whether a schema is one of those around it."""
        return _name(schema) in self.above


class Examples:
    """Examples for the schemas of a document."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def request(self, schema: Schema) -> Any:
        """A request: what is required, and few of the other fields."""
        return self._made(schema, _Place(is_answer=False))

    def answer(self, schema: Schema) -> Any:
        """An answer, with all of its fields."""
        return self._made(schema, _Place(is_answer=True))

    def value(self, schema: Schema, owner: str, name: str) -> Any:
        """A parameter."""
        return self._made(schema, _Place(is_answer=False, owner=owner, field=name))

    def _made(self, schema: Schema, place: _Place) -> Any:
        for name in (f"{place.owner}.{place.field}", place.field):
            if name in VALUES and self._fits(schema, VALUES[name]):
                return VALUES[name]
        if own := _name(schema):
            return self._made(self._schemas[own], replace(place, owner=own, above=(*place.above, own)))
        if members := _members(schema):
            found = (each for each in members if each.get("type") != "null" and not place.leads_back(each))
            chosen = next(found, None)
            return None if chosen is None else self._made(chosen, place)
        if schema.get("type") == "array":
            return self._list(schema, place)
        if "properties" in schema:
            return self._object(schema, place)
        return _plain(schema)

    def _list(self, schema: Schema, place: _Place) -> list[Any]:
        if "prefixItems" in schema:
            return [self._made(each, replace(place, field="")) for each in schema["prefixItems"]]
        member = schema.get("items", {})
        if place.leads_back(member):
            return []
        made = self._made(member, replace(place, field=place.field.removesuffix("s")))
        return [made] * max(1, schema.get("minItems", 1))

    def _object(self, schema: Schema, place: _Place) -> dict[str, Any]:
        fields = schema["properties"]
        if not place.is_answer:
            shown = SHOWN.union(schema.get("required", []))
            named = [each for each in fields if each in shown or f"{place.owner}.{each}" in VALUES]
            fields = {each: fields[each] for each in named or list(fields)[:1]}
        return {name: self._made(each, replace(place, field=name)) for name, each in fields.items()}

    def _fits(self, schema: Schema, value: Any) -> bool:
        """Whether a value can be one of a schema: of its type, its list and its pattern."""
        if own := _name(schema):
            return self._fits(self._schemas[own], value)
        if members := _members(schema):
            return any(self._fits(each, value) for each in members)
        if "enum" in schema or "const" in schema:
            return value in schema.get("enum", [schema.get("const")])
        if not _has_type(schema, value):
            return False
        if isinstance(value, dict):
            return set(schema.get("required", [])) <= value.keys()
        if isinstance(value, list):
            return all(self._fits(schema.get("items", {}), each) for each in value)
        return _in_bounds(schema, value)


def _name(schema: Schema) -> str:
    """The schema that this one refers to, or nothing."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _members(schema: Schema) -> Sequence[Schema]:
    """The members of a union."""
    found: Sequence[Schema] = next(
        (schema[each] for each in ("anyOf", "oneOf", "allOf") if each in schema), ()
    )
    return found


def _has_type(schema: Schema, value: Any) -> bool:
    kind = schema.get("type")
    if kind is None:
        return True
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _in_bounds(schema: Schema, value: Any) -> bool:
    if isinstance(value, str):
        own = schema.get("format")
        return (own is None or value == _FORMATS.get(own, value)) and bool(
            re.search(schema.get("pattern", ""), value)
        )
    if isinstance(value, int | float):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _plain(schema: Schema) -> Any:
    """An example of a schema without a name: its own, its first choice, its default, or one by its type."""
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if schema.get("default") is not None:
        return schema["default"]
    kind = schema.get("type", "object")
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), "example")
    made = _BY_TYPE.get(kind, {})
    return min(schema.get("maximum", made), max(schema.get("minimum", made), made)) if made else made


def add_examples(document: dict[str, Any]) -> None:
    """Give each parameter, request and answer of a document its example."""
    examples = Examples(document["components"]["schemas"])
    for operations in document["paths"].values():
        for operation in operations.values():
            _illustrate(examples, operation)


def _illustrate(examples: Examples, operation: dict[str, Any]) -> None:
    for each in operation.get("parameters", []):
        each["example"] = examples.value(each["schema"], operation["operationId"], each["name"])
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        body["example"] = _TEXTS.get(kind) or examples.request(body["schema"])
    answers = [each for status, each in operation["responses"].items() if status < "300"]
    for kind, body in (item for each in answers for item in each.get("content", {}).items()):
        body["example"] = _TEXTS.get(kind) or examples.answer(body.get("schema", {}))
