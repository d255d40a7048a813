"""The pages of the server: `/`, the console, the documentation, and the API at `/docs`."""

import asyncio
import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from conspectus.errors import NotFound
from conspectus.mcp.tool import PATH as MODELS
from conspectus.web.logs import API
from conspectus.web.operation_routes import is_not_modified, quoted

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
    """A description of this server, with links; a browser is led to the console."""
    vary = {"Vary": "Accept"}
    accepted = request.headers.get("accept", "")
    if request.app.state.console is not None and _weight(accepted, "text/html") > _weight(
        accepted, "application/json"
    ):
        return RedirectResponse(CONSOLE, headers=vary)
    body = {
        "name": request.app.title,
        "version": request.app.version,
        "api": API,
        "docs": "/docs",
        "openapi": "/openapi.json",
        "mcp": MODELS,
        "health": "/health/ready",
    }
    return JSONResponse(body, headers=vary)


@router.api_route(DOCS, methods=["GET", "HEAD"])
async def documentation_root(request: Request) -> RedirectResponse:
    """The address from which the links of the documentation lead on."""
    return RedirectResponse(f"{DOCS}/")


@router.api_route(f"{DOCS}/{{path:path}}", methods=["GET", "HEAD"])
async def documentation(request: Request, path: str) -> Response:
    """A page or a file of the documentation."""
    folder: Path | None = request.app.state.docs
    if folder is None:
        raise NotFound("page", DOCS)
    files = await asyncio.to_thread(_files, folder)
    if not _has(files, INDEX):
        return HTMLResponse(NOT_BUILT.format(what="documentation", target="docs"), 404)
    path = path or INDEX
    if not _has(files, path):
        raise NotFound("page", f"{DOCS}/{path}")
    return await _file(request, files, path)


@router.api_route("/llms.txt", methods=["GET", "HEAD"])
@router.api_route("/llms-full.txt", methods=["GET", "HEAD"])
async def documentation_for_models(request: Request) -> RedirectResponse:
    """The address where language models look for the documentation."""
    return RedirectResponse(f"{DOCS}{request.url.path}")


@router.api_route(CONSOLE, methods=["GET", "HEAD"])
@router.api_route(f"{CONSOLE}/{{path:path}}", methods=["GET", "HEAD"])
async def console(request: Request, path: str = "") -> Response:
    """A file of the console. All other paths are its page, which shows what they name."""
    folder: Path | None = request.app.state.console
    files = await asyncio.to_thread(_files, folder) if folder else {}
    if path.startswith(ASSETS) and not _has(files, path):
        raise NotFound("file", path)
    return await _page(request, path if _has(files, path) else INDEX, CONSOLE)


async def _file(request: Request, files: Mapping[str, Path], path: str) -> Response:
    """A file, or its compressed twin; where there is only the twin, it is unpacked for those who ask that."""
    packed = f"{path}.gz" in files and _weight(request.headers.get("accept-encoding", ""), "gzip") > 0
    body = await asyncio.to_thread(files[f"{path}.gz" if packed or path not in files else path].read_bytes)
    if path not in files and not packed:
        body = await asyncio.to_thread(gzip.decompress, body)
    tag = quoted(hashlib.sha256(body).hexdigest()[:32])
    headers = {
        "Cache-Control": FOREVER if path.startswith(ASSETS) else "no-cache",
        "Content-Security-Policy": POLICY,
        "ETag": tag,
        "Referrer-Policy": "same-origin",
        "Vary": "Accept-Encoding",
    }
    if is_not_modified(tag, request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    encoding = {"Content-Encoding": "gzip"} if packed else {}
    media_type = MEDIA_TYPES.get(Path(path).suffix, "application/octet-stream")
    return Response(body, headers=headers | encoding, media_type=media_type)


def _has(files: Mapping[str, Path], path: str) -> bool:
    return path in files or f"{path}.gz" in files


def _files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their paths; nothing else can be asked for."""
    return {each.relative_to(folder).as_posix(): each for each in folder.rglob("*") if each.is_file()}


def _weight(accepted: str, name: str) -> float:
    """How much a header such as Accept wants what it names, from 0 to 1."""
    for each in accepted.lower().split(","):
        wanted, _, weight = each.replace(" ", "").partition(";q=")
        if wanted == name:
            try:
                return float(weight or 1)
            except ValueError:
                return 0.0
    return 0.0


@router.api_route("/docs", methods=["GET", "HEAD"])
async def manual(request: Request) -> Response:
    """The page of the API: every operation with examples, which can be tried there."""
    return await _page(request, API_PAGE, "/docs")


async def _page(request: Request, path: str, address: str) -> Response:
    """A page of those that the console was built with."""
    folder: Path | None = request.app.state.console
    if folder is None:
        raise NotFound("page", address)
    files = await asyncio.to_thread(_files, folder)
    if not _has(files, path):
        return HTMLResponse(NOT_BUILT.format(what="console", target="console"), 404)
    return await _file(request, files, path)
