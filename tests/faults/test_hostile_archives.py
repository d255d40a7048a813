"""Damaged archives, mailboxes and messages: each is read or refused, and no member is lost without a word."""

import random

import pytest

from conspectus.errors import ConspectusError
from conspectus.ports import ParsedFile
from conspectus.sources.files.local_files import LocalFiles
from tests import outlook_samples as msg
from tests.unit.sources.files.test_zip_archives import write_zip

FILES = LocalFiles()
MAIL = b"From: a@b.c\nSubject: Hi\nMessage-ID: <1@x>\nReferences: <0@x>\n\nHello.\n"
FIELDS = {msg.SUBJECT: "Hi", msg.BODY: "Hello.", msg.SENDER: "Ann", msg.MESSAGE_ID: "<1@x>"}
PLAN = {msg.FILE_NAME: "plan.md", msg.FILE_BYTES: b"# Plan " * 900}
SOUND = {
    "a.zip": write_zip({"a.md": b"# A", "b/c.eml": MAIL, "d.zip": write_zip({"e.txt": b"e"})}),
    "a.mbox": b"".join(
        b"From a@b.c\n" + MAIL.replace(b"Hello", b"Hello %d" % number) + b"\n" for number in range(3)
    ),
    "a.msg": msg.outlook_message(FIELDS, [{msg.KIND: 1, msg.NAME: "Bob"}], [PLAN], [FIELDS]),
}


def parse(data: bytes, name: str) -> ParsedFile | ConspectusError:
    try:
        return FILES.parse_bytes(data, name)
    except ConspectusError as fault:
        return fault


@pytest.mark.parametrize("name", SOUND)
def test_damaged_files_are_read_or_refused(name: str) -> None:
    chance, sound = random.Random(name), SOUND[name]
    for _ in range(60):
        data = bytearray(sound)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0xFE, 0xFF))
        outcome = parse(bytes(data[: chance.choice((len(data), chance.randrange(len(data))))]), name)
        if isinstance(outcome, ParsedFile):
            assert outcome.documents or outcome.notice or outcome.members
            assert all(member.file or member.fault for member in outcome.members)
    assert isinstance(parse(sound, name), ParsedFile)


def test_an_archive_that_holds_itself_and_one_of_many_levels_end() -> None:
    data = b"bottom"
    for level in range(40):
        data = write_zip({f"{level}.zip": data, "a.md": b"A"})
    outcome = parse(data, "a.zip")
    assert isinstance(outcome, ParsedFile)
    assert [member.fault is None for member in outcome.members].count(False) == 2


def test_a_message_of_many_levels_ends() -> None:
    data = MAIL
    for level in range(300):
        data = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n%s\n--b%d--\n" % (
            level,
            level,
            data,
            level,
        )
    outcome = parse(b"From: a@b.c\n" + data, "a.eml")
    assert isinstance(outcome, ConspectusError) and "nested too deeply" in str(outcome)
