"""Binary files made to do harm, each at the cost of one error; and children that die or are killed."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.errors import ConspectusError, TooLarge, UnreadableFile
from conspectus.ports import FoundFile, ParsedFile
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.parser_children import Children
from tests.office_samples import (
    docx,
    epub,
    heading,
    lines,
    paragraph,
    pdf,
    pptx,
    row,
    shape,
    xlsx,
    zipped,
)
from tests.repetitions import tries
from tests.waiting import blocking_until

LIMITS = Settings(parse_timeout_seconds=20, parse_max_memory_bytes=600_000_000, max_unpacked_bytes=50_000_000)
FILES = LocalFiles(LIMITS)
SOUND = {
    "a.docx": docx(heading("Guide") + paragraph("Some text.") * 20),
    "a.pptx": pptx([shape("Title", placeholder="title") + shape("one", "two", placeholder="body")]),
    "a.xlsx": xlsx({"One": row(1, "Name", "1")}),
    "a.epub": epub({"a": "<h1>One</h1><p>text</p>"}),
    "a.pdf": pdf(lines("Some text."), lines("more"), bookmarks=[("more", 1)]),
    "a.eml": b"From: a@b.c\nSubject: Hi\n\nSome text.\n",
}
SLOW = pdf(b"BT /F1 9 Tf 72 720 Td " + b"(Hello World) Tj 0 -1 Td " * 1_500_000 + b" ET")
LAUGHS = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PROBE = """
import socket, subprocess, sys
from conspectus.sources.files import parser_process
from conspectus.sources.files.extract import Refused

def probe(data, unpacked):
    said = []
    acts = (
        socket.socket, lambda: open("/etc/hosts"), lambda: open("/tmp/x", "w"),
        lambda: subprocess.run(["/bin/true"]), lambda: socket.create_connection(("127.0.0.1", 9)),
        lambda: bytearray(700_000_000),
    )
    for act in acts:
        try:
            act()
            said.append("done")
        except OSError:
            said.append("OSError")
        except MemoryError:
            said.append("MemoryError")
    raise Refused(" ".join(said))

parser_process.READERS = {"probe": probe}
parser_process.main()
"""


def refusal_of(data: bytes, name: str = "a.docx", files: LocalFiles = FILES) -> str:
    """Why a file is not taken; the files stay able to read another."""
    with pytest.raises(UnreadableFile) as caught:
        files.parse_bytes(data, name)
    assert files.parse_bytes(SOUND["a.docx"], "b.docx").documents
    return caught.value.reason


def parse(data: bytes, name: str) -> ParsedFile | ConspectusError:
    try:
        return FILES.parse_bytes(data, name)
    except ConspectusError as error:
        return error


def reader_processes() -> set[int]:
    """The readers that this process has started and that still run."""
    processes = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            ours = path.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
            if ours and b"parser_process" in (path.parent / "cmdline").read_bytes():
                processes.add(int(path.parent.name))
        except OSError:
            continue
    return processes


@pytest.mark.parametrize(
    ("doctype", "body"),
    [
        (f'<!DOCTYPE x [<!ENTITY e0 "ha">{LAUGHS}]>', "&e9;"),
        ('<!DOCTYPE x [<!ENTITY e0 "ha">]>', "&e0;" * 1_000),
        ('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "&e;"),
        ('<!DOCTYPE x [<!ENTITY % e SYSTEM "http://127.0.0.1:9/e.dtd"> %e;]>', "text"),
    ],
    ids=["laughs", "entities", "a file of ours", "an address"],
)
def test_entities_are_never_expanded(doctype: str, body: str) -> None:
    assert "entit" in refusal_of(docx(paragraph(body), doctype=doctype)).lower()


def test_nesting_without_end() -> None:
    deep = "<w:ins>" * 100_000 + paragraph("x") + "</w:ins>" * 100_000
    assert "depth" in refusal_of(docx(deep))
    tables = "<w:tbl><w:tr><w:tc><w:p/></w:tc><w:tc>" * 70 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 70
    [document] = FILES.parse_bytes(docx(tables), "a.docx").documents
    assert document.text.count("\\") < 1_000


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xml"
    secret.write_text("<a>secret</a>")
    assert "main part is missing" in refusal_of(docx("", main=f"../../../../../..{secret}"))
    names = (f"../../../../../..{tmp_path}/new.xml", f"{tmp_path}/new.xml", "C:\\new.xml", "..\\..\\new.xml")
    traps = dict.fromkeys(names, "<a/>")
    [document] = FILES.parse_bytes(docx(paragraph("text"), parts=traps), "a.docx").documents
    assert document.text == "text"
    assert list(tmp_path.iterdir()) == [secret]


def test_what_unpacks_to_too_much_is_not_unpacked() -> None:
    for name, data in {"a.docx": docx(" " * 60_000_000), "a.xlsx": xlsx({"One": " " * 60_000_000})}.items():
        with pytest.raises(TooLarge, match="the limit is 50000000"):
            FILES.parse_bytes(data, name)
    spread = docx(paragraph("x"), parts={f"word/part{n}.xml": "" for n in range(20_001)})
    assert "parts, more than 20000" in refusal_of(spread)


def wide_table() -> bytes:
    """A document whose merged cells have long texts: 18 MB of text."""
    wide = f'<w:tc><w:tcPr><w:gridSpan w:val="100"/></w:tcPr>{paragraph("y" * 100_000)}</w:tc>'
    return docx(f"<w:tbl>{f'<w:tr>{wide}{wide}</w:tr>' * 90}</w:tbl>")


def test_a_wide_merged_cell_with_a_long_text_is_not_repeated() -> None:
    [document] = FILES.parse_bytes(wide_table(), "a.docx").documents
    assert document.text.count("y") == 90 * 2 * 100_000


def test_a_stray_cell_far_beyond_a_table_is_read_in_little_memory() -> None:
    far = '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    tight = LocalFiles(replace(LIMITS, parse_max_memory_bytes=200_000_000))
    [document] = tight.parse_bytes(xlsx({"One": row(1, "1") + far}), "a.xlsx").documents
    assert document.text.count("2") == 1


def test_what_needs_too_much_memory_or_time_is_stopped() -> None:
    tight = LocalFiles(replace(LIMITS, parse_max_memory_bytes=150_000_000))
    assert tight.parse_bytes(docx(paragraph("y")), "a.docx").documents[0].text == "y"
    assert "bytes of memory" in refusal_of(wide_table(), "a.docx", tight)
    hasty = LocalFiles(replace(LIMITS, parse_timeout_seconds=1, parse_max_memory_bytes=4_000_000_000))
    assert "more than 1 seconds" in refusal_of(SLOW, "a.pdf", hasty)


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (pdf(lines("x"), count=2_000_000_000), "a.pdf", None),
        (pdf(lines("x")).replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]"), "a.pdf", "a damaged PDF|no text"),
        (b"%PDF-1.7\n" + b"[" * 1_000_000, "a.pdf", "a damaged PDF"),
        (b"%PDF-1.7\n" + b"<</A " * 500_000, "a.pdf", "a damaged PDF"),
        (COMPOUND + b"\xff" * 100_000, "a.xls", "cannot be read"),
        (COMPOUND + bytes(504) + "EncryptedPackage".encode("utf-16-le"), "a", "password"),
        (COMPOUND + bytes(504) + "WordDocument".encode("utf-16-le"), "a", "unsupported format"),
        (zipped({"content.xml": "<a/>", "mimetype": "application/x.text"}), "a", "OpenDocument"),
        (b"PK\x03\x04" + b"\xff" * 100_000, "a.docx", "a damaged ZIP archive"),
    ],
)  # fmt: skip
def test_containers_that_lie(data: bytes, name: str, reason: str | None) -> None:
    parsed = parse(data, name)
    if reason is None:
        assert isinstance(parsed, ParsedFile) and parsed.documents
    else:
        assert isinstance(parsed, UnreadableFile)
        assert any(part in parsed.reason for part in reason.split("|")), parsed.reason


def test_an_encrypted_part_is_said_to_be_one() -> None:
    data = bytearray(SOUND["a.docx"])
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(mark)
        while start >= 0:
            data[start + offset] |= 1
            start = data.find(mark, start + 4)
    assert "password" in refusal_of(bytes(data))


@pytest.mark.parametrize("name", SOUND)
def test_a_file_cut_off_anywhere_is_read_or_refused(name: str) -> None:
    data = SOUND[name]
    outcomes = [parse(data[:end], name) for end in range(1, len(data), max(1, len(data) // 40))]
    assert all(parsed.documents or parsed.notice for parsed in outcomes if isinstance(parsed, ParsedFile))
    assert FILES.parse_bytes(data, name).documents


@settings(max_examples=tries(150))
@given(st.sampled_from(sorted(SOUND)), st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(name: str, data: st.DataObject) -> None:
    damaged = bytearray(SOUND[name])
    for position in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=8)):
        damaged[position] = data.draw(st.integers(0, 255))
    parsed = parse(bytes(damaged), name)
    assert not isinstance(parsed, ParsedFile) or parsed.documents or parsed.notice


def test_a_reader_can_open_nothing_and_have_no_more_memory() -> None:
    request = {
        "kind": "probe",
        "size": 0,
        "seconds": 5,
        "memory_bytes": 600_000_000,
        "unpacked": 9,
        "members": 10,
        "ratio": 10,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        input=json.dumps(request).encode() + b"\n",
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(done.stdout.removeprefix(b"ready\n")) == {"refused": "OSError " * 5 + "MemoryError"}


def test_one_child_reads_many_files_and_ends_with_its_files() -> None:
    gc.collect()
    before = reader_processes()
    files = LocalFiles(LIMITS)
    assert files.parse_bytes(SOUND["a.pdf"], "a.pdf").documents
    [child] = reader_processes() - before
    for name, data in SOUND.items():
        assert files.parse_bytes(data, name).documents
    refusal_of(b"%PDF-1.7\n", "a.pdf", files)
    assert reader_processes() - before == {child}
    del files
    gc.collect()
    assert reader_processes() == before


def test_a_child_that_is_killed_while_it_waits_is_replaced() -> None:
    files = LocalFiles(LIMITS)
    before = reader_processes()
    assert files.parse_bytes(SOUND["a.pdf"], "a.pdf").documents
    for child in reader_processes() - before:
        os.kill(child, signal.SIGKILL)
    assert files.parse_bytes(SOUND["a.pdf"], "a.pdf").documents


def test_a_child_that_dies_over_a_file_costs_that_file() -> None:
    files, reasons, before = LocalFiles(LIMITS), [], reader_processes()

    def read() -> None:
        with pytest.raises(UnreadableFile) as caught:
            files.parse_bytes(SLOW, "a.pdf")
        reasons.append(caught.value.reason)

    reading = threading.Thread(target=read)
    reading.start()
    blocking_until(lambda: reader_processes() - before)
    os.kill(*reader_processes() - before, signal.SIGKILL)
    reading.join()
    assert "SIGKILL" in reasons[0]
    assert files.parse_bytes(SOUND["a.pdf"], "a.pdf").documents


def test_a_reader_without_memory_says_so() -> None:
    children_ = Children(Settings(parse_timeout_seconds=5, parse_max_memory_bytes=1_000_000))
    with pytest.raises(UnreadableFile, match=r"memory|reader"):
        children_.read("pdf", SOUND["a.pdf"] + bytes(20_000_000), "a.pdf")


@pytest.mark.data
def test_pdfs_that_broke_other_programs(evaluation: Callable[[str], Path]) -> None:
    read, reasons = 0, []
    for path in sorted(evaluation("pdf_hostile").rglob("*.pdf")):
        try:
            [document] = FILES.parse(FoundFile(path, path.name, 0)).documents
            assert document.text.strip() and document.places[0].page == 1
            read += 1
        except UnreadableFile as error:
            reasons.append(error.reason)
    assert read >= 75
    assert {"is encrypted with a password"} < set(reasons)
    assert not any("reader" in reason for reason in reasons)
