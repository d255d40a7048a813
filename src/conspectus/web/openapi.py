"""The OpenAPI document: the errors that every route may return besides its response."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from inspect import isclass
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from conspectus.model.checks import hints
from conspectus.web.bodies import BodyRoute
from conspectus.web.examples import add_examples
from conspectus.web.logs import API
from conspectus.web.operation_schemas import response_type
from conspectus.web.problem_details import MEDIA_TYPE
from conspectus.web.route_table import WRITING_METHODS
from conspectus.web.static_documents import StaticDocument

PROBLEM = "Problem"
OPEN: Final[dict[str, Any]] = {"security": []}
"""The OpenAPI entry of a route that needs no key."""
EVERYWHERE = (401, 403, 404, 408, 409, 413, 422, 429, 431, 500, 502, 503, 504)
Responses = dict[int | str, dict[str, Any]]
_MAKING_ROUTE: Final = threading.RLock()
"""The lock of all sections: the document is made in a thread, beside requests that make single routes."""


class ProblemDocument(BaseModel):
    """A problem as RFC 9457 has it, with a stable code and facts that depend on the code."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(ge=400, le=599, examples=[404])
    detail: str = Field(examples=["no collection 'wiki'"])
    code: str = Field(examples=["not_found"])


def problems(*statuses: int) -> Responses:
    """Return the responses of a route for problems: those of every route, and these statuses."""
    schema = {"$ref": f"#/components/schemas/{PROBLEM}"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*EVERYWHERE, *statuses})
    }


def with_tag(*statuses: int) -> Responses:
    """Return the responses of a route that sends an ETag, or 304 if the client has that representation."""
    tag = {"ETag": {"description": "The tag of this representation.", "schema": {"type": "string"}}}
    unchanged = {"description": HTTPStatus(304).phrase, "headers": tag}
    return {200: {"headers": tag}, 304: unchanged, **problems(*statuses)}


def describe_accepted(*statuses: int) -> Responses:
    """Return the responses of a route that starts a job and answers 202 with its location."""
    location = {"description": "Where the job can be watched.", "schema": {"type": "string"}}
    return {202: {"headers": {"Location": location}}, **problems(*statuses)}


async def read_only() -> None:
    """Declare, as a dependency of a route by hand, that its requests change no content of the store."""


ReadOnly: Final = Depends(read_only)


class DeferredRoute(Route):
    """A route that matches at once, and whose schemas are made when it is first used."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Sequence[str],
        make: Callable[[], APIRoute],
        is_read_only: bool,
        is_question: bool,
    ) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.methods = set(methods)
        self.is_read_only = is_read_only
        """Whether its requests change no content of the store."""
        self.is_question = is_question
        """Whether it needs nothing of a request but the engine of who asks and a JSON body."""
        self._make = make

    @cached_property
    def made(self) -> APIRoute:
        """The route of the framework."""
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route."""
        match, inner = super().matches(scope)
        return (match, inner) if match is Match.NONE else self.made.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.made.handle(scope, receive, send)


class Section(APIRouter):
    """Routes below `API` that are documented under one heading.

    They are complete, so that an application takes them over instead of creating each again. Each may also
    answer with the usual problems.
    """

    def __init__(self, heading: str, **options: Any) -> None:
        options = {"route_class": BodyRoute, "responses": problems(), **options}
        super().__init__(prefix=API, tags=[heading], generate_unique_id_function=operation, **options)

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route, whose schemas are made when it is first used; it answers what its endpoint returns."""

        def complete_options() -> Mapping[str, Any]:
            returns, model = hints(endpoint)["return"], options["response_model"]
            is_whole = isclass(returns) and issubclass(returns, Response)
            if isinstance(model, DefaultPlaceholder) and not is_whole:
                model = response_type(returns)
            return {**options, "response_model": model}

        declares = [dependency.dependency for dependency in options.get("dependencies") or ()]
        self.defer(
            path,
            endpoint,
            methods=options["methods"],
            make=complete_options,
            is_read_only=read_only in declares,
        )

    def defer(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Sequence[str],
        make: Callable[[], Mapping[str, Any]],
        is_read_only: bool = False,
        is_question: bool = False,
    ) -> None:
        """Add a route, whose options are made when it is first used."""

        def make_route() -> APIRoute:
            add = super(Section, self).add_api_route
            with _MAKING_ROUTE:
                add(path, endpoint, **make())
                route = self.routes.pop()
            assert isinstance(route, APIRoute)
            return route

        self.routes.append(
            DeferredRoute(
                self.prefix + path,
                endpoint,
                methods=methods,
                make=make_route,
                is_read_only=is_read_only,
                is_question=is_question,
            )
        )


def resolve_routes(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return the routes, with those of the framework in place of deferred ones."""
    return [route.made if isinstance(route, DeferredRoute) else route for route in routes]


def operation(route: APIRoute) -> str:
    """Return the id of a route's operation in the document."""
    return route.name


class Application(FastAPI):
    """A FastAPI application whose document names the problem schema, the key, and the write key."""

    _document: StaticDocument | None = None

    async def document(self) -> StaticDocument:
        """Return the document as it is sent. It is made once, in a thread, because that takes seconds."""
        async with self._making_document:
            if self._document is None:
                self._document = await asyncio.to_thread(self._encode_document)
        return self._document

    @cached_property
    def _making_document(self) -> asyncio.Lock:
        return asyncio.Lock()

    def _encode_document(self) -> StaticDocument:
        plain = json.dumps(self.openapi(), ensure_ascii=False, separators=(",", ":")).encode()
        return StaticDocument("application/json", plain=plain, packed=gzip.compress(plain, mtime=0))

    def openapi(self) -> dict[str, Any]:
        """Return the document, which is made once."""
        if self.openapi_schema is None:
            document = get_openapi(
                title=self.title, version=self.version, description=self.description,
                routes=resolve_routes(self.routes), tags=self.openapi_tags,
            )  # fmt: skip
            parts = document.setdefault("components", {})
            schemas = parts.setdefault("schemas", {})
            schemas[PROBLEM] = ProblemDocument.model_json_schema()
            for name, schema in schemas.items():
                # Generators name a class by its title, which requests and responses share.
                if "-" in name:
                    schema["title"] = name.replace("-", "")
            parts["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer", "bearerFormat": "csp_..."}
            }
            document["security"] = [{"key": []}]
            _name_write_keys(document["paths"], self.routes)
            self.openapi_schema = _with_whole_numbers(document)
            add_examples(self.openapi_schema)
        return self.openapi_schema


def _name_write_keys(paths: Mapping[str, Mapping[str, Any]], routes: Iterable[BaseRoute]) -> None:
    header = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "A write that is sent again with the same key is done once.",
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[!-~]+$",
            "examples": ["import-2026-03-02"],
        },
    }
    for route in routes:
        if isinstance(route, DeferredRoute) and not route.is_read_only and route.made.include_in_schema:
            for method in WRITING_METHODS.intersection(route.methods or ()):
                operation = paths[route.made.path_format][method.lower()]
                operation.setdefault("parameters", []).append(header)


def _with_whole_numbers(part: Any) -> Any:
    """Return the document with exact bounds. The framework makes floats of them, which rounds large ones."""
    match part:
        case dict():
            return {name: _with_whole_numbers(member) for name, member in part.items()}
        case list():
            return [_with_whole_numbers(element) for element in part]
        case float() if part.is_integer():
            return int(part)
        case _:
            return part
