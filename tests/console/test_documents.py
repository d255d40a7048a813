"""Documents: what is stored, on the text that it comes from; adding and deleting."""

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect

import conspectus
from tests.console.conftest import WIDTHS, Opened, Site, running_site, scrolls_sideways, violations
from tests.support.embedders import POISON, PickyEmbedder

TEXT = "# Keys\n\nThe keys are in the vault. " + "The vault is in the cellar. " * 200


@contextmanager
def running_site_with_notes(folder: Path) -> Iterator[Site]:
    """One document in the collection `notes`, on a server that needs no key."""
    with conspectus.open(folder, settings=conspectus.Settings(embedder="none")) as engine:
        document = conspectus.NewDocument(text=TEXT, title="Keys 🔑", key="keys.md")
        engine.add([document], collection="notes", source="handbook")
    with running_site(folder, "--no-auth") as site:
        yield site


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Site]:
    with running_site_with_notes(tmp_path) as site:
        yield site


@pytest.fixture(scope="module")
def unchanged_notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Notes that no test changes."""
    with running_site_with_notes(tmp_path_factory.mktemp("kept")) as site:
        yield site


def open_document(page: Page, name: str) -> None:
    page.get_by_role("link", name=re.compile(name)).click()
    expect(page.get_by_role("article", name="Text of the document")).to_be_visible()


def test_passages_are_marked_on_the_text(visit: Opened, unchanged_notes: Site) -> None:
    page = visit(unchanged_notes, "/documents?collection=notes")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 document in 1 source of notes")
    open_document(page, "keys.md")
    page.get_by_role("region", name="Passages").get_by_role("button").first.click()
    marked = page.locator("mark")
    expect(marked).to_contain_text("The keys are in the vault.")
    page.keyboard.press("j")
    expect(marked).not_to_contain_text("The keys are in the vault.")
    page.reload()
    expect(marked).to_contain_text("cellar")
    assert "".join(page.locator(".marked > *").all_text_contents()) == TEXT


def test_an_address_marks_the_cited_characters(visit: Opened, unchanged_notes: Site) -> None:
    page = visit(unchanged_notes, "/documents?collection=notes")
    open_document(page, "keys.md")
    document = page.url
    start = TEXT.index("keys are")
    page.goto(f"{document}?start={start}&end={start + len('keys are')}")
    expect(page.locator("mark")).to_have_text("keys are")
    expect(page.get_by_text(f"Marked: characters {start} to {start + 8}")).to_be_visible()
    assert "".join(page.locator(".marked > *").all_text_contents()) == TEXT
    page.get_by_role("region", name="Passages").get_by_role("button").first.click()
    expect(page.locator("mark")).to_contain_text("The keys are in the vault.")
    page.goto(f"{document}?start={len(TEXT) + 9}&end={len(TEXT) + 12}")
    expect(page.get_by_role("status")).to_contain_text("The cited place is gone")


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Fees of 2026, which supersede those of 2025 and amend the rules."""
    folder = tmp_path_factory.mktemp("related")
    texts = {
        "fees-2026.md": "---\nSupersedes: Fees 2025\n---\n# Fees 2026\n\nA berth costs 12.",
        "fees-2025.md": "# Fees 2025\n\nA berth costs 10.",
        "rules.md": "# Rules\n\nNo fires.",
    }
    with conspectus.open(folder, settings=conspectus.Settings(embedder="none")) as engine:
        documents = [conspectus.NewDocument(text, key=key) for key, text in texts.items()]
        newer, _, rules = engine.add(documents, collection="notes", source="harbour")
        engine.documents.relate(newer.id, rules.id, kind="amends")
    with running_site(folder, "--no-auth") as site:
        yield site


def test_a_superseded_document_names_its_successor(visit: Opened, related: Site) -> None:
    page = visit(related, "/documents?collection=notes")
    open_document(page, "fees-2025.md")
    expect(page.locator("main")).to_contain_text("superseded by fees-2026.md")
    page.get_by_role("link", name="fees-2026.md").first.click()
    relations = page.get_by_role("region", name="Relations").get_by_role("listitem")
    expect(relations.filter(has_text="supersedes")).to_contain_text("fees-2025.md")
    expect(relations.filter(has_text="amends")).to_contain_text("rules.md")
    assert violations(page) == []


def test_a_file_is_uploaded_with_progress(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("button", name="Add documents").click()
    upload = {"name": "alarm.md", "mimeType": "text/markdown", "buffer": b"# Alarm\n\nThe code is secret."}
    page.get_by_label("Files", exact=True).set_input_files([upload])
    page.get_by_role("button", name="Add 1 file").click()
    expect(page.get_by_role("status").filter(has_text="succeeded")).to_be_visible()
    expect(page.get_by_role("region", name="Preview")).to_be_hidden()
    expect(page.get_by_role("link", name=re.compile("alarm.md"))).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 documents in 2 sources of notes")


ROWS = b"Berth,Fee\n" + b"".join(b"Heron-%d,%d\n" % (number, 1_000 + number) for number in range(400))
CHOSEN: list[FilePayload] = [
    {"name": "alarm.md", "mimeType": "text/markdown", "buffer": b"# Alarm\n\nThe code is <b>secret</b>."},
    {"name": "fees.csv", "mimeType": "text/csv", "buffer": ROWS},
    {"name": "logo.gif", "mimeType": "image/gif", "buffer": b"GIF89a"},
    {"name": "empty.txt", "mimeType": "text/plain", "buffer": b" "},
]


@pytest.mark.parametrize("narrow", WIDTHS)
def test_files_are_shown_as_chunks_before_they_are_added(visit: Opened, notes: Site, narrow: bool) -> None:
    page = visit(notes, "/documents?collection=notes", narrow=narrow)
    page.get_by_role("button", name="Add documents").click()
    page.get_by_label("Files", exact=True).set_input_files(CHOSEN)
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_role("status")).to_contain_text(
        re.compile(r"2 documents, \d+ chunks, [\d,]+ tokens")
    )
    expect(preview).to_contain_text("logo.gif: a GIF image is not supported")
    expect(preview).to_contain_text("empty.txt: the file is empty")
    preview.get_by_text("alarm.md").click()
    expect(preview.get_by_label("Chunk 1 of Alarm", exact=True)).to_have_text(
        "# Alarm\n\nThe code is <b>secret</b>."
    )
    preview.get_by_text("fees.csv").first.click()
    expect(preview).to_contain_text("below the header of its table")
    assert violations(page) == []
    assert not scrolls_sideways(page)
    preview.get_by_role("button", name="Cancel").click()
    expect(preview).to_be_hidden()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 document in 1 source of notes")


def packed_gif() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("guide.md", "# Guide")
        archive.writestr("logo.gif", b"GIF89a")
    return buffer.getvalue()


UPLOADED: list[FilePayload] = [
    *CHOSEN,
    {"name": "pack.zip", "mimeType": "application/zip", "buffer": packed_gif()},
    {"name": "broken.docx", "mimeType": "application/zip", "buffer": b"PK\x03\x04 nothing"},
]


def test_the_panel_of_an_upload_and_its_job_name_what_was_not_read(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("button", name="Add documents").click()
    page.get_by_label("Files", exact=True).set_input_files(UPLOADED)
    page.get_by_role("button", name="Add 6 files").click()
    panel = page.get_by_role("status").filter(has_text="partly, 2 failed of 6")
    expect(panel.get_by_role("listitem")).to_have_text(
        [
            "logo.gif: a GIF image is not supported",
            re.compile("broken.docx: a damaged ZIP archive"),
            "pack.zip/logo.gif: a GIF image is not supported",
            "empty.txt: the file is empty",
        ]
    )
    assert violations(page) == []
    page.goto(f"{notes.address}/console/operations")
    needs = page.get_by_role("list", name="What needs you")
    needs.get_by_role("link", name="1 job did a part of its work only").click()
    job = page.get_by_role("list", name="Jobs")
    expect(job).to_contain_text("partly, 2 failed of 6")
    expect(job).to_contain_text("Cannot be readlogo.gif: a GIF image is not supported")
    expect(job).to_contain_text("Skippedpack.zip/logo.gif: a GIF image is not supported")
    expect(job).to_contain_text("Noticesempty.txt: the file is empty")
    assert violations(page) == []


def test_a_folder_is_sent_in_batches_with_its_paths_as_keys(
    visit: Opened, tmp_path: Path, notes: Site
) -> None:
    pages = tmp_path / "handbook" / "pages"
    pages.mkdir(parents=True)
    for number in range(60):
        (pages / f"{number}.md").write_text(f"# Page {number}\n\nA boat is at berth {number}.")
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("button", name="Add documents").click()
    page.get_by_label("Folder").set_input_files(tmp_path / "handbook")
    expect(page.get_by_text(re.compile("The first 20 files: 20 documents"))).to_be_visible()
    page.get_by_role("button", name="Add 60 files").click()
    upload = page.get_by_role("region", name="Upload of 60 files")
    expect(upload.get_by_text("60 files of 60 sent")).to_be_visible()
    expect(upload.get_by_text(re.compile("succeeded 50 of 50"))).to_be_visible()
    expect(upload.get_by_text(re.compile("succeeded 10 of 10"))).to_be_visible()
    expect(page.get_by_role("link", name="handbook/pages/59.md")).to_be_visible()


def test_a_cancelled_upload_is_resumed_with_what_it_did_not_store(
    visit: Opened, tmp_path: Path, notes: Site
) -> None:
    pages = tmp_path / "handbook"
    pages.mkdir()
    for number in range(70):
        (pages / f"{number}.md").write_text(f"# Page {number}\n\n" + "A boat is moored at the quay. " * 600)
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("button", name="Add documents").click()
    page.get_by_label("Folder").set_input_files(pages)
    page.get_by_role("button", name="Add 70 files").click()
    upload = page.get_by_role("region", name="Upload of 70 files")
    upload.get_by_role("button", name="Cancel").click()
    resume = upload.get_by_role("button", name=re.compile("Resume with [0-9]+ files"))
    resume.click()
    expect(upload.get_by_text("70 files of 70 sent")).to_be_visible()
    expect(resume).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_contain_text("71 documents")


def test_files_of_one_path_are_named_and_added_once(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("button", name="Add documents").click()
    payload: FilePayload = {"name": "alarm.md", "mimeType": "text/markdown", "buffer": b"# Alarm"}
    page.get_by_label("Files", exact=True).set_input_files([payload, payload])
    expect(page.get_by_text("Left out: another file has this path")).to_be_visible()
    expect(page.get_by_role("button", name="Add 1 file")).to_be_visible()


def test_a_deletion_leaves_a_receipt(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents?collection=notes")
    open_document(page, "keys.md")
    page.get_by_role("button", name="Delete …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("Purge")).check()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog).to_contain_text("purgedyes")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("There are no documents here.")).to_be_visible()


@pytest.mark.slow
def test_a_dialog_that_deletes_stays_until_its_receipt(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("button", name="Delete this collection …").click()
    paused_routes: list[Route] = []
    page.route("**/api/v1/collections/notes*", lambda route: paused_routes.append(route))
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.get_by_role("button", name="Close")).to_be_disabled()
    page.keyboard.press("Escape")
    page.mouse.click(1, 1)
    expect(dialog.get_by_role("button", name="Deleting …")).to_be_visible()
    paused_routes[0].continue_()
    expect(page.get_by_role("dialog", name="Receipt")).to_contain_text("collectionnotes")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Nothing is stored yet")).to_be_visible()


@pytest.mark.slow
def test_a_source_is_deleted_after_a_preview_of_its_documents(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents?collection=notes")
    page.get_by_role("group", name="Sources").get_by_role("button", name="handbook").click()
    page.get_by_role("button", name="Delete this source …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("documents1")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog).to_contain_text("purgedno")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("0 documents in 0 sources of notes")


@pytest.mark.slow
def test_a_connection_is_synced_and_deleted_with_what_it_brought(visit: Opened, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("one", "two"):
        (pages / f"{name}.md").write_text(f"# {name}\n\nThis is page {name}.")
    with conspectus.open(tmp_path / "store", settings=conspectus.Settings(embedder="none")) as engine:
        engine.add([conspectus.NewDocument(text=TEXT, key="own.md")], collection="notes")
        engine.connections.create("wiki", "markdown", {"path": str(pages)}, collection="notes")
    with running_site(tmp_path / "store", "--no-auth") as site:
        page = visit(site, "/documents?collection=notes")
        page.get_by_role("button", name="Sync now").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("3 documents in 2 sources of notes")
        page.get_by_role("button", name="Delete …").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("documents2")
        dialog.get_by_role("button", name="Delete", exact=True).click()
        expect(dialog).to_contain_text("purgedno")
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("1 document in 1 source of notes")


@pytest.mark.slow
def test_scrolling_loads_the_next_pages(visit: Opened, tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=conspectus.Settings(embedder="none")) as engine:
        texts = (conspectus.NewDocument(text=f"Page {n}.", key=f"{n}.md") for n in range(1100))
        engine.add(texts, collection="notes")
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/documents?collection=notes")
        for count in (500, 1000):
            expect(page.get_by_text(f"The first {count:,} of 1,100")).to_be_visible()
            assert page.locator(".document-row").count() < 50
            page.get_by_role("list", name="Documents").evaluate("list => list.scrollTo(0, 1e6)")
        expect(page.locator("[aria-setsize='1100']").first).to_be_visible()


@pytest.mark.slow
def test_what_needs_you_leads_to_the_documents_that_failed(visit: Opened, tmp_path: Path) -> None:
    with conspectus.open(tmp_path, embedder=PickyEmbedder()) as engine:
        texts = [conspectus.NewDocument(text=text, key=text) for text in ("good", POISON, "fine")]
        engine.add(texts, collection="notes", wait=True)
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/operations")
        page.get_by_role("link", name="1 document of notes failed").click()
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text("1 failed document in 1 source of notes")
        expect(page.locator(".document-row")).to_have_text([re.compile(f"{POISON}.*failed")])
        page.get_by_label("State", exact=True).select_option("")
        expect(heading).to_have_text("3 documents in 1 source of notes")
        assert violations(page) == []


def test_collections_are_made_and_deleted(visit: Opened, notes: Site) -> None:
    page = visit(notes, "/documents")
    page.get_by_role("button", name="New collection …").click()
    page.get_by_label("Name of the collection").fill("drafts")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("0 documents in 0 sources of drafts")
    page.get_by_role("button", name="Delete this collection …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("dialog", name="Receipt")).to_contain_text("collectiondrafts")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("of notes")


def test_a_folder_is_connected_and_synced(visit: Opened, notes: Site, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").write_text("# Apples\n\nThey are red.", encoding="utf-8")
    page = visit(notes, "/documents")
    page.get_by_text("Connect a repository, a wiki or a folder").click()
    page.get_by_label("Kind of connection").select_option("Folder of Markdown on the server")
    page.get_by_label("Name of the connection").fill("fruit")
    page.get_by_label("Absolute path of the folder").fill(str(tmp_path / "pages"))
    page.get_by_role("button", name="Connect and sync").click()
    expect(page.locator(".document-row", has_text="Apples")).to_be_visible()
    expect(page.locator(".connection", has_text="fruit")).to_contain_text("synced")


@pytest.mark.slow
def test_a_document_that_is_not_there_says_no_more(visit: Opened, unchanged_notes: Site) -> None:
    page = visit(unchanged_notes, "/documents/nothing")
    expect(page.get_by_role("heading", name="Nothing has this address")).to_be_visible()


def test_an_empty_store_says_how_to_fill_it(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/documents")
    expect(page.get_by_role("heading", name="Nothing is stored yet")).to_be_visible()
    assert violations(page) == []


@pytest.mark.slow
def test_the_first_collection_is_created(visit: Opened, tmp_path: Path) -> None:
    with running_site(tmp_path, "--no-auth") as site:
        page = visit(site, "/documents")
        page.get_by_label("Name of the collection").fill("notes")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("0 documents in 0 sources of notes")
        expect(page.get_by_role("region", name="Add documents")).to_be_visible()


@pytest.mark.parametrize("narrow", WIDTHS)
def test_it_is_accessible_at_any_width(visit: Opened, unchanged_notes: Site, narrow: bool) -> None:
    page = visit(unchanged_notes, "/documents?collection=notes", narrow=narrow)
    page.get_by_role("button", name="Add documents").click()
    assert violations(page) == []
    assert not scrolls_sideways(page)
    open_document(page, "keys.md")
    page.locator(".passage-row").first.click()
    assert violations(page) == []
    assert not scrolls_sideways(page)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Ten thousand documents with titles, some of them hostile, in two sources."""
    folder = tmp_path_factory.mktemp("library")
    with conspectus.open(folder, settings=conspectus.Settings(embedder="none")) as engine:
        pages = [
            conspectus.NewDocument("A page.", title=f"Page {number:05}", key=f"pages/{number:05}.md")
            for number in range(9_996)
        ]
        engine.add(pages, collection="library", source="pages")
        hostile = [
            "<img src=x onerror=alert(1)> backup",
            "\u202egnp.exe backup",
            "backup " * 60,
            "Ärger mit BACKUP",
        ]
        engine.add(
            [
                conspectus.NewDocument("B" * 50, title=title, key=f"{at}.md")
                for at, title in enumerate(hostile)
            ],
            collection="library",
            source="notes",
        )
    with running_site(folder, "--no-auth") as site:
        yield site


@pytest.mark.parametrize("narrow", WIDTHS)
def test_documents_are_searched_sorted_and_filtered(visit: Opened, library: Site, narrow: bool) -> None:
    page = visit(library, "/documents?collection=library", narrow=narrow)
    rows = page.get_by_role("list", name="Documents").get_by_role("listitem")
    expect(page.get_by_role("heading", level=1)).to_have_text("10,000 documents in 2 sources of library")
    page.get_by_label("Search titles, keys and file names").fill("BackUp")
    expect(page.get_by_role("heading", level=1)).to_have_text("4 matching documents in 2 sources of library")
    expect(rows).to_have_count(4)
    expect(page).to_have_url(re.compile("words=BackUp"))
    page.get_by_role("heading", level=1).click()
    assert violations(page) == []
    assert not scrolls_sideways(page)
    page.get_by_label("Sort by").select_option("title")
    expect(rows.first).to_contain_text("<img src=x onerror=alert(1)> backup")
    page.reload()
    expect(rows.first).to_contain_text("<img src=x onerror=alert(1)> backup")
    page.get_by_role("button", name="Remove the filter “BackUp”").click()
    page.get_by_label("Sort by").select_option("-title")
    expect(rows.first).to_contain_text("gnp.exe backup")
    page.get_by_label("Search titles, keys and file names").fill("pages/0999")
    expect(rows).to_have_count(6)
    expect(rows.first).to_contain_text("Page 09995")
    page.get_by_label("Time").select_option("1")
    page.get_by_label("Type").select_option("application/pdf")
    expect(page.get_by_text("No document matches")).to_be_visible()
    page.get_by_role("heading", level=1).click()
    assert violations(page) == []
