"""The page of the server at `/`, and the manual of its API at `/docs`, which loads nothing."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from conspectus.mcp.tool import PATH as MODELS
from conspectus.web.logs import API

router = APIRouter(include_in_schema=False)
Operation = Mapping[str, Any]


@router.get("/")
async def index(request: Request) -> dict[str, str]:
    """A description of this server, with links."""
    return {
        "name": request.app.title,
        "version": request.app.version,
        "api": API,
        "docs": "/docs",
        "openapi": "/openapi.json",
        "mcp": MODELS,
        "health": "/health/ready",
    }


@router.get("/docs", response_class=HTMLResponse)
async def manual(request: Request) -> str:
    """Every operation with its parameters and bodies, by group."""
    return "".join(_page(request.app.openapi()))


def _page(document: Mapping[str, Any]) -> Iterator[str]:
    about = document["info"]
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(about["title"])}</title>'
    yield f"<h1>{escape(about['title'])} {escape(about['version'])}</h1><p>{escape(about['description'])}</p>"
    yield "<p>Send an API key as <code>Authorization: Bearer csp_...</code>. "
    yield 'The <a href="/openapi.json">OpenAPI document</a> has the same for programs.</p>'
    groups: dict[str, list[tuple[str, str, Operation]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    for name, found in groups.items():
        yield f"<h2>{escape(name)}</h2>"
        for method, path, operation in found:
            yield from _operation(f"{method.upper()} {path}", operation)
    yield "<h2>Schemas</h2>"
    for name, schema in document["components"]["schemas"].items():
        yield f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        yield f"<p>{escape(schema.get('description', ''))}</p>{_rows(_fields(schema))}</details>"
    yield "</html>"


def _operation(name: str, operation: Operation) -> Iterator[str]:
    about = escape(operation.get("description", ""))
    yield f"<details><summary><code>{escape(name)}</code> {about}</summary>"
    parameters = operation.get("parameters", [])
    rows = [
        (each["name"], each["in"], _type(each["schema"]), each.get("description", "")) for each in parameters
    ]
    yield _rows(rows)
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body <code>{escape(kind)}</code>: {_type(body.get('schema', {}))}</p>"
    for status, answer in operation["responses"].items():
        schemas = [_type(each.get("schema", {})) for each in answer.get("content", {}).values()]
        yield f"<p>{escape(status)} {escape(answer.get('description', ''))} {' '.join(schemas)}</p>"
    yield "</details>"


def _fields(schema: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    needed = schema.get("required", [])
    return [
        (name, "required" if name in needed else "", _type(each), each.get("description", ""))
        for name, each in schema.get("properties", {}).items()
    ]


def _rows(rows: list[tuple[str, str, str, str]]) -> str:
    """A table of names, kinds, types (which are HTML) and descriptions."""
    made = (
        f"<tr><td><code>{escape(name)}</code><td>{escape(kind)}<td>{type_}<td>{escape(about)}"
        for name, kind, type_, about in rows
    )
    return f"<table>{''.join(made)}</table>" if rows else ""


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a word, as HTML; one with a name is linked."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[union])))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema or "const" in schema:
        return escape(" or ".join(map(str, schema.get("enum", [schema.get("const")]))))
    return escape(str(schema.get("type", "any")))
