"""What the OpenAPI document promises, tried on every route."""

from collections.abc import Iterator, Mapping
from typing import Any

from httpx import AsyncClient

from conspectus.web.logs import API
from tests.web.conftest import Site

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NUMBERS = {"integer", "number"}
Document = Mapping[str, Any]


def resolve_schema(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return schemas[name] if name else schema


def wrong_bodies(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 4
) -> Iterator[tuple[str, Any]]:
    """For every number in a body, its place and a body with a truth value in that place."""
    schema_here = resolve_schema(schema, schemas)
    options = [option for option in schema_here.get("anyOf", [schema_here]) if option.get("type") != "null"]
    if len(options) == 1 and options[0].get("type") in NUMBERS:
        yield "", True
    if depth == 0 or len(options) != 1:
        return
    inner = resolve_schema(options[0], schemas)
    for name, member in inner.get("properties", {}).items():
        for path, value in wrong_bodies(member, schemas, depth - 1):
            yield f"{name}.{path}".rstrip("."), {name: value}
    if "items" in inner:
        for path, value in wrong_bodies(inner["items"], schemas, depth - 1):
            yield f"0.{path}".rstrip("."), [value]


def walk_operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path.replace("{", "").replace("}", ""), operation


async def request_with_body(client: AsyncClient, method: str, path: str, body: Any) -> Mapping[str, Any]:
    answer = await client.request(method, path.removeprefix(API), json=body)
    assert answer.status_code in {400, 422}, (method, path, body, answer.text)
    document: Mapping[str, Any] = answer.json()
    return document


async def test_a_truth_value_is_never_a_number(api: AsyncClient, openapi: Document) -> None:
    added = await api.post(
        "/streams/stream/captions", json={"captions": [{"text": "x", "start": 0, "end": 1}]}
    )
    assert added.is_success, added.text
    schemas, seen = openapi["components"]["schemas"], 0
    for method, path, operation in walk_operations(openapi):
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        for position, body in wrong_bodies(schema, schemas):
            answer = await request_with_body(api, method, path, body)
            named = [error["field"] for error in answer.get("errors", [])] or [answer["error"]["param"]]
            assert position in named or len(named) == 1, (method, path, position, answer)
            seen += 1
    assert seen > 100


async def test_allow_names_every_method_of_a_path_with_and_without_a_write_key(
    api: AsyncClient, openapi: Document
) -> None:
    created = await api.post("/collections", json={"name": "a"}, headers={"Idempotency-Key": "used"})
    assert created.is_success
    by_path: dict[str, set[str]] = {}
    for method, path, _ in walk_operations(openapi):
        by_path.setdefault(path, set()).add(method)
    wrong = [
        (path, method)
        for path, allowed_methods in by_path.items()
        for method in METHODS
        if method not in allowed_methods
    ]
    refused = 0
    for path, method in wrong:
        base = "" if path.startswith(API) else "http://localhost"
        for headers in ({}, {"Idempotency-Key": "used"}):
            answer = await api.request(method, base + path.removeprefix(API), headers=headers)
            allowed = set(answer.headers.get("allow", "").split(", "))
            if answer.status_code == 405:
                refused += 1
                assert by_path[path] <= allowed and method not in allowed, (path, method, allowed)
    assert refused > 200


async def test_requests_of_models_are_logged_by_their_route(site: Site, api: AsyncClient) -> None:
    await api.post("http://localhost/mcp", json={})
    await api.get("http://localhost/mcp")
    assert [line["route"] for line in site.requests] == ["/mcp", "/mcp"]


def test_generators_of_clients_can_name_each_schema(openapi: Document) -> None:
    schemas = openapi["components"]["schemas"]
    titles = [schema["title"] for schema in schemas.values() if "title" in schema]
    assert sorted(titles) == sorted(set(titles))
