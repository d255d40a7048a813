"""Documents that anybody may read: bytes in memory with an ETag, plain and compressed, each made once."""

import asyncio
import gzip
import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from conspectus.web.etags import is_not_modified, quote_tag

PACKED: Final = ".gz"
"""The suffix of the compressed form of a file; the file itself may be missing."""
PIECE_BYTES: Final = 65_536
"""Bytes of a document that are written at once."""


class StaticDocument:
    """A document: `plain` are its bytes, and `packed` the same compressed with gzip; one may be missing."""

    def __init__(
        self,
        media_type: str,
        *,
        plain: bytes | None = None,
        packed: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._media_type = media_type
        self._headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding", **(headers or {})}
        self._plain = plain
        self.packed = packed

    @cached_property
    def plain(self) -> bytes:
        """The document as it is; unpacked for the first client that takes no gzip."""
        return gzip.decompress(self.packed or b"") if self._plain is None else self._plain

    @cached_property
    def _plain_form(self) -> "Form":
        return Form(self.plain)

    @cached_property
    def _packed_form(self) -> "Form":
        return Form(self.packed or b"")

    def response(self, request: Request) -> Response:
        """Return the document in a form that the client accepts, or 304 if the client has it already."""
        is_packed = self.packed is not None and accepts_token(
            request.headers.get("accept-encoding", ""), "gzip"
        )
        form = self._packed_form if is_packed else self._plain_form
        headers = {**self._headers, "ETag": form.tag}
        if is_not_modified(form.tag, request.headers.get("if-none-match")):
            return Response(status_code=304, headers=headers)
        if is_packed:
            headers["Content-Encoding"] = "gzip"
        return PiecewiseResponse(form, headers, self._media_type)


class Form:
    """A document in one encoding: its bytes in pieces, and its tag."""

    def __init__(self, body: bytes) -> None:
        self.size = len(body)
        pieces = [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)]
        self.pieces = pieces or [b""]
        self.tag = quote_tag(hashlib.sha256(body).hexdigest()[:32])


class PiecewiseResponse(Response):
    """Sends a document in pieces, so that a connection buffers only one, and no write takes long."""

    def __init__(self, form: Form, headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(headers={**headers, "Content-Length": str(form.size)}, media_type=media_type)
        self._pieces = form.pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head and all pieces."""
        head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(head)
        last = len(self._pieces) - 1
        for number, piece in enumerate(self._pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": number < last})


Conversion: TypeAlias = Callable[[str, bytes | None, bytes | None], StaticDocument]
"""Makes a document of the path of a file, and of its plain and its compressed contents."""


class StaticFolder:
    """The files of a folder, each read once. Later files and changes are seen after a restart."""

    def __init__(self, folder: Path, convert: Conversion) -> None:
        self._folder = folder
        self._convert = convert
        self._files: Mapping[str, Path] | None = None
        self._documents: dict[str, StaticDocument] = {}
        self._reading = asyncio.Lock()

    async def find(self, path: str) -> StaticDocument | None:
        """Return the file at a path of the folder; None where there is none."""
        if path not in self._documents and await self.has(path):
            async with self._reading:
                if path not in self._documents:
                    self._documents[path] = await asyncio.to_thread(self._read, path)
        return self._documents.get(path)

    async def has(self, path: str) -> bool:
        """Return whether the folder has a file at a path, or its compressed form."""
        if self._files is None:
            self._files = await asyncio.to_thread(_files_below, self._folder)
        return path in self._files or f"{path}{PACKED}" in self._files

    def _read(self, path: str) -> StaticDocument:
        files = self._files or {}
        plain, packed = (
            files[name].read_bytes() if name in files else None for name in (path, f"{path}{PACKED}")
        )
        return self._convert(path, plain, packed)


def _files_below(folder: Path) -> Mapping[str, Path]:
    """Return the files below a folder by their paths; nothing else can be requested."""
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def accepts_token(header: str, name: str) -> bool:
    """Return whether a header such as Accept-Encoding accepts an entry."""
    return weight_of(header, name) > 0


def weight_of(header: str, name: str) -> float:
    """Return the weight of an entry of a header such as Accept, from 0 to 1."""
    for part in header.lower().split(","):
        option, _, weight = part.replace(" ", "").partition(";q=")
        if option == name:
            try:
                return float(weight or 1)
            except ValueError:
                return 0.0
    return 0.0
