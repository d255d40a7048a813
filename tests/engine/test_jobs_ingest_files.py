"""Jobs that ingest files and sync folders."""

import subprocess
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PermissionDenied,
    StorageError,
    TooLarge,
    UnreadableFile,
)
from conspectus.model.access import Person, Principal
from conspectus.model.jobs import Job, Upload
from conspectus.settings import Settings

SETTINGS = replace(Settings(), embedder="none", job_backoff_ms=1, max_upload_files=4, max_file_bytes=1_000)
NOTE = Upload("note.md", b"# Note\n\nPrinters are in the cellar.\n")
PICTURE = Upload("logo.gif", b"GIF89a")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as opened:
        yield opened


async def ingest_files(engine: Engine, *files: Upload) -> Job:
    job = await engine.jobs.ingest_files(files)
    ended = await engine.jobs.wait(job.id, timeout=60)
    assert ended.result is not None
    return ended


async def sync_connection(engine: Engine, name: str) -> Job:
    return await engine.jobs.wait((await engine.connections.sync(name)).id, timeout=60)


async def list_keys(engine: Engine) -> list[str]:
    return sorted(document.key for document in (await engine.documents.list()).documents)


def run_git(folder: Path, *arguments: str) -> None:
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", "-C", str(folder), *named, *arguments], check=True)


async def test_files_become_documents_under_their_names(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "kept elsewhere").write_text("scanners", encoding="utf-8")
    job = await ingest_files(engine, NOTE, Upload("deep/ü.txt", tmp_path / "kept elsewhere"))
    assert (job.state, job.title, job.done, job.total) == ("succeeded", "2 files: note.md, …", 2, 2)
    assert await list_keys(engine) == ["deep/ü.txt", "note.md"]
    [source] = await engine.collections.list_sources()
    assert (source.name, source.kind, job.source) == ("uploads", "upload", source.id)
    assert str(tmp_path) not in repr((await engine.documents.list()).documents)
    assert list((tmp_path / "store" / "uploads").iterdir()) == []


async def test_the_same_file_again_changes_nothing(engine: Engine) -> None:
    first, again = await ingest_files(engine, NOTE), await ingest_files(engine, NOTE)
    assert first.result is not None and first.result["added"] == 1
    assert again.result is not None and again.result["unchanged"] == 1
    changed = await ingest_files(engine, replace(NOTE, data=b"# Note\n\nThey are in the attic.\n"))
    assert changed.result is not None and changed.result["replaced"] == 1
    assert not (await engine.retrieve("cellar")).hits
    assert await engine.documents.count() == 1


async def test_records_that_left_their_file_are_deleted(engine: Engine) -> None:
    rows = [b'{"id": %d, "text": "ticket number %d"}' % (number, number) for number in range(3)]
    await ingest_files(engine, NOTE, Upload("tickets.jsonl", b"\n".join(rows)))
    assert await engine.documents.count() == 4
    job = await ingest_files(engine, Upload("tickets.jsonl", rows[1]))
    assert job.result is not None and job.result["deleted"] == 2
    assert await engine.documents.count() == 2


async def test_a_file_that_fails_stops_no_other(engine: Engine) -> None:
    job = await ingest_files(engine, PICTURE, NOTE, Upload("broken.docx", b"PK\x03\x04 nothing"))
    assert (job.state, await list_keys(engine)) == ("succeeded", ["note.md"])
    assert job.result is not None
    failures = job.result["failures"]
    assert isinstance(failures, list)
    assert [failure["name"] for failure in failures if isinstance(failure, dict)] == [
        "logo.gif",
        "broken.docx",
    ]


async def test_notices_of_files_and_of_those_inside_them_are_in_the_result(engine: Engine) -> None:
    ragged = "Berth,Fee,Depth\nHeron,1\nGull,2,3\nTern,4,5,6\n"
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("fees.csv", ragged)
    files = {"empty.txt": b" ", "fees.csv": ragged.encode(), "p.zip": buffer.getvalue()}
    job = await ingest_files(engine, *(Upload(name, content) for name, content in files.items()))
    assert job.result is not None
    assert job.result["notices"] == {
        "empty.txt": "the file is empty",
        "fees.csv": "2 of 3 rows have more or fewer cells than the header",
        "p.zip/fees.csv": "2 of 3 rows have more or fewer cells than the header",
    }


async def test_an_archive_is_replaced_as_a_whole_but_for_what_cannot_be_read(engine: Engine) -> None:
    first = await ingest_files(engine, packed(a="# A", b="# B", c="# C"))
    again = await ingest_files(engine, packed(a="# A", b="# B", c="# C"))
    assert first.result is not None and (first.result["added"], first.result["skipped"]) == (3, 1)
    assert first.result["skipped_files"] == {"pack.zip/logo.gif": "a GIF image is not supported"}
    assert again.result is not None and again.result["unchanged"] == 3
    newer = await ingest_files(engine, packed(a="# A, changed", b="\x00" * 9), NOTE)
    assert newer.result is not None and (newer.result["replaced"], newer.result["deleted"]) == (1, 1)
    assert newer.result["failures"] == [
        {
            "name": "pack.zip/b.md",
            "code": "unreadable_file",
            "reason": "pack.zip/b.md: binary data, not text in any known encoding",
        }
    ]
    assert await list_keys(engine) == ["note.md", "pack.zip/a.md", "pack.zip/b.md"]


def packed(**texts: str) -> Upload:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("logo.gif", PICTURE.data if isinstance(PICTURE.data, bytes) else b"")
        for name, text in texts.items():
            archive.writestr(f"{name}.md", text)
    return Upload("pack.zip", target.getvalue())


async def test_where_every_file_fails_so_does_the_job(engine: Engine) -> None:
    job = await ingest_files(engine, PICTURE)
    assert (job.state, job.code) == ("cancelled", "unsupported_content")
    assert job.result is not None and job.result["failures"] != []
    with pytest.raises(Conflict):
        await engine.jobs.retry(job.id)


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ([], InvalidInput),
        ([NOTE] * 2, InvalidInput),
        ([Upload(f"{n}", b"x") for n in range(5)], InvalidInput),
        ([Upload("", b"x")], InvalidInput),
        ([Upload("a\x00b", b"x")], InvalidInput),
        ([Upload("big", b"x" * 1_001)], TooLarge),
        ([Upload("gone", Path("/nowhere/at/all"))], UnreadableFile),
    ],
)
async def test_what_cannot_be_taken_in_makes_no_job(
    engine: Engine, tmp_path: Path, files: list[Upload], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await engine.jobs.ingest_files(files)
    assert (await engine.jobs.list()).jobs == ()
    assert not (tmp_path / "store" / "uploads").exists()


async def test_a_file_that_cannot_be_copied_leaves_nothing_behind(engine: Engine, tmp_path: Path) -> None:
    for path, error in (("/proc/self", UnreadableFile), ("/proc/self/mem", StorageError)):
        with pytest.raises(error):
            await engine.jobs.ingest_files([NOTE, Upload("other", Path(path))])
    assert list((tmp_path / "store" / "uploads").iterdir()) == []
    assert (await engine.jobs.list()).jobs == ()


async def test_names_never_leave_the_folder(engine: Engine, tmp_path: Path) -> None:
    job = await ingest_files(engine, Upload("../../../etc/passwd.txt", b"not that one"))
    assert (job.state, await list_keys(engine)) == ("succeeded", ["../../../etc/passwd.txt"])
    assert not list(tmp_path.rglob("passwd*"))


async def test_a_folder_is_kept_in_step(engine: Engine, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    (pages / "team").mkdir(parents=True)
    (pages / "start.md").write_text("# Start\n\nhere\n", encoding="utf-8")
    (pages / "team" / "people.md").write_text("# People\n\nAnn\n", encoding="utf-8")
    (pages / "team" / "call.mp3").write_bytes(b"ID3")
    connection = await engine.connections.create("docs", "markdown", {"path": str(pages)})
    job = await sync_connection(engine, "docs")
    assert job.state == "succeeded" and job.result is not None and job.result["added"] == 2
    reason = "a connection reads Markdown only; add the file itself"
    assert (job.result["skipped"], job.result["skipped_files"]) == (1, {"team/call.mp3": reason})
    assert {source.name for source in await engine.collections.list_sources()} == {"docs", "docs/team"}
    assert {source.kind for source in await engine.collections.list_sources()} == {"wiki"}
    (pages / "team" / "people.md").unlink()
    job = await sync_connection(engine, "docs")
    assert job.result is not None and (job.result["deleted"], job.result["unchanged"]) == (1, 0)
    [after] = await engine.connections.list()
    assert (after.id, after.state, after.error, after.last_run is not None) == (
        connection.id,
        "complete",
        None,
        True,
    )
    receipt = await engine.connections.delete("docs", delete=True)
    assert (receipt.documents, await engine.documents.count(), await engine.connections.list()) == (1, 0, [])


@pytest.mark.parametrize(
    ("old", "new"), [("a.md", "b.md"), ("ops/a.md", "ops/b.md"), ("ops/a.md", "new/a.md")]
)
async def test_a_citation_names_the_path_that_a_page_has_now(
    engine: Engine, tmp_path: Path, old: str, new: str
) -> None:
    pages = tmp_path / "pages"
    for folder in (pages / "ops", pages / "new"):
        folder.mkdir(parents=True)
    (pages / old).write_text("# Printers\n\nThey are in the cellar.\n", encoding="utf-8")
    run_git(pages, "init", "--quiet")
    await engine.connections.create("folder", "markdown", {"path": str(pages)})
    await engine.connections.create("git", "git", {"address": str(pages)})
    for path in (old, new):
        if path == new:
            run_git(pages, "mv", old, new)
        run_git(pages, "add", "--all")
        run_git(pages, "commit", "--quiet", "--message", path)
        for name in ("folder", "git"):
            assert (await sync_connection(engine, name)).state == "succeeded"
        window = await engine.window("printers in the cellar", 500)
        assert [citation.location for citation in window.citations] == [path]
        assert window.text.startswith(f"[1] Printers ({path})")


async def test_a_folder_that_is_gone_is_an_error_and_nothing_is_deleted(
    engine: Engine, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "start.md").write_text("# Start\n\nhere\n", encoding="utf-8")
    await engine.connections.create("docs", "markdown", {"path": str(pages)})
    await sync_connection(engine, "docs")
    pages.rename(tmp_path / "elsewhere")
    job = await sync_connection(engine, "docs")
    assert (job.state, job.code, job.attempts) == ("failed", "fetch_failed", 3)
    [after] = await engine.connections.list()
    assert (after.state, after.error is not None, await engine.documents.count()) == ("error", True, 1)


async def test_who_may_connect(engine: Engine) -> None:
    """The machine's own files are for the owner of the store; the rest takes a manager."""
    wiki = await engine.collections.get_or_create("wiki")
    people = {}
    for name, role in (("ann", "manager"), ("bob", "editor")):
        user = await engine.people.create_user(name)
        await engine.access.grant("wiki", Principal("user", user.id), role)  # type: ignore[arg-type]
        people[name] = engine.as_person(Person(user.name, user.owner, user.id))
    address = {"address": "https://example.org/w/api.php"}
    web = {"address": "https://example.org/r.git"}
    with pytest.raises(InvalidInput, match="'address' is not an option of markdown"):
        await people["ann"].connections.create("files", "markdown", {"path": "/", **web}, collection=wiki.id)
    for options in ({"path": "/"}, {"address": "/etc"}, {"address": "ssh://host/x"}):
        connector = "markdown" if "path" in options else "git"
        with pytest.raises(PermissionDenied):
            await people["ann"].connections.create("files", connector, options, collection=wiki.id)
    with pytest.raises(PermissionDenied):
        await people["bob"].connections.create("w", "mediawiki", address, collection=wiki.id)
    connection = await people["ann"].connections.create("w", "mediawiki", address, collection=wiki.id)
    assert await people["bob"].connections.list(collection=wiki.id) == [connection]
    with pytest.raises(Conflict):
        await people["ann"].connections.create("w", "mediawiki", address, collection=wiki.id)
    with pytest.raises(NotFound):
        await people["ann"].connections.sync("nothing", collection=wiki.id)


@pytest.mark.parametrize("name", ["token", "apiKey", "api_key", "Password", "client_secret", "Authorization"])
async def test_no_secret_is_kept_with_a_connection(engine: Engine, name: str) -> None:
    with pytest.raises(InvalidInput):
        await engine.connections.create(
            "w", "mediawiki", {"address": "https://example.org/w/api.php", name: "x"}
        )
    assert await engine.connections.list() == []


@pytest.mark.parametrize(
    "address",
    [
        "https://ann:s3cr3t@example.org/r.git", "https://s3cr3t@example.org/r.git",
        "ssh://git:s3cr3t@example.org/r",
        "https://example.org/r.git?private=s3cr3t", " HTTPS://s3cr3t@example.org/",
    ],
)  # fmt: skip
async def test_no_secret_is_kept_in_an_address(engine: Engine, address: str) -> None:
    for connector in ("git", "mediawiki"):
        with pytest.raises(InvalidInput) as refusal:
            await engine.connections.create("w", connector, {"address": address})
        assert "s3cr3t" not in str(refusal.value)
    assert await engine.connections.list() == []


@pytest.mark.parametrize("address", ["ssh://git@example.org:22/r.git", "https://example.org/r.git"])
async def test_an_address_without_a_secret_is_kept(engine: Engine, address: str) -> None:
    connection = await engine.connections.create("w", "git", {"address": address})
    assert await engine.connections.list() == [connection]


CUES = (
    b"1\n00:00:01,000 --> 00:00:04,000\nWelcome to the harbor.\n\n2\n00:00:05,000 --> 00:00:08,000\nGulls.\n"
)
SEGMENTS = b'{"segments": [{"start": 0.5, "end": 2.0, "text": "Welcome to the harbor."}]}'


@pytest.mark.parametrize(("name", "data"), [("talk.srt", CUES), ("talk.json", SEGMENTS)])
async def test_an_upload_of_captions_becomes_a_stream_as_files_of_a_folder_do(
    engine: Engine, tmp_path: Path, name: str, data: bytes
) -> None:
    job = await ingest_files(engine, Upload(name, data), NOTE)
    assert job.state == "succeeded" and job.result is not None and job.result["streams"] == 1
    uploaded = (await engine.streams.list_captions(stream="talk")).captions
    (tmp_path / "talks").mkdir()
    (tmp_path / "talks" / name).write_bytes(data)
    await engine.collections.create("other")
    report = await engine.documents.add_files([tmp_path / "talks"], collection="other")
    added = (await engine.streams.list_captions(stream="talk", collection="other")).captions
    assert report.streams == {"talk": len(added)}
    assert [(caption.start, caption.text) for caption in uploaded] == [
        (caption.start, caption.text) for caption in added
    ]
    again = await ingest_files(engine, Upload(name, data))
    assert again.result is not None and again.result["unchanged"] == len(added)


async def test_subtitles_inside_an_upload_become_streams_and_broken_ones_are_named(engine: Engine) -> None:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("talk.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello there.\n")
        archive.writestr("empty.srt", b"no captions at all")
    job = await ingest_files(engine, Upload("pack.zip", target.getvalue()), Upload("bad.srt", b"nothing"))
    assert job.result is not None and job.result["streams"] == 1
    failures = job.result["failures"]
    assert isinstance(failures, list)
    names = [failure["name"] for failure in failures if isinstance(failure, dict)]
    assert names == ["pack.zip/empty.srt", "bad.srt"]
    [source] = [source for source in await engine.collections.list_sources() if source.kind == "stream"]
    assert source.name == "pack.zip/talk"


def mail(*attachments: tuple[str, str]) -> Upload:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Offer"
    message.set_content("Hello.")
    for name, text in attachments:
        message.add_attachment(text, filename=name)
    return Upload("offer.eml", bytes(message))


async def test_an_attachment_that_an_upload_lost_is_deleted(engine: Engine) -> None:
    await ingest_files(engine, mail(("a.md", "# A"), ("b.md", "# B")))
    assert await list_keys(engine) == ["offer.eml", "offer.eml/a.md", "offer.eml/b.md"]
    for attachments, keys in (([("b.md", "# B")], ["offer.eml", "offer.eml/b.md"]), ([], ["offer.eml"])):
        job = await ingest_files(engine, mail(*attachments))
        assert job.result is not None and job.result["deleted"] == 1
        assert await list_keys(engine) == keys


async def test_the_attachments_of_an_uploaded_message_are_deleted_with_it(engine: Engine) -> None:
    await ingest_files(engine, mail(("a.md", "# A")))
    receipt = await engine.documents.delete_by_key("offer.eml", source="uploads", purge=True)
    assert (receipt.documents, receipt.purged, await list_keys(engine)) == (2, True, [])
