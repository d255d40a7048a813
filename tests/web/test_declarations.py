"""The document of the API has the help, the bounds and the example that annotations declare."""

from collections.abc import Iterator
from typing import Any

from conspectus.model.annotations import NO_EXAMPLE, Declaration
from conspectus.model.filter import Filter
from conspectus.operations.operation import Operation, Parameter
from conspectus.operations.table import OPERATIONS

Schema = dict[str, Any]
NUMBERS = {"integer", "number"}
SIZES = {"maxLength": "minLength", "maxItems": "minItems", "maxProperties": "minProperties"}


def schemas_by_name(operation: Operation, document: Schema) -> dict[str, Schema]:
    """The schemas of an operation's parameters in the document, by name, with their descriptions."""
    route = document["paths"][f"/api/v1{operation.path}"][operation.verb.lower()]
    schemas = {
        parameter["name"]: {**parameter["schema"], **parameter} for parameter in route.get("parameters", [])
    }
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return schemas | document["components"]["schemas"].get(name, {}).get("properties", {})


def walk_declared(document: Schema) -> Iterator[tuple[str, Parameter, Schema]]:
    """Each parameter of each operation with its schema."""
    for operation in OPERATIONS.values():
        schemas = schemas_by_name(operation, document)
        for leaf in (leaf for parameter in operation.parameters for leaf in parameter.leaves):
            if leaf.location != "header":
                yield f"{operation.name}.{leaf.name}", leaf, schemas[leaf.name]


def options_of(schema: Schema) -> list[Schema]:
    return [schema, *schema.get("anyOf", [])]


def bounds_of(schema: Schema) -> tuple[Any, Any]:
    """The lowest and the highest number of a schema."""
    number = next((option for option in options_of(schema) if option.get("type") in NUMBERS), {})
    return number.get("minimum", number.get("exclusiveMinimum")), number.get("maximum")


def lengths_of(schema: Schema) -> tuple[int, int | None]:
    """The shortest and the longest text, list or object of a schema."""
    sized = (option for option in options_of(schema) if SIZES.keys() & option.keys())
    option = next(sized, {})
    longest, shortest = next(((name, other) for name, other in SIZES.items() if name in option), ("", ""))
    return option.get(shortest, 0), option.get(longest)


def range_of(declaration: Declaration) -> tuple[Any, Any]:
    assert declaration.range is not None
    highest = None if declaration.range.setting else declaration.range.highest
    return declaration.range.lowest, highest


def test_the_help_is_that_of_the_annotation(openapi: Schema) -> None:
    helps = [
        (name, leaf.declaration.help, schema.get("description"))
        for name, leaf, schema in walk_declared(openapi)
        if not (leaf.hint == Filter and leaf.location == "query")
    ]
    assert len(helps) > 400
    assert [name for name, help, description in helps if help != description] == []


def test_the_range_of_a_number_is_that_of_the_annotation(openapi: Schema) -> None:
    ranges = [(name, leaf, schema) for name, leaf, schema in walk_declared(openapi) if leaf.declaration.range]
    assert len(ranges) > 100
    wrong = [name for name, leaf, schema in ranges if bounds_of(schema) != range_of(leaf.declaration)]
    assert wrong == []


def test_the_length_of_a_text_or_list_is_that_of_the_annotation(openapi: Schema) -> None:
    lengths = [
        (name, leaf.declaration.length, lengths_of(schema))
        for name, leaf, schema in walk_declared(openapi)
        if leaf.declaration.length is not None
    ]
    assert len(lengths) > 200
    assert [
        name
        for name, declared_length, schema_length in lengths
        if (declared_length.shortest, declared_length.longest) != schema_length
    ] == []


def test_the_example_of_a_parameter_is_that_of_the_annotation(openapi: Schema) -> None:
    examples = [
        (name, leaf.declaration.example, schema["example"])
        for name, leaf, schema in walk_declared(openapi)
        if leaf.declaration.example is not NO_EXAMPLE and "example" in schema
    ]
    assert len(examples) > 100
    assert [
        name for name, declared_example, schema_example in examples if declared_example != schema_example
    ] == []
