"""An example of each request and answer of the OpenAPI document, made from its schemas.

A value is looked up by the name of its field, in `VALUES`; what has none there has an example or a default in
the schema, or is made from its type. So a new route has examples at once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

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
VALUES: Final[Mapping[str, Any]] = {
    "Idempotency-Key": "import-2026-03-02",
    "Last-Event-ID": "12",
    "actor": "ann",
    "after": "bmV4dA",
    "agent": "assistant",
    "alert": "0195f3a1c2d47e80b6a4c1d2e3f40a1e",
    "aliases": ["the backup"],
    "alpha": 0.5,
    "arguments": {},
    "at": NOW,
    "attachment": "login.log",
    "attachment_id": "login.log",
    "author": "ann",
    "by": "ann",
    "channel": "operations",
    "chunk": 0,
    "closed": [],
    "closed_by": None,
    "closes": [],
    "code": None,
    "collection": "notes",
    "collection_name": "notes",
    "connector": "git",
    "content": _QUERY,
    "content_hash": "9b74c9897bac770ffc029102a200c5de",
    "conversation": "support-17",
    "cursor": "4f1c0de",
    "description": "How we run our servers.",
    "detail": "collection 'notes' not found",
    "document": DOCUMENT,
    "embedder": "minilm",
    "end": 35,
    "end_text": "00:12:38",
    "entity": "backup",
    "entities": ["backup"],
    "error": None,
    "evidence": DOCUMENT,
    "failure": None,
    "failures": [],
    "file": "export.zip",
    "files": ["backup.md"],
    "filter": {"field": "kind", "eq": "page"},
    "fingerprint": "5d41402abc4b2a76",
    "first_text": "00:00:00",
    "format": "text",
    "from": NOW,
    "graph": "default",
    "group": "operators",
    "heading": "Backups",
    "headings": ["Backups"],
    "id": DOCUMENT,
    "ids": [DOCUMENT],
    "if-match": '"5d41402abc4b2a76"',
    "if-none-match": '"5d41402abc4b2a76"',
    "if_match": "5d41402abc4b2a76",
    "instructions": "Name the decisions.",
    "into": "backup",
    "job": "0195f3a1c2d47e80b6a4c1d2e3f40b0b",
    "key": "backup.md",
    "known_until": None,
    "label": "laptop",
    "language": "english",
    "last_text": "01:02:03",
    "limit": 10,
    "lines": ['{"text": "Prefers short answers.", "kind": "note"}'],
    "location": "p. 3",
    "max_tokens": 1000,
    "memory": "0195f3a1c2d47e80b6a4c1d2e3f40c0c",
    "message": _QUERY,
    "metadata": {"lang": "en"},
    "method": "GET",
    "mode": "extractive",
    "model": "gpt-5-mini",
    "name": "notes",
    "next": None,
    "node": "backup",
    "nodes": ["backups"],
    "notice": None,
    "notices": [],
    "object": "02:00",
    "options": {"url": "https://git.example.org/handbook.git"},
    "owned_by": "conspectus",
    "owner": "ann",
    "page": 3,
    "param": "messages",
    "path": "/data/store",
    "predicate": "runs at",
    "prefix": "back",
    "profile": "default",
    "q": "login issues",
    "query": _QUERY,
    "question": _QUERY,
    "reason": "Both mean the nightly backup.",
    "reference": "[auth-1]",
    "revoked": None,
    "role": "user",
    "root": DOCUMENT,
    "schema": {"type": "object", "properties": {"decisions": {"type": "array"}}},
    "score": 0.82,
    "secret": "csp_...",
    "similarity": 0.71,
    "snippet": _TEXT,
    "source": "handbook",
    "source_name": "handbook",
    "speaker": "ann",
    "start": 0,
    "start_text": "00:12:30",
    "start_time": NOW,
    "stop": "END",
    "store_in": "support-17",
    "stream": "camera-1",
    "subject": "backup",
    "superseded": None,
    "system": "Answer from the context.",
    "tag": "security",
    "tags": ["security"],
    "target": "database",
    "task": "auth-1",
    "task_id": "auth-1",
    "temperature": 0.2,
    "text": _TEXT,
    "texts": {DOCUMENT: _TEXT},
    "thread": DOCUMENT,
    "time_zone": "Europe/Berlin",
    "title": "Backups",
    "tokenizer": "o200k_base",
    "tokens": 42,
    "tool_call_id": "call_1",
    "transfer_to": "ben",
    "type": "depends on",
    "uri": "https://www.wikidata.org/entity/Q194274",
    "url": "https://example.org/handbook/backup",
    "user": "ann",
    "user_id": "ann",
    "valid_until": None,
    "vector": [0.12, -0.48, 0.31],
    "version": "0.1.0",
    "viewed_as": "ben",
    "wait": True,
    "webhook": "https://example.org/hooks/alerts",
    "AddCaptionsBody.captions": [{"text": "A train arrives.", "start": "00:12:30", "end": "00:12:38"}],
    "AddEdgesBody.edges": [{"source": "backup", "target": "database", "type": "depends on"}],
    "AddEventsBody.events": [{"type": "arrival", "start": "00:12:30", "description": "A train arrives."}],
    "AddMemoriesBody.memories": [{"text": "Prefers short answers.", "kind": "note"}],
    "AddMessagesBody.messages": [{"text": _QUERY, "author": "ann", "key": "17"}],
    "AddNodesBody.nodes": [{"id": "backup", "type": "process", "name": "Nightly backup"}],
    "ChatMessageBody.content": _QUERY,
    "ChatMessageBody.role": "user",
    "CreateGroupBody.name": "operators",
    "CreateUserBody.name": "ann",
    "DeleteEdgesBody.edges": ["0195f3a1c2d47e80b6a4c1d2e3f40e0e"],
    "DocumentsBody.documents": [{"title": "Backups", "text": _TEXT, "key": "backup.md"}],
    "EmbeddingsBody.input": _TEXT,
    "EmbeddingsBody.model": "minilm",
    "Grant.source": None,
    "IdentifiedTaskBody.id": "auth-1",
    "IdentifiedTaskBody.title": "Fix login",
    "LinkEntitiesBody.text": "The nightly backup failed.",
    "Message.role": "system",
    "NewMemory.text": "Prefers short answers.",
    "ScopeBody.user": "ann",
    "SetRetentionBody.days": 30,
    "SetUserDisabledBody.disabled": True,
    "SourceBody.name": "handbook",
    "StoredTask.description": "Users are logged out after a minute.",
    "StoredTask.id": "auth-1",
    "StoredTask.title": "Fix login",
    "StoredAttachment.id": "login.log",
    "StoredAttachment.title": "Log",
    "TaskBody.description": "Users are logged out after a minute.",
    "TaskBody.title": "Fix login",
    "TaskChange.status": "completed",
    "UpdateCollectionBody.name": "handbook",
    "UpdateCollectionBody.description": "How we run our servers.",
    "UpdateMemoryBody.text": "Prefers short answers with sources.",
    "UpdateSourceBody.name": "runbooks",
    "User.name": "ann",
    "Person.name": "ann",
    "Group.name": "operators",
    "Source.name": "handbook",
    "Source.id": _SOURCE,
    "Stream.name": "camera-1",
    "Node.name": "Nightly backup",
    "Node.id": "backup",
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
    "CheckReport.clean": True,
    "CheckReport.index": {"notes": []},
    "CheckReport.records": [],
    "Connection.name": "wiki",
    "CountDocumentsBody.filter": {"field": "kind", "eq": "page"},
    "CreateConnectionBody.name": "wiki",
    "CreateConnectionBody.options": {"url": "https://git.example.org/handbook.git"},
    "CreateKeyBody.label": "laptop",
    "CreateKeyBody.user": "ann",
    "CountMemoriesBody.user": "ann",
    "DeleteDocumentsBody.filter": {"field": "kind", "eq": "page"},
    "DocumentReader.name": "ann",
    "Edge.graph": _GRAPH,
    "Edge.source": "backup",
    "EmbeddingRequest.model": "minilm",
    "EmbeddingSpace.dimensions": 384,
    "EmbeddingSpace.model": "minilm",
    "EmbeddingSpace.version": "1",
    "EntityCount.key": "backup",
    "EntityCount.name": "Backup",
    "EntityCount.type": "process",
    "EventSpan.descriptions": ["A train arrives."],
    "EventSpan.end": 758.0,
    "EventSpan.start": 750.0,
    "EventSpan.type": "arrival",
    "ExtractEntitiesBody.text": "The nightly backup failed.",
    "GetOrCreateGraphBody.name": "default",
    "GraphSummary.relations": {"depends on": 1},
    "GraphSummary.source": _GRAPH,
    "GraphSummary.types": {"process": 1},
    "IngestReport.states": {"succeeded": 12, "failed": 1},
    "Job.state": "running",
    "Job.result": None,
    "Job.finished": None,
    "Mention.key": "backup",
    "Mention.text": "nightly backup",
    "Mention.start": 4,
    "Mention.end": 18,
    "Mention.type": "process",
    "Moment.stream": _STREAM,
    "Node.graph": _GRAPH,
    "Node.properties": {},
    "Node.type": "process",
    "NodeEvent.after": ["backup"],
    "NodeEvent.before": ["backup", "backups"],
    "PutStreamBody.name": "camera-1",
    "RequestTotals.model": "minilm",
    "RevokeGrantAnswer.revoked": True,
    "SessionBody.key": "csp_...",
    "Stream.source": _STREAM,
    "StreamWindow.streams": [_STREAM],
    "Principal-Input.name": "ann",
    "Principal-Output.name": "ann",
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
            named = [each for each in fields if self._is_shown(schema, place.owner, each)]
            fields = {each: fields[each] for each in named or list(fields)[:1]}
        return {name: self._made(each, replace(place, field=name)) for name, each in fields.items()}

    def _is_shown(self, schema: Schema, owner: str, name: str) -> bool:
        return name in schema.get("required", []) or name in SHOWN or f"{owner}.{name}" in VALUES

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
