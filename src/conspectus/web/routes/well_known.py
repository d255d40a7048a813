"""Metadata at the paths where clients look for them before they have a token."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from conspectus.errors import NotFound
from conspectus.web.protected_resource import METADATA_PATH, RESOURCES

router = APIRouter(include_in_schema=False)
ONE_MINUTE: Final = "public, max-age=60"


async def protected_resource(request: Request) -> JSONResponse:
    """Return which issuer's tokens this server takes; where it takes none, there is nothing here."""
    metadata: dict[str, Any] | None = request.app.state.protected_resources.get(request.url.path)
    if metadata is None:
        raise NotFound("page", request.url.path)
    return JSONResponse(metadata, headers={"Cache-Control": ONE_MINUTE})


for resource in RESOURCES:
    router.add_api_route(f"{METADATA_PATH}{resource}", protected_resource, methods=["GET", "HEAD"])
