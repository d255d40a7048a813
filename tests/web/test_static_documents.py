"""What the server sends to anybody is bytes in memory: no request reads, hashes or encodes anything."""

import asyncio
import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from operator import is_
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import FastAPI

from conspectus.web.logs import API
from conspectus.web.routes.pages import BUILT, SITE
from tests.web.conftest import Site

PROVEN: Final = (API, "/mcp", "/metrics")
"""The beginnings of paths that need a key."""
PROBES: Final = {"/healthz", "/health/live", "/readyz", "/health/ready"}
"""They say how the server is now, in 20 bytes."""
FILES: Final = {"/console/{path:path}": BUILT, "/console/docs/{path:path}": SITE}


async def send(app: FastAPI, path: str, headers: Mapping[str, str], method: str = "GET") -> dict[str, Any]:
    """The parts of a response, with the very object that is its body."""
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "scheme": "http", "server": ("localhost", 80), "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"localhost"), *((k.encode(), v.encode()) for k, v in headers.items())],
        "root_path": "", "state": {},
    }  # fmt: skip
    parts: dict[str, Any] = {"pieces": []}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def note(message: Any) -> None:
        parts.update(message)
        parts["pieces"] += [message["body"]] if "body" in message else []

    await app(scope, receive, note)
    return {**parts, "headers": {name.decode(): text.decode() for name, text in parts["headers"]}}


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The paths of all files that this process opens from here on."""
    paths: list[str] = []
    is_counting = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if is_counting and event == "open":
            paths.append(str(arguments[0]))

    sys.addaudithook(note)
    yield paths
    is_counting = False


def paths_of(app: FastAPI) -> list[str]:
    """A path for every route without a key; for a folder, three of its files."""
    paths = []
    for route in app.router.routes:
        path: str = getattr(route, "path", "")
        if not path.startswith(PROVEN) and path not in PROBES:
            paths += named_below(path) if path in FILES else [path]
    return paths


def named_below(path: str) -> list[str]:
    folder: Path = FILES[path]
    names = sorted(file.relative_to(folder).as_posix().removesuffix(".gz") for file in folder.rglob("*.*"))
    return [path.replace("{path:path}", name) for name in ["", *names[:: max(1, len(names) // 3)]]]


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_every_route_without_a_key_sends_the_same_bytes(
    site: Site, opened: list[str], encoding: str
) -> None:
    """The body is one object however often it is sent, with an ETag by which it is not sent again."""
    wrong = []
    for path in paths_of(site.app):
        first = await send(site.app, path, {"accept-encoding": encoding})
        del opened[:]
        second = await send(site.app, path, {"accept-encoding": encoding})
        reads, tag = list(opened), second["headers"].get("etag", "")
        unchanged = await send(site.app, path, {"accept-encoding": encoding, "if-none-match": tag})
        if first["status"] == 200:
            same = all(map(is_, first["pieces"], second["pieces"])) and unchanged["status"] == 304
        else:
            same = len(second["body"]) < 400
        if reads or not same:
            wrong.append((path, first["status"], reads, tag))
    assert wrong == []
    assert {"/", "/openapi.json", "/docs", "/llms.txt"} <= set(paths_of(site.app))


async def test_the_document_is_made_once_and_compressed(site: Site) -> None:
    headers = {"accept-encoding": "gzip"}
    answers = await asyncio.gather(*(send(site.app, "/openapi.json", headers) for _ in range(20)))
    assert len({tuple(map(id, answer["pieces"])) for answer in answers}) == 1
    packed = b"".join(answers[0]["pieces"])
    assert answers[0]["headers"]["content-encoding"] == "gzip" and len(packed) < 200_000
    plain = b"".join((await send(site.app, "/openapi.json", {}))["pieces"])
    assert gzip.decompress(packed) == plain and json.loads(plain)["openapi"].startswith("3.")
