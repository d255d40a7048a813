"""Questions by POST, answered without the router and the dependencies of the framework."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from fastapi.exceptions import ResponseValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from conspectus.web.auth import replay_body
from conspectus.web.bodies import BodyRequest
from conspectus.web.openapi import DeferredRoute

JSON = b"application/json"
MAX_INLINE_ROWS: Final = 100
"""Most hits or passages of an answer that is serialized on the event loop: less than a millisecond."""
MAX_INLINE_CHARACTERS: Final = 100_000
"""Longest text of an answer that is serialized on the event loop."""


class Questions:
    """Answers valid requests to routes of questions, and passes everything else on to the application.

    The schemas of the routes read and write the bodies, so an answer is the same on both ways. What a
    schema or the parser refuses is passed on with its body, so that the framework says why.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = {
            route.path: route for route in routes if isinstance(route, DeferredRoute) and route.is_question
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        route = self._routes.get(scope.get("path", ""))
        if route is None or scope["method"] != "POST" or (b"content-type", JSON) not in scope["headers"]:
            await self._app(scope, receive, send)
            return
        request, api_route = BodyRequest(scope, receive), route.made
        try:
            raw = await request.body()
        except ClientDisconnect:
            await self._app(scope, receive, send)
            return
        body, errors = _validate(api_route, await _parse(request))
        if errors:
            await self._app(scope, replay_body(raw, receive), send)
            return
        scope["route"] = api_route
        answer = await route.endpoint(engine=scope["state"]["engine"], body=body)
        if is_large(answer):
            content = await asyncio.to_thread(_serialize, api_route, answer)
        else:
            content = _serialize(api_route, answer)
        headers = [(b"content-length", str(len(content)).encode()), (b"content-type", JSON)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


async def _parse(request: BodyRequest) -> Any:
    """Return the parsed body; None if it is not JSON. Raises TooLarge."""
    try:
        return await request.json()
    except (ValueError, RecursionError):
        return None


def _validate(route: APIRoute, document: Any) -> tuple[Any, Any]:
    """Return the body as the route takes it, and what is wrong with it; one of them is None."""
    if route.body_field is None or not isinstance(document, dict):
        return None, True
    return route.body_field.validate(document, {}, loc=("body",))


def is_large(answer: Any) -> bool:
    """Return whether serializing an answer takes long enough to leave the event loop."""
    contents = (getattr(answer, name) for name in getattr(answer, "__dataclass_fields__", ()))
    return any(
        len(content) > (MAX_INLINE_CHARACTERS if isinstance(content, str) else MAX_INLINE_ROWS)
        for content in contents
        if isinstance(content, str | tuple | list)
    )


def _serialize(route: APIRoute, answer: Any) -> bytes:
    """Return the answer as the schema of the route has it. Raises ResponseValidationError."""
    field = route.response_field
    assert field is not None
    value, errors = field.validate(answer, {}, loc=("response",))
    if errors:
        raise ResponseValidationError(errors)
    return field.serialize_json(value)
