"""The OpenAPI document: what every route may answer besides what it promises."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from conspectus.web.bodies import BodyRoute
from conspectus.web.idempotency import changes_something
from conspectus.web.logs import API
from conspectus.web.problem_details import MEDIA_TYPE

PROBLEM = "Problem"
EVERYWHERE = (401, 403, 404, 408, 409, 413, 422, 429, 431, 500, 502, 503, 504)
Responses = dict[int | str, dict[str, Any]]


class ProblemDocument(BaseModel):
    """A problem as RFC 9457 has it, with a stable code and facts that depend on the code."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(ge=400, le=599, examples=[404])
    detail: str = Field(examples=["no collection 'wiki'"])
    code: str = Field(examples=["not_found"])


def problems(*statuses: int) -> Responses:
    """The problems that a route may answer with, those that every route may among them."""
    schema = {"$ref": f"#/components/schemas/{PROBLEM}"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*EVERYWHERE, *statuses})
    }


def with_tag(*statuses: int) -> Responses:
    """The same for a route that answers with an ETag, or that the client has it already."""
    tag = {"ETag": {"description": "The tag of this representation.", "schema": {"type": "string"}}}
    unchanged = {"description": HTTPStatus(304).phrase, "headers": tag}
    return {200: {"headers": tag}, 304: unchanged, **problems(*statuses)}


def accepted(*statuses: int) -> Responses:
    """The same for a route that has its work done by a job."""
    place = {"description": "Where the job can be watched.", "schema": {"type": "string"}}
    return {202: {"headers": {"Location": place}}, **problems(*statuses)}


class Section(APIRouter):
    """Routes below `API` that are documented under one heading.

    They are whole as they are, so that an application takes them over instead of making each anew.
    """

    def __init__(self, heading: str, *, prefix: str = "", **options: Any) -> None:
        options = {"route_class": BodyRoute, "generate_unique_id_function": operation, **options}
        super().__init__(prefix=API + prefix, tags=[heading], **options)


def operation(route: APIRoute) -> str:
    """What a route is called in the document."""
    return route.name


class Application(FastAPI):
    """A FastAPI application whose document names the problem schema, the key, and the write key."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            made = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes,
                tags=self.openapi_tags,
            )  # fmt: skip
            parts = made.setdefault("components", {})
            schemas = parts.setdefault("schemas", {})
            schemas[PROBLEM] = ProblemDocument.model_json_schema()
            parts["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer", "bearerFormat": "csp_..."}
            }
            made["security"] = [{"key": []}]
            _name_write_keys(made["paths"])
            self.openapi_schema = _with_whole_numbers(made)
        return self.openapi_schema


def _name_write_keys(paths: Mapping[str, Mapping[str, Any]]) -> None:
    header = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "A write that is sent again with the same key is done once.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    }
    writes: Sequence[str] = ("post", "put", "patch", "delete")
    for path, operations in paths.items():
        for method in writes:
            if method in operations and changes_something({"method": method.upper(), "path": path}):
                operations[method].setdefault("parameters", []).append(header)


def _with_whole_numbers(part: Any) -> Any:
    """The document with exact bounds: the framework makes floats of them, which rounds 64-bit integers."""
    match part:
        case dict():
            return {name: _with_whole_numbers(each) for name, each in part.items()}
        case list():
            return [_with_whole_numbers(each) for each in part]
        case float() if part.is_integer():
            return int(part)
        case _:
            return part
