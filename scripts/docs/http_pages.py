"""The reference of the HTTP API, from its OpenAPI document."""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from scripts.docs.markdown import format_code, format_contents, format_docstring, format_page, format_table

ADDRESS: Final = "http://127.0.0.1:8642"
JSON: Final = "application/json"
SCHEMAS: Final = "schemas.md"
Part = Mapping[str, Any]


def make_http_pages(document: Part) -> dict[str, str]:
    """Return a page for each group of routes, and one for the schemas."""
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(
                _describe_route(method.upper(), path, operation)
            )
    folder = "reference/routes"
    pages = {f"{folder}/{name}.md": format_page(name.title(), *sections) for name, sections in groups.items()}
    schemas = document["components"]["schemas"]
    pages[f"{folder}/{SCHEMAS}"] = format_page(
        "Schemas", *(_describe_schema(name, schemas[name]) for name in sorted(schemas))
    )
    pages[f"{folder}/index.md"] = format_page(
        "Routes",
        "Every route with its parameters, an example of a request, and one of its answer."
        " [The server](../http.md) has what they share. They can be tried at `/docs`.",
        format_contents([*groups, "schemas"]),
    )
    return pages


def _describe_route(method: str, path: str, operation: Part) -> str:
    parameters = operation.get("parameters", [])
    rows = (
        (
            f"`{parameter['name']}`",
            parameter["in"],
            _name_type(parameter["schema"]),
            format_docstring(parameter.get("description")),
        )
        for parameter in parameters
    )
    bodies = operation.get("requestBody", {}).get("content", {})
    parts = [
        f"## {method} {path}",
        format_docstring(operation.get("description")),
        f"Operation: `{operation['operationId']}`",
        format_table(("parameter", "in", "type", "meaning"), rows),
        *(f"Body (`{kind}`): {_name_type(body['schema'])}" for kind, body in bodies.items()),
        format_code("sh", _format_call(method, path, parameters, bodies)),
        *_describe_answers(operation["responses"]),
    ]
    return "\n\n".join(filter(None, parts))


def _format_call(method: str, path: str, parameters: list[Part], bodies: Part) -> str:
    """Return the request of the example, with curl."""
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(str(parameter["example"]), safe=""))
    query = "&".join(
        f"{parameter['name']}={quote(str(parameter['example']))}"
        for parameter in parameters
        if parameter["in"] == "query" and parameter.get("required")
    )
    words = ["curl", "-H", '"Authorization: Bearer $KEY"']
    words += [] if method in {"GET", "POST"} and (method == "GET" or bodies) else ["-X", method]
    words.append(shlex.quote(f"{ADDRESS}{path}{'?' + query if query else ''}"))
    if JSON in bodies:
        if method != "POST":
            words = [word for word in words if word not in {"-X", method}] + ["-X", method]
        request_body = json.dumps(bodies[JSON]["example"], indent=2)
        words += ["-H", '"Content-Type: application/json"', "-d", shlex.quote(request_body)]
    elif bodies:
        fields = next(iter(bodies.values()))["example"]
        words += [f"-F {name}=@{file}" for name, files in fields.items() for file in _list_files(files)]
    return " ".join(words)


def _list_files(files: Any) -> list[str]:
    return [str(file) for file in files] if isinstance(files, list) else [str(files)]


def _describe_answers(responses: Part) -> Iterator[str]:
    for status, answer in responses.items():
        if status >= "300":
            continue
        content = answer.get("content", {})
        if not content:
            yield f"Answer: {status}, without a body."
        for kind, body in content.items():
            yield f"Answer {status} (`{kind}`): {_name_type(body.get('schema', {}))}"
            if kind == JSON:
                yield format_code("json", _truncate_example(body["example"]))
            else:
                yield format_code("text", str(body["example"]))


def _truncate_example(example: Any) -> str:
    """Return at most forty lines of an example."""
    lines = json.dumps(example, indent=2, ensure_ascii=False).splitlines()
    return "\n".join(lines if len(lines) <= 40 else [*lines[:39], "…"])


def _describe_schema(name: str, schema: Part) -> str:
    required_fields = schema.get("required", [])
    rows = (
        (
            f"`{field}`",
            "yes" if field in required_fields else "",
            _name_type(property_schema, ""),
            format_docstring(property_schema.get("description")),
        )
        for field, property_schema in schema.get("properties", {}).items()
    )
    parts = (
        f"## {name}",
        format_docstring(schema.get("description")),
        format_table(("field", "required", "type", "meaning"), rows),
    )
    return "\n\n".join(filter(None, parts))


def _name_type(schema: Part, page_of_schemas: str = SCHEMAS) -> str:
    """Return the type of a schema in a word; a named schema is linked."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}]({page_of_schemas}#{name.lower()})"
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(_name_type(member, page_of_schemas) for member in schema[union]))
    if schema.get("type") == "array":
        return f"list of {_name_type(schema.get('items', {}), page_of_schemas)}"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{constant}`" for constant in schema.get("enum", [schema.get("const")]))
    return str(schema.get("type", "any"))
