"""Folders into a store: what is new, what changed, what is gone, and what could not be read."""

import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest
from tests.office_samples import docx, paragraph, pptx, shape
from tests.outlook_samples import BODY, FILE_BYTES, FILE_NAME, SUBJECT, outlook_message
from tests.support.engine_samples import AnyEngine
from tests.support.served import served

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound, UnreadableFile
from conspectus.web.app import application

SETTINGS = replace(Settings(), embedder="none", max_metadata_bytes=500)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "a.md").write_text("# Alpha\n\nabout alpacas", encoding="utf-8")
    (notes / "deep" / "b.txt").write_text("about bears", encoding="utf-8")
    return notes


async def list_keys(engine: Engine) -> set[str]:
    return {document.key for document in (await engine.documents.list(limit=1000)).documents}


async def test_files_are_added_skipped_when_unchanged_and_replaced_when_changed(
    engine: Engine, folder: Path
) -> None:
    first = await engine.documents.add_files([folder])
    again = await engine.documents.add_files([folder])
    (folder / "a.md").write_text("# Alpha\n\nabout anacondas", encoding="utf-8")
    changed = await engine.documents.add_files([folder])
    assert (first.added, again.unchanged, again.added) == (2, 2, 0)
    assert (changed.replaced, changed.unchanged) == (1, 1)
    assert (await engine.retrieve("alpacas", retrievers=("keyword",))).outcome == "no_match"
    assert (await engine.retrieve("anacondas", retrievers=("keyword",))).hits[0].document.title == "Alpha"


async def test_only_prune_removes_what_is_gone(engine: Engine, folder: Path) -> None:
    await engine.documents.add_files([folder])
    (folder / "deep" / "b.txt").unlink()
    unpruned = await engine.documents.add_files([folder])
    assert (unpruned.pruned, unpruned.missing) == (0, 1)
    pruned = await engine.documents.add_files([folder], prune=True)
    assert (pruned.pruned, pruned.missing) == (1, 0)
    assert await list_keys(engine) == {"a.md"}
    assert (await engine.documents.add_files([folder])).missing == 0


async def test_only_files_of_the_folder_that_is_added_are_missing(engine: Engine, folder: Path) -> None:
    notes = folder.parent / "notes.md"
    notes.write_text("about notes", encoding="utf-8")
    await engine.documents.add_files([folder, notes], source="both")
    for file in (folder / "a.md", notes):
        file.rename(file.with_name("z.md"))
    report = await engine.documents.add_files([folder], source="both")
    assert (report.added, report.missing) == (1, 1)
    named = await engine.documents.add_files([folder / "z.md"], source="both")
    assert (named.added, named.missing) == (1, 0)


async def test_pruning_one_folder_leaves_the_others_alone(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("another alpha", encoding="utf-8")
    await engine.documents.add_files([folder, other], source="both")
    (other / "a.md").unlink()
    await engine.documents.add_files([folder], source="both", prune=True)
    assert await list_keys(engine) == {"notes/a.md", "notes/deep/b.txt", "other/a.md"}


async def test_what_cannot_be_read_this_time_is_not_pruned(engine: Engine, folder: Path) -> None:
    await engine.documents.add_files([folder])
    (folder / "a.md").write_bytes(b"%PDF-1.7\x00\x00")
    report = await engine.documents.add_files([folder], prune=True)
    assert [failure.code for failure in report.failures] == ["unreadable_file"]
    assert report.pruned == 0
    assert (await engine.retrieve("alpacas", retrievers=("keyword",))).outcome == "found"


async def test_a_record_that_left_its_file_is_deleted_without_prune(engine: Engine, folder: Path) -> None:
    lines = [json.dumps({"id": name, "text": f"about {name}"}) for name in ("cats", "dogs")]
    (folder / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    await engine.documents.add_files([folder])
    (folder / "c.jsonl").write_text(lines[0], encoding="utf-8")
    assert (await engine.documents.add_files([folder])).pruned == 1
    assert {"c.jsonl#cats"} == {key for key in await list_keys(engine) if key.startswith("c.jsonl")}


async def test_one_bad_record_fails_alone(engine: Engine, folder: Path) -> None:
    rows = [{"id": "good", "text": "fine"}, {"id": "bad", "text": "fine too", "extra": "x" * 1000}]
    (folder / "c.json").write_text(json.dumps(rows), encoding="utf-8")
    report = await engine.documents.add_files([folder])
    assert [failure.code for failure in report.failures] == ["too_large"]
    assert "c.json#bad" in report.failures[0].name
    assert await list_keys(engine) == {"a.md", "deep/b.txt", "c.json#good"}


async def test_a_path_that_does_not_exist_is_an_error_and_none_is_a_no_op(
    engine: Engine, folder: Path
) -> None:
    with pytest.raises(UnreadableFile):
        await engine.documents.add_files([folder, folder / "missing"])
    assert await engine.documents.count() == 0
    assert (await engine.documents.add_files([])).added == 0


async def test_files_named_one_by_one_are_like_their_folder(engine: Engine, folder: Path) -> None:
    rows = folder / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"id": n, "text": f"row {n}"}) for n in range(3)), encoding="utf-8")
    files = [folder / "a.md", folder / "deep" / "b.txt", rows]
    first = await engine.documents.add_files(files, source="one")
    assert (first.added, len(await list_keys(engine))) == (5, 5)
    rows.write_text(json.dumps({"id": 1, "text": "row 1"}), encoding="utf-8")
    second = await engine.documents.add_files([rows], source="one")
    assert (second.unchanged, second.pruned) == (1, 2)
    assert len(await list_keys(engine)) == 3
    third = await engine.documents.add_files(files, source="one", prune=True)
    assert (third.unchanged, third.pruned) == (3, 0)


@pytest.mark.parametrize("query", ["menu", "menu.md", "kitchen", "abstract", "what is on the kitchen menu?"])
async def test_heading_file_and_folder_find_a_document(engine: Engine, folder: Path, query: str) -> None:
    for name in ("kitchen/menu.md", "office/plan.md", "office/report.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("# Abstract\n\nSoup and bread.", encoding="utf-8")
    await engine.documents.add_files([folder])
    hits = (await engine.retrieve(query, limit=4)).hits
    keys = [hit.document.key for hit in hits]
    assert "kitchen/menu.md" in (keys if query == "abstract" else keys[:1])


async def test_a_file_that_moved_is_found_by_its_new_place(engine: Engine, folder: Path) -> None:
    await engine.add(conspectus.NewDocument("Soup.", key="k", metadata={"path": "old.md"}))
    await engine.add(conspectus.NewDocument("Soup.", key="k", metadata={"path": "fresh.md"}))
    assert [hit.document.key for hit in (await engine.retrieve("fresh")).hits] == ["k"]
    assert (await engine.retrieve("old")).outcome == "no_match"


async def test_an_archive_is_a_folder(engine: Engine, folder: Path) -> None:
    records = '[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]'
    pack(folder, {"in/a.md": "# A", "in/b.md": "# B", "in/c.gif": b"GIF89a", "in/d.json": records})
    first = await engine.documents.add_files([folder / "pack.zip"])
    again = await engine.documents.add_files([folder / "pack.zip"])
    assert (first.added, first.skipped, again.unchanged, again.added) == (4, 1, 4, 0)
    assert first.skipped_files == {"pack.zip/in/c.gif": "a GIF image is not supported"}
    pack(folder, {"in/a.md": "# A, changed", "in/d.json": '[{"id": 1, "text": "one"}]'})
    newer = await engine.documents.add_files([folder / "pack.zip"])
    assert (newer.replaced, newer.unchanged, newer.pruned) == (1, 1, 2)
    assert await list_keys(engine) == {"pack.zip/in/a.md", "pack.zip/in/d.json#1"}


async def test_subtitles_in_an_archive_become_a_stream(engine: Engine, folder: Path) -> None:
    pack(folder, {"in/talk.srt": "1\n00:00:01,000 --> 00:00:04,000\nWelcome to the harbor.\n"})
    report = await engine.documents.add_files([folder / "pack.zip"])
    again = await engine.documents.add_files([folder / "pack.zip"])
    assert report.streams == {next(iter(report.streams)): 1} and again.unchanged == 1
    assert [document.kind for document in (await engine.documents.list()).documents] == ["caption"]


async def test_a_member_that_cannot_be_read_fails_alone_and_what_was_stored_of_it_stays(
    engine: Engine, folder: Path
) -> None:
    pack(folder, {"a.json": '[{"id": 1, "text": "one"}]', "b.md": "# B"})
    await engine.documents.add_files([folder])
    pack(folder, {"a.json": "{", "b.md": "# B"})
    report = await engine.documents.add_files([folder], prune=True)
    [failure] = report.failures
    assert failure.name == str(folder / "pack.zip" / "a.json") and report.pruned == 0
    (folder / "pack.zip").unlink()
    assert (await engine.documents.add_files([folder], prune=True)).pruned == 2


def write_mail(path: Path, *attachments: tuple[str, bytes]) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Offer"
    message.set_content("Please find the offer attached.")
    for name, data in attachments:
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    path.write_bytes(bytes(message))


ATTACHMENTS = (("prices.csv", b"part,price\npump,90\n"), ("terms.md", b"# Terms"))


def write_container(folder: Path, suffix: str, count: int) -> Path:
    """A mail, a mailbox with one, or an archive with one, that has so many attachments."""
    mail, path = folder.parent / "offer.eml", folder / f"box{suffix}"
    write_mail(mail, *ATTACHMENTS[:count])
    match suffix:
        case ".eml":
            path.write_bytes(mail.read_bytes())
        case ".mbox":
            path.write_bytes(b"From ann@example.org Mon Jan 1 10:00:00 2024\n" + mail.read_bytes())
        case ".zip":
            pack(folder, {"offer.eml": mail.read_bytes()})
            (folder / "pack.zip").rename(path)
        case ".msg":
            files = [{FILE_NAME: name, FILE_BYTES: data} for name, data in ATTACHMENTS[:count]]
            path.write_bytes(outlook_message({SUBJECT: "Offer", BODY: "See the offer."}, files=files))
    return path


CONTAINERS = [".eml", ".msg", ".mbox", ".zip"]


async def count_attachments(engine: Engine) -> int:
    return len([key for key in await list_keys(engine) if key.endswith((".csv", ".md"))])


@pytest.mark.parametrize("suffix", CONTAINERS)
@pytest.mark.parametrize("purge", [False, True])
async def test_the_attachments_of_a_message_are_deleted_with_it(
    engine: Engine, tmp_path: Path, suffix: str, purge: bool
) -> None:
    folder = tmp_path / "mails"
    folder.mkdir()
    await engine.documents.add_files([write_container(folder, suffix, 2)])
    assert await count_attachments(engine) == 2
    [mail] = [one for one in (await engine.documents.list()).documents if one.kind == "message"]
    receipt = await engine.documents.delete(mail.id, purge=purge)
    assert (receipt.documents, receipt.purged, await list_keys(engine)) == (3, purge, set())


@pytest.mark.parametrize("suffix", CONTAINERS)
async def test_an_attachment_that_a_message_lost_is_deleted_when_it_is_read_again(
    engine: Engine, tmp_path: Path, suffix: str
) -> None:
    folder = tmp_path / "mails"
    folder.mkdir()
    await engine.documents.add_files([write_container(folder, suffix, 2)])
    for count in (1, 0):
        report = await engine.documents.add_files([write_container(folder, suffix, count)])
        assert report.pruned >= 1
        assert await count_attachments(engine) == count


@pytest.mark.parametrize("suffix", [".mbox", ".zip"])
async def test_the_key_of_an_archive_deletes_all_that_it_holds(
    engine: Engine, tmp_path: Path, suffix: str
) -> None:
    folder = tmp_path / "mails"
    folder.mkdir()
    (folder / f"box{suffix}.md").write_text("no part of it")
    write_container(folder, suffix, 2)
    await engine.documents.add_files([folder], source="mails")
    receipt = await engine.documents.delete_by_key(f"mails/box{suffix}", source="mails", purge=True)
    assert (receipt.documents, receipt.purged) == (3, True)
    assert await list_keys(engine) == {f"mails/box{suffix}.md"}
    with pytest.raises(NotFound):
        await engine.documents.delete_by_key(f"mails/box{suffix}", source="mails")


async def test_files_in_an_archive_that_is_attached_are_deleted_with_the_message(
    engine: Engine, tmp_path: Path
) -> None:
    pack(tmp_path, {"a.md": "# A"})
    write_mail(tmp_path / "offer.eml", ("pack.zip", (tmp_path / "pack.zip").read_bytes()))
    await engine.documents.add_files([tmp_path / "offer.eml"])
    assert await list_keys(engine) == {"offer.eml", "offer.eml/pack.zip/a.md"}
    [mail] = [one for one in (await engine.documents.list()).documents if one.kind == "message"]
    assert (await engine.documents.delete(mail.id)).documents == 2


async def test_a_message_that_cannot_be_stored_names_its_attachments(engine: Engine, tmp_path: Path) -> None:
    message = EmailMessage()
    message["From"], message["To"] = "ann@example.org", ", ".join(f"person{n}@example.org" for n in range(50))
    message.set_content("Hello.")
    message.add_attachment("# Terms", filename="terms.md")
    (tmp_path / "offer.eml").write_bytes(bytes(message))
    report = await engine.documents.add_files([tmp_path / "offer.eml"])
    assert [failure.code for failure in report.failures] == ["too_large", "not_found"]


@asynccontextmanager
async def open_masking(folder: Path, *, is_remote: bool) -> AsyncIterator[AnyEngine]:
    """Open an engine that masks addresses, here or on a server."""
    settings = replace(Settings(), embedder="none", sensitive="emails=mask", log_level="critical")
    async with conspectus.open(folder, settings=settings) as engine:
        if not is_remote:
            yield engine
            return
        async with served(application(engine, settings)) as url, conspectus.connect(url) as remote:
            yield remote


@pytest.mark.parametrize("is_remote", [False, True])
async def test_a_file_whose_name_is_masked_is_not_pruned_while_it_is_there(
    tmp_path: Path, is_remote: bool
) -> None:
    (tmp_path / "in").mkdir()
    records = '[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]'
    letter, table = tmp_path / "in" / "ann@example.org.txt", tmp_path / "in" / "bo@example.org.json"
    letter.write_text("The boat is red.", encoding="utf-8")
    table.write_text(records, encoding="utf-8")
    async with open_masking(tmp_path / "store", is_remote=is_remote) as engine:
        first = await engine.documents.add_files([tmp_path / "in"])
        again = await engine.documents.add_files([tmp_path / "in"], prune=True)
        assert (first.added, again.unchanged, again.pruned) == (3, 3, 0)
        table.write_text("{", encoding="utf-8")
        broken = await engine.documents.add_files([tmp_path / "in"], prune=True)
        assert (len(broken.failures), broken.pruned) == (1, 0)
        letter.unlink()
        table.write_text(records, encoding="utf-8")
        assert (await engine.documents.add_files([tmp_path / "in"], prune=True)).pruned == 1


@pytest.mark.parametrize("is_remote", [False, True])
async def test_records_that_left_a_file_with_a_masked_name_are_deleted(
    tmp_path: Path, is_remote: bool
) -> None:
    (tmp_path / "in").mkdir()
    files = [tmp_path / "in" / f"{name}@example.org.json" for name in ("ann", "bo", "cy")]
    for file in files:
        file.write_text('[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]', encoding="utf-8")
    async with open_masking(tmp_path / "store", is_remote=is_remote) as engine:
        assert (await engine.documents.add_files([tmp_path / "in"])).added == 6
        files[0].write_text('[{"id": 2, "text": "two"}]', encoding="utf-8")
        files[1].unlink()
        again = await engine.documents.add_files([tmp_path / "in"])
        assert (again.unchanged, again.pruned, again.missing) == (3, 1, 2)
        keys = {document.key for document in (await engine.documents.list()).documents}
        assert keys == {*(f"{name}@example.org.json#{number}" for name in ("bo", "cy") for number in (1, 2)),
                        "ann@example.org.json#2"}  # fmt: skip
        assert (await engine.documents.add_files([tmp_path / "in"], prune=True)).pruned == 2


def pack(folder: Path, members: dict[str, str | bytes]) -> None:
    with zipfile.ZipFile(folder / "pack.zip", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


async def test_a_picture_without_a_description_is_found_by_its_caption(
    engine: Engine, tmp_path: Path
) -> None:
    caption, picture = "Figure 1: The lighthouse at dusk", "<p:pic><p:nvPicPr/></p:pic>"
    drawing = "<w:p><w:r><w:drawing/></w:r></w:p>"
    files = {
        "a.docx": docx(paragraph("Intro.") + drawing + paragraph(caption)),
        "b.pptx": pptx([shape("Harbor", placeholder="title") + picture + shape(caption)]),
        "c.html": f"<figure><img src='x.png'><figcaption>{caption}</figcaption></figure>".encode(),
        "d.md": f"# Harbor\n\n![](x.png)\n*{caption}*\n".encode(),
    }
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    await engine.documents.add_files([folder])
    hits = (await engine.search("lighthouse at dusk", limit=10)).hits
    assert {hit.document.key for hit in hits} == set(files)
