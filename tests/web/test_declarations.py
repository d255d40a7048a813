"""The document of the API has the help, the bounds and the example that annotations declare."""

from collections.abc import Iterator
from typing import Any

from conspectus.model.annotations import NO_EXAMPLE, Declaration
from conspectus.model.filter import Filter
from conspectus.operations import OPERATIONS, Operation, Parameter

Schema = dict[str, Any]
NUMBERS = {"integer", "number"}
SIZES = {"maxLength": "minLength", "maxItems": "minItems", "maxProperties": "minProperties"}


def members(operation: Operation, document: Schema) -> dict[str, Schema]:
    """The schemas of an operation's parameters in the document, by name, with their descriptions."""
    route = document["paths"][f"/api/v1{operation.path}"][operation.verb.lower()]
    schemas = {each["name"]: {**each["schema"], **each} for each in route.get("parameters", [])}
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return schemas | document["components"]["schemas"].get(name, {}).get("properties", {})


def declared(document: Schema) -> Iterator[tuple[str, Parameter, Schema]]:
    """Each parameter of each operation with its schema."""
    for operation in OPERATIONS.values():
        schemas = members(operation, document)
        for leaf in (leaf for parameter in operation.parameters for leaf in parameter.leaves):
            if leaf.location != "header":
                yield f"{operation.name}.{leaf.name}", leaf, schemas[leaf.name]


def options(schema: Schema) -> list[Schema]:
    return [schema, *schema.get("anyOf", [])]


def bounds(schema: Schema) -> tuple[Any, Any]:
    """The lowest and the highest number of a schema."""
    number = next((each for each in options(schema) if each.get("type") in NUMBERS), {})
    return number.get("minimum", number.get("exclusiveMinimum")), number.get("maximum")


def lengths(schema: Schema) -> tuple[int, int | None]:
    """The shortest and the longest text, list or object of a schema."""
    sized = (each for each in options(schema) if SIZES.keys() & each.keys())
    found = next(sized, {})
    longest, shortest = next(((name, other) for name, other in SIZES.items() if name in found), ("", ""))
    return found.get(shortest, 0), found.get(longest)


def shown_range(declaration: Declaration) -> tuple[Any, Any]:
    assert declaration.range is not None
    highest = None if declaration.range.setting else declaration.range.highest
    return declaration.range.lowest, highest


def test_the_help_is_that_of_the_annotation(openapi: Schema) -> None:
    found = [
        (name, leaf.declaration.help, schema.get("description"))
        for name, leaf, schema in declared(openapi)
        if not (leaf.hint == Filter and leaf.location == "query")
    ]
    assert len(found) > 400
    assert [name for name, help, shown in found if help != shown] == []


def test_the_range_of_a_number_is_that_of_the_annotation(openapi: Schema) -> None:
    found = [(name, leaf, schema) for name, leaf, schema in declared(openapi) if leaf.declaration.range]
    assert len(found) > 100
    wrong = [name for name, leaf, schema in found if bounds(schema) != shown_range(leaf.declaration)]
    assert wrong == []


def test_the_length_of_a_text_or_list_is_that_of_the_annotation(openapi: Schema) -> None:
    found = [
        (name, leaf.declaration.length, lengths(schema))
        for name, leaf, schema in declared(openapi)
        if leaf.declaration.length is not None
    ]
    assert len(found) > 200
    assert [name for name, own, shown in found if (own.shortest, own.longest) != shown] == []


def test_the_example_of_a_parameter_is_that_of_the_annotation(openapi: Schema) -> None:
    found = [
        (name, leaf.declaration.example, schema["example"])
        for name, leaf, schema in declared(openapi)
        if leaf.declaration.example is not NO_EXAMPLE and "example" in schema
    ]
    assert len(found) > 100
    assert [name for name, own, shown in found if own != shown] == []
