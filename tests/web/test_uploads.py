"""Files that come with a request: how many, how large, and what they are called."""

import io
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.web.conftest import OpenSite, filled

PLACE = "/collections/wiki/ingest/files"


def file_named(*names: str) -> list[Any]:
    return [("files", (name, f"The text of {name}.".encode())) for name in names]


async def wait_for_end(api: httpx.AsyncClient, answer: httpx.Response) -> Any:
    assert answer.status_code == 202, answer.text
    return (await api.get(f"/jobs/{answer.json()['id']}?wait=30")).json()


async def test_large_files_arrive_whole(api: httpx.AsyncClient) -> None:
    await filled(api)
    text = "The tide turns at noon. " * 50_000
    answer = await api.post(PLACE, files=[("files", ("tides.txt", io.BytesIO(text.encode())))])
    assert (await wait_for_end(api, answer))["state"] == "succeeded"
    listed = (await api.get("/collections/wiki/documents")).json()["documents"]
    (document,) = [listed_document for listed_document in listed if listed_document["title"] != "Backups"]
    assert (await api.get(f"/documents/{document['id']}/text")).json()["text"].split() == text.split()


async def test_too_many_files(open_site: OpenSite) -> None:
    async with open_site(max_upload_files=2) as site, site.client() as api:
        await filled(api)
        refused = await api.post(PLACE, files=file_named("a.txt", "b.txt", "c.txt"))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        allowed = await api.post(PLACE, files=file_named("a.txt", "b.txt"))
        assert (await wait_for_end(api, allowed))["state"] == "succeeded"


async def test_a_file_over_the_limit(open_site: OpenSite) -> None:
    async with open_site(max_file_bytes=1_000) as site, site.client() as api:
        await filled(api)
        answer = await api.post(PLACE, files=[("files", ("a.txt", b"x" * 1_001))])
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert (await api.get("/jobs")).json()["jobs"] == []


NO_UPLOADS = {
    "empty": b"",
    "no part": b"--x--\r\n",
    "no name": b"--x\r\n\r\nno name\r\n--x--\r\n",
    "torn": b"--x\r\nContent-Disposition: form-data",
    "nonsense": b"\x00" * 99,
}
NAMES = ["../../etc/passwd", "/etc/passwd", "C:\\x.txt", "a/b/c.txt", "\u65e5\u672c.txt"]


@pytest.mark.parametrize("content", NO_UPLOADS.values(), ids=NO_UPLOADS)
async def test_what_is_no_upload(api: httpx.AsyncClient, content: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = await api.post(PLACE, content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_another_form_is_no_upload(api: httpx.AsyncClient) -> None:
    for form in ({"json": {"files": ["a"]}}, {"data": {"files": "a"}}, {"files": {"other": ("a", b"a")}}):
        answer = await api.post(PLACE, **form)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_a_name_and_no_place(api: httpx.AsyncClient, tmp_path: Path, name: str) -> None:
    await filled(api)
    before = {path for path in tmp_path.rglob("*") if "data" not in path.parts}
    answer = await api.post(PLACE, files=file_named(name))
    assert answer.status_code in {202, 422}
    if answer.status_code == 202:
        assert (await wait_for_end(api, answer))["state"] in {"succeeded", "failed"}
    assert {path for path in tmp_path.rglob("*") if "data" not in path.parts} == before


async def test_the_same_upload_again_is_the_same_job(api: httpx.AsyncClient) -> None:
    await filled(api)
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nText.\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Idempotency-Key": "k"}
    first, second = [await api.post(PLACE, content=body, headers=headers) for _ in range(2)]
    assert first.status_code == 202 and second.content == first.content
    assert second.headers["location"] == first.headers["location"]
    assert len((await api.get("/jobs")).json()["jobs"]) == 1
