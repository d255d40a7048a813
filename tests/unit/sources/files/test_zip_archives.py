"""ZIP archives are folders: every member is read, named as skipped, or refused."""

import io
import stat
import zipfile

import pytest
from tests.office_samples import docx, paragraph

from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.ports import ParsedFile
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()


def write_zip(members: dict[str, bytes], *, links: tuple[str, ...] = ()) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16 if name in links else 0
            archive.writestr(entry, data)
    return target.getvalue()


def outcomes_of(parsed: ParsedFile) -> dict[str, str]:
    """Of each member its first text, or why it has none."""
    outcomes = {}
    for member in parsed.members:
        if member.file is not None:
            outcomes[member.name] = "".join(document.text for document in member.file.documents)
        else:
            outcomes[member.name] = f"{type(member.fault).__name__}: {member.fault}"
    return outcomes


def test_each_member_is_read_by_its_reader_and_named_by_its_path() -> None:
    inner = write_zip({"deep/b.txt": b"bears"})
    members = {"a.md": b"# A\n\nalpacas", "x/c.docx": docx(paragraph("cats")), "in.zip": inner, "x/": b""}
    parsed = FILES.parse_bytes(write_zip(members), "pack.zip")
    assert outcomes_of(parsed) == {
        "pack.zip/a.md": "# A\n\nalpacas", "pack.zip/x/c.docx": "cats", "pack.zip/in.zip": "",
        "pack.zip/in.zip/deep/b.txt": "bears",
    }  # fmt: skip
    keys = [document.key for member in parsed.members if member.file for document in member.file.documents]
    assert keys == ["pack.zip/a.md", "pack.zip/x/c.docx", "pack.zip/in.zip/deep/b.txt"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("../evil.md", b"x", "its name leads out of the archive"),
        ("/abs.md", b"x", "its name leads out of the archive"),
        ("C:/drive.md", b"x", "its name leads out of the archive"),
        ("a\\..\\..\\b.md", b"x", "its name leads out of the archive"),
        ("link.md", b"/etc/passwd", "is a link"),
        ("__MACOSX/._a.md", b"x", "is hidden"),
        (".git/config", b"x", "is hidden"),
        ("bomb.txt", b"a" * 5_000_000, "unpacks to more than 200 times its size"),
        ("a.gif", b"GIF89a", "a GIF image is not supported"),
        ("word/a.bin", b"\0\1\2", "binary data, not text in any known encoding"),
    ],
)
def test_a_member_that_is_not_read_is_named_with_the_reason(name: str, data: bytes, reason: str) -> None:
    parsed = FILES.parse_bytes(write_zip({name: data, "b.md": b"B"}, links=("link.md",)), "a.zip")
    skipped, read = parsed.members
    assert isinstance(skipped.fault, UnsupportedContent) and skipped.fault.reason == reason
    assert read.file is not None and read.file.documents[0].text == "B"


def test_an_encrypted_member_is_skipped_and_a_damaged_one_is_refused() -> None:
    data = bytearray(write_zip({"a.md": b"A" * 50, "b.md": b"B", "c.md": b"C" * 50}))
    locked = data.rindex(b"PK\x01\x02", 0, data.rindex(b"b.md"))
    data[locked + 8] |= 1
    data[data.index(b"c.md") + 5] ^= 0xFF
    parsed = FILES.parse_bytes(bytes(data), "a.zip")
    faults = {member.name: member.fault for member in parsed.members if member.fault is not None}
    assert str(faults["a.zip/b.md"]).endswith("is encrypted with a password")
    assert isinstance(faults["a.zip/c.md"], UnreadableFile)
    assert len(parsed.members) == 3


def test_of_two_members_of_one_name_the_last_is_read() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("a.md", "old")
        archive.writestr("a.md", "new")
    skipped, read = FILES.parse_bytes(target.getvalue(), "a.zip").members
    assert skipped.fault is not None and "more than once" in str(skipped.fault)
    assert read.file is not None and read.file.documents[0].text == "new"


@pytest.mark.parametrize(
    ("settings", "members"),
    [
        (Settings(max_archive_members=2), {f"{number}.md": b"x" for number in range(3)}),
        (Settings(max_unpacked_bytes=10), {"a.md": b"x" * 6, "b.md": b"y" * 6}),
    ],
)
def test_an_archive_over_a_limit_is_refused(settings: Settings, members: dict[str, bytes]) -> None:
    with pytest.raises((TooLarge, UnreadableFile)):
        LocalFiles(settings).parse_bytes(write_zip(members), "a.zip")


def test_an_office_document_is_known_by_its_parts_and_an_empty_archive_says_so() -> None:
    [document] = FILES.parse_bytes(docx(paragraph("cats")), "a.bin").documents
    assert document.text == "cats"
    assert FILES.parse_bytes(b"PK\x05\x06" + bytes(18), "a.zip").notice == "the archive is empty"
