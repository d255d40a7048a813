"""Which files are found below a folder, under which names, and what text they turn out to hold."""

import codecs
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import ConspectusError, TooLarge, UnreadableFile, UnsupportedContent
from conspectus.ports import FoundFile, ParsedFile
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()
GERMAN = "Die Häuser am Fluss sind größer als früher, und die Straße ist schöner geworden.\n"
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю.\n" * 5


def write_files(folder: Path, *file_names: str) -> None:
    for name in file_names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}", encoding="utf-8")


def list_names(*paths: Path, files: LocalFiles = FILES) -> list[str]:
    return [file.name for file in files.discover(paths)]


def parse(path: Path, files: LocalFiles = FILES) -> ParsedFile:
    return files.parse(FoundFile(path, path.name, 0))


def parse_bytes(folder: Path, content: bytes, name: str = "file") -> ParsedFile:
    (folder / name).write_bytes(content)
    return parse(folder / name)


def test_files_come_by_name_from_all_levels(tmp_path: Path) -> None:
    write_files(tmp_path, "b.md", "a/z.txt", "a/b/c.py", "c", "é.md")
    assert list_names(tmp_path) == ["a/b/c.py", "a/z.txt", "b.md", "c", "é.md"]
    assert list_names(tmp_path / "a" / "z.txt") == ["z.txt"]


def test_hidden_and_generated_folders_are_left_out(tmp_path: Path) -> None:
    write_files(
        tmp_path, ".git/config", ".hidden/a.md", ".env", "node_modules/x/readme.md", "__pycache__/a.txt"
    )
    write_files(tmp_path, "env/pyvenv.cfg", "env/lib/a.py", "kept/a.md")
    assert list_names(tmp_path) == ["kept/a.md"]
    assert list_names(tmp_path / ".hidden") == ["a.md"]
    assert list_names(tmp_path / ".env") == [".env"]


def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, "repo/docs/a.md", "repo/docs/a.log", "repo/docs/keep.log", "repo/docs/build/b.md")
    write_files(
        tmp_path, "repo/docs/deep/a.tmp", "repo/docs/deep/keep.md", "repo/docs/secret.md", "repo/docs/own.md"
    )
    write_files(tmp_path, ".gitignore", "repo/.git/info/exclude", "repo/docs/deep/.gitignore")
    (tmp_path / ".gitignore").write_text("*", encoding="utf-8")
    (tmp_path / "repo" / ".git" / "info" / "exclude").write_text("secret.md\n", encoding="utf-8")
    (tmp_path / "repo" / ".gitignore").write_bytes(
        b"\xef\xbb\xbf*.log\r\nbuild/\n*.md~\n\xff\n/own.md\na\\\n"
    )
    (tmp_path / "repo" / "docs" / ".gitignore").write_text("!keep.log\n*.tmp\n/deep/*.md", encoding="utf-8")
    (tmp_path / "repo" / "docs" / "deep" / ".gitignore").write_text("!keep.md", encoding="utf-8")
    expected = ["a.md", "deep/keep.md", "keep.log", "own.md"]
    assert list_names(tmp_path / "repo" / "docs") == expected
    assert list_names(tmp_path / "repo") == [f"docs/{name}" for name in expected]


def test_what_is_named_is_found_although_it_is_ignored(tmp_path: Path) -> None:
    write_files(tmp_path, ".git/HEAD", "build/b.md", "build/deep/c.md", "a.md")
    (tmp_path / ".gitignore").write_text("build/\na.md\n", encoding="utf-8")
    assert list_names(tmp_path) == []
    assert list_names(tmp_path / "a.md", tmp_path / "build") == ["a.md", "b.md", "deep/c.md"]
    assert list_names(tmp_path / "build" / "deep") == ["c.md"]


def test_rules_that_cannot_be_read_ignore_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, "a.md", ".gitignore/b.md", ".git/info/exclude/c.md")
    assert list_names(tmp_path) == ["a.md"]


def test_a_large_file_of_an_unsupported_kind_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "film.bin").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(100))
    with pytest.raises(UnsupportedContent):
        parse(tmp_path / "film.bin", LocalFiles(Settings(max_file_bytes=50)))


def test_a_loop_of_links_is_entered_once(tmp_path: Path) -> None:
    write_files(tmp_path, "a/one.md", "b/two.md")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "across").symlink_to(tmp_path / "a")
    (tmp_path / "round").symlink_to("round")
    assert [name for name in list_names(tmp_path) if name.endswith(".md")] == ["a/one.md", "b/two.md"]


def test_links_that_leave_the_named_folder_are_not_followed(tmp_path: Path) -> None:
    write_files(tmp_path, "inside/a.md", "outside/secret.md")
    (tmp_path / "inside" / "folder").symlink_to(tmp_path / "outside")
    (tmp_path / "inside" / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (tmp_path / "inside" / "near.md").symlink_to(tmp_path / "inside" / "a.md")
    assert list_names(tmp_path / "inside") == ["a.md", "near.md"]
    (tmp_path / "named").symlink_to(tmp_path / "inside")
    assert list_names(tmp_path / "named") == ["a.md", "near.md"]


def test_a_path_that_does_not_exist_fails_before_anything_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, "a.md")
    with pytest.raises(UnreadableFile, match=r"missing\.md: does not exist"):
        FILES.discover([tmp_path / "a.md", tmp_path / "missing.md"])


def test_a_broken_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to(tmp_path / "nothing")
    [file] = FILES.discover([tmp_path])
    with pytest.raises(UnreadableFile, match=r"gone\.md"):
        FILES.parse(file)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    write_files(tmp_path, "locked/a.md", "open/b.md")
    (tmp_path / "locked").chmod(0)
    try:
        files = list(FILES.discover([tmp_path]))
        assert [file.name for file in files] == ["locked", "open/b.md"]
        with pytest.raises(UnreadableFile, match="locked"):
            FILES.parse(files[0])
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_a_folder_in_the_place_of_a_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="a folder that cannot be listed"):
        parse(tmp_path)


def test_pipes_sockets_and_devices_are_never_opened(tmp_path: Path) -> None:
    write_files(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.md"))
        assert list_names(tmp_path) == ["a.md"]
        with pytest.raises(UnreadableFile, match="a socket"):
            parse(tmp_path / "s.md")
    with pytest.raises(UnreadableFile, match="a pipe"):
        parse(tmp_path / "pipe.md")
    with pytest.raises(UnreadableFile, match="a device"):
        parse(Path("/dev/zero"))


def test_equal_names_from_two_folders_both_arrive_once(tmp_path: Path) -> None:
    write_files(tmp_path, "one/a.md", "two/a.md")
    listed = list_names(tmp_path / "one", tmp_path / "two", tmp_path / "one")
    assert listed[:2] == ["a.md", (tmp_path / "two" / "a.md").as_posix()]
    assert len(listed) == len(set(listed))


def test_limits_are_named(tmp_path: Path) -> None:
    write_files(tmp_path, "a/b/c/d.md", "e.md")
    with pytest.raises(TooLarge, match="2 levels"):
        list_names(tmp_path, files=LocalFiles(Settings(max_folder_depth=1)))
    with pytest.raises(TooLarge, match="2 files"):
        list_names(tmp_path, files=LocalFiles(Settings(max_files=1)))
    with pytest.raises(TooLarge, match="limit is 5") as caught:
        parse(tmp_path / "e.md", LocalFiles(Settings(max_file_bytes=5)))
    assert (caught.value.size, caught.value.limit) == (12, 5)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(TooLarge, match="100000000 bytes"):
        parse(tmp_path / "huge.txt")


@pytest.mark.parametrize(
    ("content", "description"),
    [
        (b"%PDF-1.7\n", "a damaged PDF"),
        (b"PK\x03\x04rest", "a damaged ZIP archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook that cannot be read"),
        (b"\x89PNG\r\n\x1a\n", "a damaged picture|a picture, whose text"),
        (b"\x00\x00\x00\x20ftypisom", "MP4"),
        (b"\x00\x01\x02\x03" * 50, "binary data"),
        (b"text with\x00a zero", "binary data"),
        (bytes(range(1, 32)) * 20, "binary data"),
        (b"\xff\xfe\x00", "binary data"),
    ],
)
def test_binary_files_are_refused_with_what_they_are(
    tmp_path: Path, content: bytes, description: str
) -> None:
    with pytest.raises(UnreadableFile, match=description):
        parse_bytes(tmp_path, content)


def test_bytes_are_read_by_the_rules_of_files(tmp_path: Path) -> None:
    page = b"<h1>Title</h1><p>some text</p>"
    [document] = FILES.parse_bytes(page, "a.html").documents
    assert (document.title, document.key) == ("Title", "a.html")
    assert document.metadata == {"path": "a.html", "media_type": "text/html"}
    assert document.text == parse_bytes(tmp_path, page, "a.html").documents[0].text
    with pytest.raises(UnreadableFile, match=r"a damaged picture|a picture, whose text"):
        FILES.parse_bytes(b"\x89PNG\r\n\x1a\n", "a.md")
    with pytest.raises(TooLarge, match="limit is 3"):
        LocalFiles(Settings(max_file_bytes=3)).parse_bytes(b"text", "a.md")


@pytest.mark.parametrize(
    ("content", "charset", "encoding"),
    [
        ("šest".encode("cp1250"), "windows-1250", "cp1250"),
        ("žluť".encode("iso8859_2"), ' "ISO-8859-2" ', "iso8859_2"),
        (GERMAN.encode("cp1252"), "latin1", "cp1252"),
        (GERMAN.encode(), "utf-16", "utf-8"),
        (GERMAN.encode(), "no such charset", "utf-8"),
        (GERMAN.encode(), "base64", "utf-8"),
        (GERMAN.encode(), "a\0b", "utf-8"),
        (GERMAN.encode("utf-8-sig"), "cp1252", "utf-8-sig"),
        (GERMAN.encode("cp1252"), "utf-8", "cp1252"),
    ],
)
def test_what_the_sender_says_counts_where_it_is_possible(
    content: bytes, charset: str, encoding: str
) -> None:
    parsed = FILES.parse_bytes(content, "a.txt", charset=charset)
    assert parsed.encoding == encoding
    assert parsed.documents[0].text == content.decode(encoding)


def test_a_zero_character_in_a_text_file_is_replaced_and_said(tmp_path: Path) -> None:
    parsed = parse_bytes(tmp_path, b"# Title\n\nsome\x00text that goes on", "a.md")
    assert parsed.documents[0].text == "# Title\n\nsome\ufffdtext that goes on"
    assert parsed.notice == "1 zero characters were replaced"


def test_an_empty_file_is_no_document_and_a_notice(tmp_path: Path) -> None:
    for content in (b"", b"\n \n", codecs.BOM_UTF8, codecs.BOM_UTF16_LE):
        parsed = parse_bytes(tmp_path, content)
        assert (parsed.documents, parsed.notice) == ((), "the file is empty")


def test_newlines_become_one_kind(tmp_path: Path) -> None:
    parsed = parse_bytes(tmp_path, "a\r\nb\rc\n\u2028d".encode(), "a.txt")
    assert parsed.documents[0].text == "a\nb\nc\n\u2028d"
    assert (parsed.encoding, parsed.notice) == ("utf-8", None)


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"]
)
def test_unicode_is_read_with_and_without_a_mark(tmp_path: Path, codec: str) -> None:
    assert parse_bytes(tmp_path, GERMAN.encode(codec)).documents[0].text == GERMAN


def test_a_guessed_encoding_is_named_and_a_declared_one_is_not(tmp_path: Path) -> None:
    guessed = parse_bytes(tmp_path, GERMAN.encode("cp1252"), "a.txt")
    assert guessed.notice == "the encoding was guessed: cp1252"
    declared = parse_bytes(tmp_path, b"# -*- coding: koi8-r -*-\n" + RUSSIAN.encode("koi8_r"), "a.py")
    assert (declared.encoding, declared.notice) == ("koi8_r", None)


def test_a_wrong_or_unknown_declaration_does_not_stop_reading(tmp_path: Path) -> None:
    for label in ("no-such-charset", "rot13", "base64", "utf-16", "idna"):
        page = f'<meta charset="{label}"><p>{GERMAN}</p>'
        assert "Häuser" in parse_bytes(tmp_path, page.encode("cp1252"), "a.html").documents[0].text


def test_a_few_damaged_characters_do_not_turn_a_file_into_another_encoding(tmp_path: Path) -> None:
    parsed = parse_bytes(tmp_path, (RUSSIAN * 20).encode() + b"\xd0", "a.txt")
    assert parsed.documents[0].text == RUSSIAN * 20 + "\ufffd"
    assert parsed.notice == "1 characters are not valid utf-8 and were replaced"


@given(
    st.binary(max_size=300), st.sampled_from(["a", "a.md", "a.html", "a.json", "a.jsonl", "a.srt", "a.vtt"])
)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    try:
        parsed = parse(path)
    except ConspectusError:
        return
    assert parsed.documents or parsed.notice or parsed.has_captions
    for document in parsed.documents:
        assert document.text.strip() and "\0" not in document.text
        document.text.encode()


TABLE = "| Berth | Fee |\n| --- | --- |\n| Heron | 150 |\n| Gull | 90 |"
SHEET_PAGE = "<html><table><tr><th>Berth</th><th>Fee</th></tr><tr><td>Heron<td>150</tr><tr><td>Gull<td>90"


@pytest.mark.parametrize("name", ["fees.xls", "fees.xlsx", "fees.ods"])
@pytest.mark.parametrize(
    "content",
    [
        SHEET_PAGE.encode(),
        b"Berth\tFee\nHeron\t150\nGull\t90\n",
        b"Berth;Fee\nHeron;150\nGull;90\n",
        "Berth\tFee\nHeron\t150\nGull\t90\n".encode("utf-16"),
    ],
)
def test_a_page_or_table_exported_as_a_workbook_is_a_table(name: str, content: bytes) -> None:
    parsed = LocalFiles().parse_bytes(content, name)
    assert parsed.documents[0].text.strip() == TABLE
    assert "is no workbook, in spite of its name" in str(parsed.notice)


def test_a_web_page_without_a_suffix_is_read_as_one() -> None:
    [document] = (
        LocalFiles().parse_bytes(b"<!DOCTYPE html><title>Fees</title><p>150 crowns", "fees").documents
    )
    assert (document.title, document.text) == ("Fees", "150 crowns")
    [document] = LocalFiles().parse_bytes(b"<html> is how a page begins", "notes.txt").documents
    assert document.text == "<html> is how a page begins"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("winmail.dat", b"\x78\x9f\x3e\x22\x01\x00", "TNEF .* save the message as .msg or .eml"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\x00", "7z archive .* unpack it, and add what is inside"),
        ("a.rar", b"Rar!\x1a\x07\x01\x00", "RAR archive .* unpack it, and add what is inside"),
        ("a.rtf", b"{\\rtf1 text}", "RTF .* save it as DOCX"),
        ("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "photo in HEIC .* save it as JPEG"),
        ("a.avif", b"\0\0\0\x1cftypavif\0\0\0\0", "photo in AVIF .* save it as JPEG"),
    ],
)
def test_other_archives_are_skipped_by_name(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(UnsupportedContent, match=reason):
        LocalFiles().parse_bytes(data, name)
