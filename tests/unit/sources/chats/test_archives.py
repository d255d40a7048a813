"""What holds an export: archives and folders of every bad kind, and the limits that all are held to."""

import os
import struct
import zipfile
from pathlib import Path

import pytest
from tests.chat_exports import CHANNELS, discord, folder, only, posted, read, said, slack, zipped

from conspectus import bootstrap
from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.channels import ARCHIVE_KINDS, ArchiveKind
from conspectus.settings import Settings
from conspectus.sources.chats.archives import LocalArchives

FILES = slack(said("1.0", "kept"))


def read_texts(path: Path, archives: LocalArchives | None = None) -> list[str]:
    return [message.text for message in only((archives or LocalArchives()).read(path)).messages]


def test_the_limits_are_those_of_the_settings() -> None:
    settings = Settings(max_file_bytes=1)
    assert bootstrap.local_archives(settings).settings is settings


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"\x89PNG\r\n\x1a\n\0\0", b"some text\nand more\n", b"[1, 2]"]
)
def test_what_is_no_export_is_refused(tmp_path: Path, content: bytes) -> None:
    path = folder(tmp_path, {"a.bin": content}) / "a.bin"
    with pytest.raises(UnsupportedContent, match="is not a known export: slack, discord, irc, jsonl"):
        read(path)


@pytest.mark.parametrize(
    "content",
    [
        "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n\n00:02.000 --> 00:03.000\nyou\n",
        "<html>\n<body>\n<p> text\n<li> item\n</body>\n",
        "# Title\n\n* item one\n* item two\n--- a\n",
        "2024-01-05 10:00:00 INFO started\n2024-01-05 10:00:01 WARN slow\n",
    ],
)
def test_other_texts_are_not_taken_for_logs_of_chats(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnsupportedContent):
        read(folder(tmp_path, {"a.txt": content}) / "a.txt")


@pytest.mark.parametrize("kind", [None, *ARCHIVE_KINDS])
def test_a_folder_and_an_archive_of_nothing_are_refused(tmp_path: Path, kind: ArchiveKind | None) -> None:
    for path in (folder(tmp_path / "a", {}), zipped(tmp_path / "a.zip", {})):
        with pytest.raises(UnsupportedContent):
            LocalArchives().read(path, kind=kind)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile, match="neither a file nor a folder"):
        read(tmp_path / "pipe")
    for name in ("missing", "a\0b"):
        with pytest.raises(UnreadableFile):
            read(tmp_path / name)


def test_links_in_folders_are_counted_and_not_followed(tmp_path: Path) -> None:
    outside = folder(tmp_path / "outside", {"2024-01-01.json": [said("9.0", "elsewhere")]})
    path = folder(tmp_path / "a", FILES)
    (path / "linked").symlink_to(outside)
    (path / "general" / "2024-01-01.json").symlink_to(outside / "2024-01-01.json")
    (path / "loop").symlink_to(path)
    os.mkfifo(path / "pipe.json")
    archive = read(path)
    assert [message.text for message in only(archive).messages] == ["kept"]
    assert archive.notices == (
        "links, skipped: 3 (linked, loop, general/2024-01-01.json)",
        "pipes, sockets and devices, skipped: 1 (pipe.json)",
    )
    (tmp_path / "named").symlink_to(path)
    assert read_texts(tmp_path / "named") == ["kept"]


def test_names_that_lead_out_of_an_archive_are_only_counted(tmp_path: Path) -> None:
    bad = {
        name: [said("2.0", "bad")]
        for name in ("../2024-01-01.json", "/2024-01-01.json", "a\\..\\2024-01-01.json")
    }
    archive = read(zipped(tmp_path / "a.zip", FILES | bad))
    assert [message.text for message in only(archive).messages] == ["kept"]
    assert archive.notices[0].startswith("paths outside of the archive, skipped: 3 (../2024-01-01.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip"]


def test_links_in_archives_and_what_systems_add_are_left_out(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {**FILES, "__MACOSX/general/._2024-01-05.json": "x", ".DS_Store": "x"})
    link = zipfile.ZipInfo("general/2024-01-07.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert (read_texts(path), read(path).notices) == (
        ["kept"],
        ("links, skipped: 1 (general/2024-01-07.json)",),
    )


def test_names_in_utf8_that_do_not_say_so(tmp_path: Path) -> None:
    files = {**FILES, "caf\u00e9/2024-01-01.json": [said("2.0", "x")]}
    listed = [{"id": "C2", "name": "cafe\u0301"}, *CHANNELS]
    content = zipped(tmp_path / "a.zip", files | {"channels.json": listed}).read_bytes()
    utf8 = "café/".encode()
    unmarked = bytearray(content)
    for position in range(len(content)):
        offset = {b"PK\x03\x04": 30, b"PK\x01\x02": 46}.get(content[position : position + 4])
        if offset is not None and content[position + offset :].startswith(utf8):
            struct.pack_into("<H", unmarked, position + (6 if offset == 30 else 8), 0)
    (tmp_path / "a.zip").write_bytes(unmarked)
    assert [channel.name for channel in read(tmp_path / "a.zip").channels] == ["cafe\u0301", "general"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_both_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", FILES)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("general/2024-01-05.json", '[{"ts": "2.0", "text": "second", "user": "U1"}]')
    assert read_texts(path) == ["kept", "second"]


def test_a_locked_archive_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", FILES)
    content = bytearray(path.read_bytes())
    for position in range(len(content)):
        offset = {b"PK\x03\x04": 6, b"PK\x01\x02": 8}.get(bytes(content[position : position + 4]))
        if offset is not None:
            content[position + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match="encrypted with a password"):
        read(path)


def test_damaged_archives_are_refused_or_named(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", FILES | {"general/2024-01-06.json": [said("2.0", "x" * 500)]})
    content = path.read_bytes()
    for cut in range(0, len(content), 7):
        path.write_bytes(content[:cut])
        with pytest.raises((UnreadableFile, UnsupportedContent)):
            read(path)
    start = content.index(b"general/2024-01-06.json") + len("general/2024-01-06.json")
    path.write_bytes(content[: start + 3] + bytes(5) + content[start + 8 :])
    archive = read(path)
    assert [message.text for message in only(archive).messages] == ["kept"]
    assert archive.notices == ("damaged or unreadable files, skipped: 1 (general/2024-01-06.json)",)


def test_ways_of_packing_that_may_take_any_memory_are_left_out(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", FILES)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr("general/2024-01-06.json", "[]")
    assert read_texts(path) == ["kept"]
    assert read(path).notices[0].endswith("(general/2024-01-06.json)")


def test_a_bomb_is_stopped_at_the_limit(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "a.zip", FILES | {"general/2024-01-06.json": b" " * 30_000_000})
    assert bomb.stat().st_size < 100_000
    with pytest.raises(TooLarge, match=r"2024-01-06\.json: is 1000001 bytes, the limit is 1000000"):
        LocalArchives(Settings(max_file_bytes=1_000_000)).read(bomb)
    many = FILES | {f"general/2024-02-{day:02}.json": b" " * 900_000 for day in range(1, 20)}
    with pytest.raises(TooLarge, match="unpacked export"):
        LocalArchives(Settings(max_file_bytes=1_000_000, max_unpacked_bytes=5_000_000)).read(
            zipped(tmp_path / "b.zip", many)
        )


def test_files_and_folders_are_held_to_the_limits(tmp_path: Path) -> None:
    packed = zipped(tmp_path / "a.zip", FILES)
    with pytest.raises(TooLarge, match="file: is"):
        LocalArchives(Settings(max_file_bytes=100)).read(packed)
    path = folder(tmp_path / "a", FILES)
    for export in (packed, path):
        with pytest.raises(TooLarge, match="is 3 files, the limit is 2"):
            LocalArchives(Settings(max_files=2)).read(export)
    with pytest.raises(TooLarge, match="general/2024"):
        LocalArchives(Settings(max_file_bytes=10)).read(
            folder(tmp_path / "b", {"general/2024-01-05.json": "[" + " " * 10})
        )
    with pytest.raises(TooLarge, match="levels"):
        LocalArchives(Settings(max_folder_depth=3)).read(folder(tmp_path / "c", {"a/b/c/d/e.json": "x"}))
    assert read_texts(path, LocalArchives(Settings(max_files=3, max_folder_depth=1))) == ["kept"]


def test_the_kind_that_is_given_counts(tmp_path: Path) -> None:
    path = folder(tmp_path / "a", {"a.json": discord(posted("1", "x")), "b.jsonl": '{"text": "y"}\n'})
    assert [message.text for message in only(read(path)).messages] == ["x"]
    archive = read(path, "jsonl")
    assert ([message.text for message in only(archive).messages], archive.notices) == (
        ["y"],
        ("other files, skipped: 1 (a.json)",),
    )
