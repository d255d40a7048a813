"""An example of each request and answer of the OpenAPI document, made from its schemas.

A schema has the example that its annotation declares; one without is made from its type. A request has the
fields that are required or have an example. So a new route has examples at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.model.parameters import EXAMPLE_TIME

Schema = Mapping[str, Any]
LINES: Final = "application/x-ndjson"
_TEXTS: Final = {
    LINES: '{"text": "Prefers short answers.", "kind": "note"}\n',
    "text/event-stream": 'id: 1\nevent: text\ndata: {"text": "Every night"}\n\n',
    "application/graphml+xml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph/></graphml>',
    "image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "text/plain; version=0.0.4; charset=utf-8": "conspectus_ready 1.0\n",
}
"""Examples of requests and answers that are not JSON, by media type."""
_BY_TYPE: Final[Mapping[str, Any]] = {"integer": 1, "number": 0.5, "boolean": False, "null": None}
_FORMATS: Final = {"date-time": EXAMPLE_TIME, "binary": "backup.md"}


@dataclass(frozen=True, slots=True)
class _Context:
    """Whether an answer is shown, and the schemas around the one that an example is made for."""

    is_answer: bool
    ancestors: tuple[str, ...] = ()

    def leads_back(self, schema: Schema) -> bool:
        """Return whether a schema is one of those around it."""
        return _name(schema) in self.ancestors


class Examples:
    """Examples for the schemas of a document."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def request(self, schema: Schema) -> Any:
        """Return a request or a parameter: what is required, and what has an example."""
        return self._example(schema, _Context(is_answer=False))

    def answer(self, schema: Schema) -> Any:
        """Return an answer, with all of its fields."""
        return self._example(schema, _Context(is_answer=True))

    def _example(self, schema: Schema, context: _Context) -> Any:
        if "examples" in schema:
            return schema["examples"][0]
        if name := _name(schema):
            return self._example(self._schemas[name], replace(context, ancestors=(*context.ancestors, name)))
        if members := _members(schema):
            return self._choose_member(members, context)
        if schema.get("type") == "array":
            return self._list(schema, context)
        if "properties" in schema:
            return self._object(schema, context)
        return _plain(schema)

    def _choose_member(self, members: Sequence[Schema], context: _Context) -> Any:
        """Return an example of the first usable member; an answer has null where that is allowed."""
        if context.is_answer and {"type": "null"} in members:
            return None
        for member in members:
            if member.get("type") != "null" and not context.leads_back(member):
                return self._example(member, context)
        return None

    def _list(self, schema: Schema, context: _Context) -> list[Any]:
        if "prefixItems" in schema:
            return [self._example(item, context) for item in schema["prefixItems"]]
        member, min_items = schema.get("items", {}), schema.get("minItems", 0)
        if context.leads_back(member) or (context.is_answer and min_items == 0 and _is_open_text(member)):
            return []
        return [self._example(member, context)] * max(1, min_items)

    def _object(self, schema: Schema, context: _Context) -> dict[str, Any]:
        fields = schema["properties"]
        if not context.is_answer:
            required = schema.get("required", [])
            named = {name: field for name, field in fields.items() if name in required or "examples" in field}
            fields = named or dict(list(fields.items())[:1])
        return {name: self._example(field, context) for name, field in fields.items()}


def _name(schema: Schema) -> str:
    """Return the name of the schema that this one refers to, or an empty text."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _members(schema: Schema) -> Sequence[Schema]:
    """Return the members of a union."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            members: Sequence[Schema] = schema[keyword]
            return members
    return ()


def _is_open_text(schema: Schema) -> bool:
    """Return whether a schema is of any text, without an example."""
    return schema.get("type") == "string" and not {"examples", "enum", "const", "format"} & schema.keys()


def _plain(schema: Schema) -> Any:
    """Return an example of a schema without a name: its first choice, its default, or one by its type."""
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if schema.get("default") is not None:
        return schema["default"]
    kind = schema.get("type", "object")
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), "example")
    example = _BY_TYPE.get(kind, {})
    if not example:
        return example
    return min(schema.get("maximum", example), max(schema.get("minimum", example), example))


def add_examples(document: dict[str, Any]) -> None:
    """Give each parameter, request and answer of a document its example."""
    examples = Examples(document["components"]["schemas"])
    for operations in document["paths"].values():
        for operation in operations.values():
            _illustrate(examples, operation)


def _illustrate(examples: Examples, operation: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", []):
        parameter["example"] = examples.request(parameter["schema"])
    for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
        body["example"] = _TEXTS.get(media_type) or examples.request(body["schema"])
    for status, answer in operation["responses"].items():
        if status < "300":
            for media_type, body in answer.get("content", {}).items():
                body["example"] = _TEXTS.get(media_type) or examples.answer(body.get("schema", {}))
