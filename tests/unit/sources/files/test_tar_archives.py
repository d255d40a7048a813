"""Tar archives are folders, as ZIP archives are: every member is read, named as skipped, or refused."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable

import pytest
from tests.office_samples import docx, paragraph

from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.ports import ParsedFile
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()


def write_tar(members: dict[str, bytes], kinds: dict[str, bytes] | None = None) -> bytes:
    """Return an archive; members of a kind other than a file point to their content."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.type = (kinds or {}).get(name, tarfile.REGTYPE)
            is_file = entry.type == tarfile.REGTYPE
            entry.size = len(content) if is_file else 0
            entry.linkname = "" if is_file else content.decode()
            archive.addfile(entry, io.BytesIO(content) if is_file else None)
    return target.getvalue()


def text_of(parsed: ParsedFile, name: str) -> str:
    """Return the text of the only document of a member."""
    file = next(member.file for member in parsed.members if member.name == name)
    assert file is not None
    return file.documents[0].text


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_each_member_is_read_by_its_reader(pack: Callable[[bytes], bytes]) -> None:
    inner = gzip.compress(write_tar({"b.txt": b"bears"}))
    members = {"./a.md": b"# A\n\nalpacas", "x/c.docx": docx(paragraph("cats")), "in.tgz": inner}
    parsed = FILES.parse_bytes(pack(write_tar(members, {"empty": tarfile.DIRTYPE})), "pack.tar.gz")
    assert text_of(parsed, "pack.tar.gz/a.md") == "# A\n\nalpacas"
    assert text_of(parsed, "pack.tar.gz/x/c.docx") == "cats"
    assert text_of(parsed, "pack.tar.gz/in.tgz/b.txt") == "bears"
    assert parsed.may_have_members and len(parsed.members) == 4


@pytest.mark.parametrize(
    ("name", "content", "kind", "reason"),
    [
        ("../evil.md", b"x", tarfile.REGTYPE, "its name leads out of the archive"),
        ("/abs.md", b"x", tarfile.REGTYPE, "its name leads out of the archive"),
        ("a\\..\\..\\b.md", b"x", tarfile.REGTYPE, "its name leads out of the archive"),
        ("link.md", b"/etc/passwd", tarfile.SYMTYPE, "is a link"),
        ("hard.md", b"b.md", tarfile.LNKTYPE, "is a link"),
        ("pipe.md", b"", tarfile.FIFOTYPE, "is a device"),
        ("disk.md", b"", tarfile.BLKTYPE, "is a device"),
        (".git/config", b"x", tarfile.REGTYPE, "is hidden"),
        ("._a.md", b"x", tarfile.REGTYPE, "is hidden"),
    ],
)
def test_a_member_that_is_not_read_is_named_with_the_reason(
    name: str, content: bytes, kind: bytes, reason: str
) -> None:
    data = write_tar({name: content, "b.md": b"B"}, {name: kind})
    skipped, read = FILES.parse_bytes(data, "a.tar").members
    assert isinstance(skipped.fault, UnsupportedContent) and skipped.fault.reason == reason
    assert read.file is not None and read.file.documents[0].text == "B"


def test_of_two_members_of_one_name_the_last_is_read() -> None:
    archive = write_tar({"a.md": b"old", "./a.md": b"new"})
    skipped, read = FILES.parse_bytes(archive, "a.tar").members
    assert skipped.fault is not None and "more than once" in str(skipped.fault)
    assert read.file is not None and read.file.documents[0].text == "new"


THREE = {f"{number}.md": b"x" for number in range(3)}
LARGE = {"a.md": b"x" * 6, "b.md": b"y" * 6}
DENSE = {"a.md": b"x" * 3_000_000}


@pytest.mark.parametrize(
    ("settings", "archive"),
    [
        (Settings(max_archive_members=2), write_tar(THREE)),
        (Settings(max_archive_members=2), gzip.compress(write_tar(THREE))),
        (Settings(max_unpacked_bytes=10), write_tar(LARGE)),
        (Settings(max_unpacked_bytes=10), gzip.compress(write_tar(LARGE))),
        (Settings(max_archive_ratio=20), gzip.compress(write_tar(DENSE))),
    ],
)
def test_an_archive_over_a_limit_is_refused(settings: Settings, archive: bytes) -> None:
    with pytest.raises((TooLarge, UnreadableFile)):
        LocalFiles(settings).parse_bytes(archive, "a.tar.gz")


def test_what_stands_before_a_damage_is_read_and_the_damage_is_named() -> None:
    archive = bytearray(write_tar({"a.md": b"A", "b.md": b"B"}))
    archive[1024:1536] = b"\x80" * 512
    parsed = FILES.parse_bytes(bytes(archive), "a.tar")
    assert text_of(parsed, "a.tar/a.md") == "A"
    assert parsed.notice == "the archive is damaged after 1 entries: what follows cannot be read"


def test_a_cut_archive_names_the_member_that_is_cut() -> None:
    archive = write_tar({"a.md": b"A", "b.md": b"B" * 2_000})[:2_500]
    parsed = FILES.parse_bytes(archive, "a.tar")
    faults = [member.fault for member in parsed.members]
    assert faults[0] is None and isinstance(faults[1], UnreadableFile)
    assert "damaged" in str(faults[1])


def test_a_packed_file_that_is_no_archive_is_skipped_with_what_to_do() -> None:
    with pytest.raises(UnsupportedContent, match="Unpack it, and add the file"):
        FILES.parse_bytes(gzip.compress(b"a line of a log\n" * 100), "server.log.gz")
    for damaged in (gzip.compress(b"a" * 5_000)[:-9], b"BZh9" + b"\0" * 20, b"\xfd7zXZ\x00\x00"):
        with pytest.raises(UnreadableFile, match="a damaged archive"):
            FILES.parse_bytes(damaged, "a.tar.gz")


def test_an_empty_archive_says_so() -> None:
    assert FILES.parse_bytes(write_tar({}), "a.tar").notice == "the archive is empty"
    assert FILES.parse_bytes(gzip.compress(write_tar({})), "a.tgz").notice == "the archive is empty"
