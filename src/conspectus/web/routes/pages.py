"""The pages of the server: `/`, the console, the documentation, and the API at `/docs`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from conspectus.errors import NotFound
from conspectus.mcp.tool import HTTP_PATH as MCP_PATH
from conspectus.web.logs import API
from conspectus.web.openapi import Application
from conspectus.web.static_documents import StaticDocument, StaticFolder, weight_of

router = APIRouter(include_in_schema=False)
CONSOLE: Final = "/console"
BUILT: Final = Path(__file__).resolve().parents[1] / "console"
"""The files of the console, which `make console` builds and every wheel has."""
DOCS: Final = f"{CONSOLE}/docs"
SITE: Final = Path(__file__).resolve().parents[1] / "docs"
"""The pages of the documentation, which `make docs` builds and every wheel has."""
ASSETS: Final = "assets/"
INDEX: Final = "index.html"
API_PAGE: Final = "api.html"
FOREVER: Final = "public, max-age=31536000, immutable"
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
NOT_BUILT: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Conspectus</title>'
    "<p>The {what} is not built in this checkout; run <code>make {target}</code>.</html>"
)


@router.get("/")
async def index(request: Request) -> Response:
    """Describe this server, with links; a browser is led to the console."""
    accepted = request.headers.get("accept", "")
    prefers_html = weight_of(accepted, "text/html") > weight_of(accepted, "application/json")
    if request.app.state.console is not None and prefers_html:
        return RedirectResponse(CONSOLE, headers={"Vary": "Accept"})
    description: StaticDocument = request.app.state.description
    return description.response(request)


def description_of(title: str, version: str) -> StaticDocument:
    """Return what a server says of itself at `/`."""
    body = {
        "name": title,
        "version": version,
        "api": API,
        "docs": "/docs",
        "openapi": "/openapi.json",
        "mcp": MCP_PATH,
        "health": "/health/ready",
    }
    plain = json.dumps(body, separators=(",", ":")).encode()
    return StaticDocument("application/json", plain=plain, headers={"Vary": "Accept"})


@router.api_route(DOCS, methods=["GET", "HEAD"])
async def documentation_root(request: Request) -> RedirectResponse:
    """Redirect to the address from which the links of the documentation lead on."""
    return RedirectResponse(f"{DOCS}/")


@router.api_route(f"{DOCS}/{{path:path}}", methods=["GET", "HEAD"])
async def documentation(request: Request, path: str) -> Response:
    """Return a page or a file of the documentation."""
    folder: StaticFolder | None = request.app.state.docs
    if folder is None:
        raise NotFound("page", DOCS)
    if not await folder.has(INDEX):
        return HTMLResponse(NOT_BUILT.format(what="documentation", target="docs"), 404)
    document = await folder.find(path or INDEX)
    if document is None:
        raise NotFound("page", f"{DOCS}/{path or INDEX}")
    return document.response(request)


@router.api_route("/llms.txt", methods=["GET", "HEAD"])
@router.api_route("/llms-full.txt", methods=["GET", "HEAD"])
async def documentation_for_models(request: Request) -> RedirectResponse:
    """Redirect from the address where language models look for the documentation."""
    return RedirectResponse(f"{DOCS}{request.url.path}")


@router.api_route(CONSOLE, methods=["GET", "HEAD"])
@router.api_route(f"{CONSOLE}/{{path:path}}", methods=["GET", "HEAD"])
async def console(request: Request, path: str = "") -> Response:
    """Return a file of the console; for all other paths its page, which shows what they name."""
    folder: StaticFolder | None = request.app.state.console
    is_file = folder is not None and await folder.has(path)
    if path.startswith(ASSETS) and not is_file:
        raise NotFound("file", path)
    return await _page(request, path if is_file else INDEX, CONSOLE)


def console_file(path: str, plain: bytes | None, packed: bytes | None) -> StaticDocument:
    """Return a file of the console or of the documentation, with its type and its policy."""
    headers = {
        "Cache-Control": FOREVER if path.startswith(ASSETS) else "no-cache",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "same-origin",
    }
    media_type = MEDIA_TYPES.get(Path(path).suffix, "application/octet-stream")
    return StaticDocument(media_type, plain=plain, packed=packed, headers=headers)


def folder_of(path: Path) -> StaticFolder:
    """Return the files of a build of the console or of the documentation."""
    return StaticFolder(path, console_file)


@router.api_route("/openapi.json", methods=["GET", "HEAD"])
async def openapi_document(request: Request) -> Response:
    """Return the OpenAPI document of this server."""
    application: Application = request.app
    return (await application.document()).response(request)


@router.api_route("/docs", methods=["GET", "HEAD"])
async def manual(request: Request) -> Response:
    """Return the page of the API, where every operation has examples and can be tried."""
    return await _page(request, API_PAGE, "/docs")


async def _page(request: Request, path: str, address: str) -> Response:
    """Return a page that the console was built with."""
    folder: StaticFolder | None = request.app.state.console
    if folder is None:
        raise NotFound("page", address)
    document = await folder.find(path)
    if document is None:
        return HTMLResponse(NOT_BUILT.format(what="console", target="console"), 404)
    return document.response(request)
