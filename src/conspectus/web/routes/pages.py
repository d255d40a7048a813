"""The pages of the server: `/`, the console, the documentation, and `/docs`, the API, which loads nothing."""

import asyncio
import gzip
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from conspectus.errors import NotFound
from conspectus.mcp.tool import PATH as MODELS
from conspectus.web.deps import is_not_modified, quoted
from conspectus.web.logs import API

router = APIRouter(include_in_schema=False)
Operation = Mapping[str, Any]
CONSOLE: Final = "/console"
BUILT: Final = Path(__file__).resolve().parents[1] / "console"
"""The files of the console, which `make console` builds and every wheel has."""
DOCS: Final = f"{CONSOLE}/docs"
SITE: Final = Path(__file__).resolve().parents[1] / "docs"
"""The pages of the documentation, which `make docs` builds and every wheel has."""
ASSETS: Final = "assets/"
INDEX: Final = "index.html"
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
    if not {INDEX, f"{INDEX}.gz"} & files.keys():
        return HTMLResponse(NOT_BUILT.format(what="documentation", target="docs"), 404)
    path = path or INDEX
    if path not in files and f"{path}.gz" not in files:
        raise NotFound("page", f"{DOCS}/{path}")
    return await _file(request, files, path)


@router.api_route(CONSOLE, methods=["GET", "HEAD"])
@router.api_route(f"{CONSOLE}/{{path:path}}", methods=["GET", "HEAD"])
async def console(request: Request, path: str = "") -> Response:
    """A file of the console. All other paths are its page, which shows what they name."""
    folder: Path | None = request.app.state.console
    if folder is None:
        raise NotFound("page", CONSOLE)
    files = await asyncio.to_thread(_files, folder)
    if INDEX not in files:
        return HTMLResponse(NOT_BUILT.format(what="console", target="console"), 404)
    if path not in files and path.startswith(ASSETS):
        raise NotFound("file", path)
    return await _file(request, files, path if path in files else INDEX)


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
