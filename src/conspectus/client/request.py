"""One request to a server, before it is sent."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Literal
from urllib.parse import quote

from conspectus.errors import NotFound, UnreadableFile
from conspectus.model.jobs import Upload
from conspectus.model.records import Json
from conspectus.text.clean import clean

SLASHED: Final = frozenset({"collection", "graph", "stream"})
"""Kinds of resources whose names may contain a slash."""
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. A request that `writes` is sent with an idempotency key.

    `once`: the response is given once, so the request is not repeated if the response is lost. `repeatable`:
    repeating it has no effect, with or without a key. `recorded`: the server stores nothing twice under one
    key, even if the request fails. `unhurried`: there is no time limit.
    """

    method: Method
    path: str
    body: Json = None
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    uploads: Sequence[Upload] = ()
    writes: bool = False
    once: bool = False
    repeatable: bool = False
    recorded: bool = False
    unhurried: bool = False


def get(path: str, **query: object) -> Request:
    """Read something. Parameters that are None are omitted."""
    return Request("GET", path, query=query_of(query))


def ask(path: str, body: Json) -> Request:
    """Send a read-only query in the body, because it may be too long for an address."""
    return Request("POST", path, body)


def post(path: str, body: Json = None) -> Request:
    """Create something, or run an action."""
    return Request("POST", path, body, writes=True)


def work(path: str, body: Json = None) -> Request:
    """Run work whose duration grows with the store."""
    return Request("POST", path, body, writes=True, unhurried=True)


def remove(path: str, **query: object) -> Request:
    """Delete something."""
    return Request("DELETE", path, query=query_of(query), writes=True, unhurried=True)


def path_of(*parts: tuple[str, str] | str) -> str:
    """Return a path of fixed segments and of resources as (kind, name). Raises NotFound."""
    return "".join(f"/{each if isinstance(each, str) else _segment(*each)}" for each in parts)


def body_of(request: Request, files: ExitStack, *, boundary: str) -> dict[str, Any]:
    """Return the body and its headers for httpx. Files stay open until `files` is closed.

    The multipart boundary is given by the caller, so that a repeated request is identical byte for byte.
    """
    if request.uploads:
        form = [("files", (each.name, _opened(each.data, files))) for each in request.uploads]
        kind = f"multipart/form-data; boundary={boundary}"
        return {"files": form, "data": request.body, "headers": {"Content-Type": kind}}
    if request.body is None:
        return {}
    body = json.dumps(request.body, ensure_ascii=False, allow_nan=False)
    return {"content": body.encode(), "headers": {"Content-Type": "application/json"}}


def _opened(data: bytes | Path, files: ExitStack) -> bytes | IO[bytes]:
    if isinstance(data, bytes):
        return data
    try:
        return files.enter_context(data.open("rb"))
    except OSError as fault:
        raise UnreadableFile(str(data), fault.strerror or "cannot be read") from fault


def _segment(kind: str, name: str) -> str:
    if not name or ("/" in name and kind not in SLASHED):
        raise NotFound(kind, name)
    quoted = quote(clean(name), safe="")
    return quoted.replace(".", "%2E") if set(quoted) <= {"."} else quoted


def query_of(query: Mapping[str, object]) -> dict[str, str | Sequence[str]]:
    """Return the query parameters. Parameters that are None are omitted."""
    return {
        name: [_text(each) for each in value] if isinstance(value, list) else _text(value)
        for name, value in query.items()
        if value is not None
    }


def _text(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else clean(str(value))
