"""ETags: their form in headers, and their comparison."""

import hashlib

from fastapi import Response
from pydantic import BaseModel

from conspectus.engine import Engine
from conspectus.errors import PreconditionFailed


def quote_tag(tag: str) -> str:
    """Return a tag in the quotes that headers have around it."""
    return f'"{tag}"'


def tags_in(header: str | None) -> list[str]:
    """Return the tags that a header names, `*` among them; weak ones keep their `W/`."""
    return [tag.strip() for tag in (header or "").split(",") if tag.strip()]


def is_not_modified(tag: str, header: str | None) -> bool:
    """Return whether If-None-Match says that the client has this representation already."""
    return any(client_tag.removeprefix("W/") in {tag, "*"} for client_tag in tags_in(header))


def tag_of(body: BaseModel) -> str:
    """Return the ETag of a representation: its fingerprint or that of its document, or a hash of it."""
    document = getattr(body, "document", None)
    fingerprint = getattr(body, "fingerprint", None) or getattr(document, "fingerprint", None)
    return quote_tag(fingerprint or hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:32])


def require_match(tag: str, header: str | None, *, kind: str, name: str) -> None:
    """Raise PreconditionFailed unless If-Match, where given, names this representation."""
    if header is not None and not {tag, "*"} & set(tags_in(header)):
        raise PreconditionFailed(kind, name)


async def fingerprint_in(header: str | None, document: str, engine: Engine) -> str | None:
    """Return the fingerprint in If-Match; of several tags, the one of the document, if it is among them."""
    tags = tags_in(header)
    if header is None or "*" in tags:
        return None
    if len(tags) > 1:
        current = quote_tag((await engine.documents.get(document)).fingerprint)
        tags = [current] if current in tags else tags
    return tags[0].removeprefix('"').removesuffix('"') if tags else ""


def unless_not_modified(body: BaseModel, tag: str, header: str | None) -> Response:
    """Return a representation with its tag; 304 without it if the client has it already."""
    headers = {"ETag": tag}
    if is_not_modified(tag, header):
        return Response(status_code=304, headers=headers)
    return Response(body.model_dump_json(), headers=headers, media_type="application/json")
