"""Each request and answer of the OpenAPI document has an example, which its own schema allows."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from conspectus.web.examples import Examples

Place = tuple[str, Any, dict[str, Any]]


def walk_examples(document: dict[str, Any]) -> Iterator[Place]:
    """Where an example belongs, with its schema and what holds it."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for part, schema, holder in walk_operation_examples(operation):
                yield f"{method.upper()} {path} {part}", schema, holder


def walk_operation_examples(operation: dict[str, Any]) -> Iterator[Place]:
    """The same for one operation."""
    for parameter in operation.get("parameters", []):
        yield parameter["name"], parameter["schema"], parameter
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        yield kind, body["schema"], body
    for status, answer in operation["responses"].items():
        for kind, body in answer.get("content", {}).items() if status < "300" else ():
            yield f"{status} {kind}", body.get("schema", {}), body


def of_lines(name: str) -> bool:
    """Whether what an example shows is no JSON: its schema is about a line or an event of it."""
    return name.endswith(("x-ndjson", "event-stream"))


async def test_each_parameter_request_and_answer_has_a_valid_example(openapi: dict[str, Any]) -> None:
    examples = list(walk_examples(openapi))
    assert len(examples) > 400
    assert [name for name, _, holder in examples if "example" not in holder] == []
    for name, schema, holder in examples:
        if not of_lines(name):
            full_schema = {**schema, "components": openapi["components"]}
            errors = list(jsonschema_rs.validator_for(full_schema).iter_errors(holder["example"]))
            assert (name, [error.message for error in errors]) == (name, [])


SCHEMAS: dict[str, Any] = {
    "Tree": {
        "type": "object",
        "required": ["name", "below"],
        "properties": {
            "name": {"type": "string", "examples": ["notes"]},
            "parent": {"anyOf": [{"$ref": "#/components/schemas/Tree"}, {"type": "null"}]},
            "below": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
            "limit": {"type": "integer", "maximum": 5, "examples": [3]},
            "offset": {"type": "integer", "maximum": 5},
            "notices": {"type": "array", "items": {"type": "string"}},
        },
    }
}
REFERENCE = {"$ref": "#/components/schemas/Tree"}


def test_an_answer_has_all_fields() -> None:
    expected: dict[str, Any] = {
        "name": "notes",
        "parent": None,
        "below": [],
        "limit": 3,
        "offset": 1,
        "notices": [],
    }
    assert Examples(SCHEMAS).answer(REFERENCE) == expected


def test_a_request_has_what_is_required_or_has_an_example() -> None:
    assert Examples(SCHEMAS).request(REFERENCE) == {"name": "notes", "below": [], "limit": 3}


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "string", "format": "date-time"}, "2026-03-02T08:00:00Z"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]}, [1, False]),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"type": "number", "maximum": 0.25}, 0.25),
        ({"type": "integer", "default": 7}, 7),
        ({"type": "object"}, {}),
        ({}, {}),
    ],
)
def test_what_has_no_example_is_made_from_its_type(schema: dict[str, Any], example: object) -> None:
    assert Examples({}).answer(schema) == example
