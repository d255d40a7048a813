"""One request to a server, before it is sent, and its arguments as JSON.

Only values that differ from the defaults are encoded, with minimal validation.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, field, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, Literal
from urllib.parse import quote

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, NotFound, UnreadableFile
from conspectus.ingest.document_fields import period, storable
from conspectus.model.checks import LARGEST, format_value
from conspectus.model.jobs import Upload
from conspectus.model.records import Json, Metadata, NewDocument
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.positions import check_positions
from conspectus.text.times import parse_instant
from conspectus.text.vectors import unit

KINDS_WITH_SLASHES: Final = frozenset({"collection", "graph", "stream"})
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


def read_request(path: str, **query: object) -> Request:
    """Read something. Parameters that are None are omitted."""
    return Request("GET", path, query=query_of(query))


def query_request(path: str, body: Json) -> Request:
    """Send a read-only query in the body, because it may be too long for an address."""
    return Request("POST", path, body)


def write_request(path: str, body: Json = None) -> Request:
    """Create something, or run an action."""
    return Request("POST", path, body, writes=True)


def long_write_request(path: str, body: Json = None) -> Request:
    """Run work whose duration grows with the store."""
    return Request("POST", path, body, writes=True, unhurried=True)


def delete_request(path: str, **query: object) -> Request:
    """Delete something."""
    return Request("DELETE", path, query=query_of(query), writes=True, unhurried=True)


def path_of(*parts: tuple[str, str] | str) -> str:
    """Return a path of fixed segments and of resources as (kind, name). Raises NotFound."""
    return "".join(f"/{part if isinstance(part, str) else _encode_segment(*part)}" for part in parts)


def body_of(request: Request, files: ExitStack, *, boundary: str) -> dict[str, Any]:
    """Return the body and its headers for httpx. Files stay open until `files` is closed.

    The multipart boundary is given by the caller, so that a repeated request is identical byte for byte.
    """
    if request.uploads:
        form = [("files", (upload.name, _open_upload(upload.data, files))) for upload in request.uploads]
        kind = f"multipart/form-data; boundary={boundary}"
        return {"files": form, "data": request.body, "headers": {"Content-Type": kind}}
    if request.body is None:
        return {}
    body = json.dumps(request.body, ensure_ascii=False, allow_nan=False)
    return {"content": body.encode(), "headers": {"Content-Type": "application/json"}}


def _open_upload(data: bytes | Path, files: ExitStack) -> bytes | IO[bytes]:
    if isinstance(data, bytes):
        return data
    try:
        return files.enter_context(data.open("rb"))
    except OSError as fault:
        raise UnreadableFile(str(data), fault.strerror or "cannot be read") from fault


def _encode_segment(kind: str, name: str) -> str:
    if not name or ("/" in name and kind not in KINDS_WITH_SLASHES):
        raise NotFound(kind, name)
    quoted = quote(clean(name), safe="")
    return quoted.replace(".", "%2E") if set(quoted) <= {"."} else quoted


def query_of(query: Mapping[str, object]) -> dict[str, str | Sequence[str]]:
    """Return the query parameters. Parameters that are None are omitted."""
    return {
        name: [_query_text(member) for member in value] if isinstance(value, list) else _query_text(value)
        for name, value in query.items()
        if value is not None
    }


def _query_text(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else clean(str(value))


UNLIMITED: Final = Settings(max_metadata_bytes=sys.maxsize, max_metadata_depth=100)
"""The server validates sizes; the depth limit only protects the encoder."""


def to_json(value: object) -> Json:
    """Encode any value of the model as JSON: dataclasses by field, instants in ISO 8601.

    Raises InvalidInput for a number that JSON does not have, and for unsupported types.
    """
    match value:
        case None | bool():
            return value
        case int() | float() if _is_number(value):
            return value
        case str():
            return clean(value)
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(name): to_json(member) for name, member in value.items()}
        case list() | tuple():
            return [to_json(member) for member in value]
        case _ if is_dataclass(value):
            return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            raise InvalidInput("value", f"{format_value(value)} cannot be written as JSON")


def _is_number(value: float) -> bool:
    if isinstance(value, int):
        return abs(value) <= LARGEST
    return math.isfinite(value)


def instant_json(moment: datetime | str | float | None) -> Json:
    """Return an instant in ISO 8601 with its zone (UTC if it has none). Raises InvalidInput."""
    return None if moment is None else parse_instant(moment).isoformat()


def document_json(new: NewDocument) -> dict[str, Json]:
    """Return a document to be written. Raises InvalidInput for values that cannot be stored."""
    usual = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(new)
    }
    return changes_json(
        {name: argument for name, default in usual.items() if (argument := getattr(new, name)) != default}
    )


def changes_json(changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return new values of a document's fields. Raises InvalidInput as `document_json` does."""
    values = dict(changes)
    if "metadata" in values:
        values["metadata"] = metadata_json(values["metadata"])
    if "occurred" in values:
        values["occurred"] = period(values["occurred"])
    if "text" in values and "places" in values:
        values["places"] = check_positions(values["places"], values["text"])
    if "text" in values and "spans" in values and len(clean(values["text"])) != len(values["text"]):
        raise InvalidInput("spans", "refer to a text with characters that cannot be stored")
    if values.get("vector") is not None:
        unit(values["vector"])
        values["vector"] = [float(number) for number in values["vector"]]
    return {name: to_json(value) for name, value in values.items()}


def metadata_json(metadata: Mapping[str, object]) -> Metadata:
    """Return metadata with instants as strings. Raises InvalidInput for values that are not JSON."""
    return storable(metadata, UNLIMITED)
