"""Jobs that ingest web pages from a local server."""

import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from tests.files import holding
from tests.support.web_server import Answer, ScriptedServer, redirect

import conspectus
from conspectus.engine import Engine
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.jobs import Job
from conspectus.model.records import Document
from conspectus.settings import Settings

SETTINGS = replace(Settings(), embedder="none", fetch_allowed_networks="127.0.0.1", job_backoff_ms=1)
PAGE = b"<html><head><title>Printers</title></head><body><h1>Printers</h1><p>%s</p></body></html>"
HTML = Answer(PAGE % b"Turn it off and on again. " * 5, type="text/html")
SECRET = "s3cr3t-that-must-not-stay"


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a?b#c%20 ü"


@pytest.fixture
async def engine(path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(path, settings=SETTINGS) as opened:
        yield opened


async def ingest_url(engine: Engine, url: str, **fields: object) -> Job:
    job = await engine.jobs.ingest_url(url, **fields)  # type: ignore[arg-type]
    assert job.state == "queued"
    return await engine.jobs.wait(job.id, timeout=60)


async def list_documents(engine: Engine) -> tuple[Document, ...]:
    return (await engine.documents.list()).documents


async def test_a_page_becomes_a_document_with_its_title(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/help/printers"] = HTML
    job = await ingest_url(engine, f"{server.base}/help/printers")
    assert (job.state, job.done, job.total, job.attempts) == ("succeeded", 3, 3, 1)
    assert job.result is not None and job.result["added"] == 1
    [document] = await list_documents(engine)
    assert (document.title, document.key) == ("Printers", f"{server.base}/help/printers")
    assert document.metadata == {"url": f"{server.base}/help/printers", "content_type": "text/html"}
    assert (await engine.retrieve("turn it off")).hits[0].document.id == document.id
    assert job.started is not None and job.finished is not None and job.started <= job.finished


async def test_an_archive_is_read_with_all_inside(engine: Engine, server: ScriptedServer) -> None:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("menu.md", "# Abstract\n\nSoup.")
        archive.writestr("logo.gif", b"GIF89a")
    server.answers["/pack"] = Answer(target.getvalue(), type="application/zip")
    job = await ingest_url(engine, f"{server.base}/pack")
    assert job.result is not None and job.result["added"] == 1
    assert "logo.gif: a GIF image is not supported" in str(job.result["notice"])
    [document] = await list_documents(engine)
    assert (document.title, document.key) == ("Abstract", f"{server.base}/pack")


async def test_one_domain_is_one_source(engine: Engine, server: ScriptedServer) -> None:
    server.answers |= {"/a": HTML, "/b": Answer(b"plain text")}
    first, second = [await ingest_url(engine, f"{server.base}{path}") for path in ("/a", "/b")]
    [source] = await engine.collections.list_sources()
    assert (source.name, source.kind) == (server.base.removeprefix("http://"), "web")
    assert first.source == second.source == source.id
    assert await engine.documents.count() == 2


async def test_the_same_content_makes_no_second_document(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/a"] = [HTML, HTML, Answer(PAGE % b"Buy a new one.", type="text/html")]
    outcomes = []
    for _ in range(3):
        job = await ingest_url(engine, f"{server.base}/a")
        assert job.result is not None
        outcomes.append(
            [name for name in ("added", "unchanged", "updated", "replaced") if job.result.get(name)]
        )
        assert await engine.documents.count() == 1
    assert outcomes == [["added"], ["unchanged"], ["replaced"]]
    assert not (await engine.retrieve("off and on again")).hits
    assert (await engine.retrieve("buy a new one")).hits


async def test_an_emptied_page_leaves_nothing_behind(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/a"] = [Answer(b"something"), Answer(b"")]
    for expected in (1, 0):
        assert (await ingest_url(engine, f"{server.base}/a")).state == "succeeded"
        assert await engine.documents.count() == expected


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "video/mp4"])
async def test_what_holds_no_text_is_cancelled(engine: Engine, server: ScriptedServer, kind: str) -> None:
    server.answers["/a"] = Answer(b"\x00\x01", type=kind)
    job = await ingest_url(engine, f"{server.base}/a")
    assert (job.state, job.code, job.attempts, server.count()) == ("cancelled", "unsupported_content", 1, 1)
    assert await engine.collections.list_sources() == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [("application/json", b'{"a": "printers"}'), ("text/plain", b"printers"), (None, b"x y")],
)
async def test_text_of_any_kind_is_stored(
    engine: Engine, server: ScriptedServer, kind: str | None, body: bytes
) -> None:
    server.answers["/data"] = Answer(body, type=kind)
    assert (await ingest_url(engine, f"{server.base}/data")).state == "succeeded"
    [document] = await list_documents(engine)
    assert await engine.documents.get_text(document.id) == body.decode()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_what_is_not_there_is_asked_for_once(
    engine: Engine, server: ScriptedServer, status: int
) -> None:
    server.answers["/a"] = Answer(b"no", status)
    job = await ingest_url(engine, f"{server.base}/a")
    assert (job.state, job.code, job.attempts, server.count()) == ("cancelled", "fetch_failed", 1, 1)
    assert job.error is not None and str(status) in job.error


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_server_in_trouble_is_asked_three_times(
    engine: Engine, server: ScriptedServer, status: int
) -> None:
    server.answers["/a"] = Answer(b"no", status)
    job = await ingest_url(engine, f"{server.base}/a")
    assert (job.state, job.code, job.attempts, server.count()) == ("failed", "fetch_failed", 3, 3)
    report = await engine.jobs.report()
    assert (report.rates["1h"].failure_rate, report.rates["1h"].retry_rate) == (100.0, 100.0)


async def test_a_server_that_recovers_is_forgiven(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/a"] = [Answer(b"no", 500), HTML]
    job = await ingest_url(engine, f"{server.base}/a")
    assert (job.state, job.attempts, job.code, job.error) == ("succeeded", 2, None, None)


async def test_chunks_have_the_size_asked_for(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/a"] = Answer(b"word " * 100)
    job = await ingest_url(engine, f"{server.base}/a", chunk_size=100, overlap=10)
    assert job.result is not None and job.result["chunks"] == (await list_documents(engine))[0].chunks
    assert (await list_documents(engine))[0].chunks > 4
    again = await ingest_url(engine, f"{server.base}/a", chunk_size=1000)
    assert again.result is not None and again.result["chunks"] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("method", "PROPFIND"), ("method", ""), ("chunk_size", 0), ("overlap", 2000), ("overlap", -1),
        ("source", ""), ("size", 7), ("headers", {"a": 1}),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_refused_at_once(engine: Engine, field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        await engine.jobs.ingest_url("http://127.0.0.1/", **{field: value})  # type: ignore[arg-type]
    assert (await engine.jobs.list()).jobs == ()


@pytest.mark.parametrize("url", ["", "no address", "ftp://example.org/", "file:///etc/passwd"])
async def test_what_is_no_address_is_refused_at_once(engine: Engine, url: str) -> None:
    with pytest.raises(InvalidInput):
        await engine.jobs.ingest_url(url)


async def test_a_password_in_an_address_is_refused(engine: Engine, path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await engine.jobs.ingest_url(f"http://me:{SECRET}@127.0.0.1/")
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("target", ["http://127.0.0.2:9/", "http://169.254.169.254/latest/"])
async def test_no_redirect_leads_inside(engine: Engine, server: ScriptedServer, target: str) -> None:
    server.answers["/a"] = redirect(target)
    job = await ingest_url(engine, f"{server.base}/a")
    assert (job.state, job.code, job.attempts) == ("failed", "forbidden_address", 1)


async def test_headers_reach_the_server_and_no_file_keeps_them(path: Path, server: ScriptedServer) -> None:
    server.answers["/a"] = HTML
    headers = {"Authorization": f"Bearer {SECRET}"}
    async with conspectus.open(path, settings=SETTINGS) as engine:
        job = await ingest_url(engine, f"{server.base}/a", headers=headers)
        assert job.state == "succeeded" and SECRET not in repr(job)
        assert holding(path, SECRET) == []
        with pytest.raises(Conflict):
            await engine.jobs.retry(job.id)
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert holding(path, SECRET) == []
    assert list((path / "secrets").iterdir()) == []


async def test_headers_are_kept_from_other_accounts_meanwhile(path: Path, server: ScriptedServer) -> None:
    server.answers["/a"] = Answer(b"x", delay=60)
    async with conspectus.open(path, settings=replace(SETTINGS, job_grace_seconds=0)) as engine:
        job = await engine.jobs.ingest_url(f"{server.base}/a?key={SECRET}", headers={"X-Key": SECRET})
        assert SECRET not in repr(await engine.jobs.get(job.id))
        [file] = holding(path, SECRET)
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert (await engine.jobs.cancel(job.id)).state == "cancelled"
        assert holding(path, SECRET) == []


async def test_a_query_is_part_of_the_page_but_not_of_the_job(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/a"] = lambda request: Answer(f"page {request.query['id']}".encode())
    jobs = [await ingest_url(engine, f"{server.base}/a?id={number}") for number in (1, 2)]
    assert [job.title for job in jobs] == [f"{server.base}/a"] * 2
    assert "id=1" not in repr(jobs)
    assert await engine.documents.count() == 2


async def test_a_failed_page_can_be_tried_again(engine: Engine, server: ScriptedServer) -> None:
    server.answers["/a"] = [*[Answer(b"no", 500)] * 3, HTML]
    job = await ingest_url(engine, f"{server.base}/a")
    assert job.state == "failed"
    again = await engine.jobs.retry(job.id)
    assert (again.id, again.state, again.error) == (job.id, "queued", None)
    done = await engine.jobs.wait(job.id, timeout=60)
    assert (done.state, done.attempts) == ("succeeded", 4)
    with pytest.raises(Conflict):
        await engine.jobs.retry(job.id)
    with pytest.raises(NotFound):
        await engine.jobs.retry("no such job")


async def test_a_file_of_captions_at_an_address_becomes_a_stream(
    engine: Engine, server: ScriptedServer
) -> None:
    text = b"WEBVTT\n\n00:01.000 --> 00:02.000\nWelcome to the harbor.\n"
    server.answers["/talks/one.vtt"] = Answer(text, type="text/vtt")
    for outcome in ("added", "unchanged"):
        job = await ingest_url(engine, f"{server.base}/talks/one.vtt")
        assert job.state == "succeeded" and job.result is not None and job.result[outcome] == 1
    [stream] = await engine.streams.list()
    assert stream.source.name.endswith("/talks/one")
    [caption] = (await engine.streams.list_captions(stream=stream.source.name)).captions
    assert caption.start == 1.0
