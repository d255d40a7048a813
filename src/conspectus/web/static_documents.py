"""Documents that anybody may read: bytes in memory with an ETag, plain and compressed, each made once."""

import asyncio
import gzip
import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from fastapi import Request, Response

from conspectus.web.etags import is_not_modified, quoted

PACKED: Final = ".gz"
"""The suffix of a file that is the compressed form of another one, or stands for it."""


class StaticDocument:
    """One document; `plain` is the text of it, `packed` is the same compressed, and one may be missing."""

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
    def _plain_tag(self) -> str:
        return _tag_of(self.plain)

    @cached_property
    def _packed_tag(self) -> str:
        return _tag_of(self.packed or b"")

    def response(self, request: Request) -> Response:
        """The document in the form that a client takes, or that the client has it already."""
        is_packed = self.packed is not None and accepts(request.headers.get("accept-encoding", ""), "gzip")
        tag = self._packed_tag if is_packed else self._plain_tag
        headers = {**self._headers, "ETag": tag}
        if is_not_modified(tag, request.headers.get("if-none-match")):
            return Response(status_code=304, headers=headers)
        if not is_packed:
            return Response(self.plain, headers=headers, media_type=self._media_type)
        headers["Content-Encoding"] = "gzip"
        return Response(self.packed, headers=headers, media_type=self._media_type)


Conversion: TypeAlias = Callable[[str, bytes | None, bytes | None], StaticDocument]
"""Makes a document of the path of a file, and of its plain and its compressed contents."""


class StaticFolder:
    """The files of a folder, each read once. Files that are added or changed later need another start."""

    def __init__(self, folder: Path, convert: Conversion) -> None:
        self._folder = folder
        self._convert = convert
        self._files: Mapping[str, Path] | None = None
        self._documents: dict[str, StaticDocument] = {}
        self._reading = asyncio.Lock()

    async def find(self, path: str) -> StaticDocument | None:
        """The file at a path of the folder, None where there is none."""
        if path not in self._documents and await self.has(path):
            async with self._reading:
                if path not in self._documents:
                    self._documents[path] = await asyncio.to_thread(self._read, path)
        return self._documents.get(path)

    async def has(self, path: str) -> bool:
        """Whether the folder has a file at a path, or its compressed form."""
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
    """The files below a folder by their paths; nothing else can be asked for."""
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def accepts(header: str, name: str) -> bool:
    """Whether a header such as Accept-Encoding takes what it names."""
    return weight_of(header, name) > 0


def weight_of(header: str, name: str) -> float:
    """How much a header such as Accept prefers what it names, from 0 to 1."""
    for part in header.lower().split(","):
        option, _, weight = part.replace(" ", "").partition(";q=")
        if option == name:
            try:
                return float(weight or 1)
            except ValueError:
                return 0.0
    return 0.0


def _tag_of(body: bytes) -> str:
    return quoted(hashlib.sha256(body).hexdigest()[:32])
