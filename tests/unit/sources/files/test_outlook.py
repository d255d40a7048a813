"""Messages of Outlook: people, thread, text and attachments."""

from datetime import UTC, datetime

import pytest
from compressed_rtf import compress
from tests import outlook_samples as msg

from conspectus.errors import UnreadableFile
from conspectus.model.records import NewDocument
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()
FIELDS = {
    msg.SUBJECT: "Pümpe", msg.BODY: "Hello,\r\nyou.", msg.SENDER: "Ann Lee", msg.SENDER_ADDRESS: "ann@x.org",
    msg.SENT: datetime(2024, 6, 3, 8, tzinfo=UTC), msg.MESSAGE_ID: "<2@x>", msg.IN_REPLY_TO: "<1@x>",
}  # fmt: skip
RECIPIENTS = (
    {msg.KIND: 1, msg.NAME: "Bob", msg.ADDRESS: "bob@y.org"},
    {msg.KIND: 1, msg.NAME: "di@z.org", msg.ADDRESS: "di@z.org"},
    {msg.KIND: 2, msg.NAME: "Cy", msg.ADDRESS: "/O=EXCHANGE/CN=CY"},
    {msg.KIND: 3, msg.NAME: "Secret", msg.ADDRESS: "secret@z.org"},
)


def parse_message(data: bytes) -> NewDocument:
    [document] = FILES.parse_bytes(data, "a.msg").documents
    return document


def test_a_message_says_who_wrote_it_to_whom_and_when() -> None:
    document = parse_message(msg.outlook_message(FIELDS, RECIPIENTS))
    assert (document.text, document.title, document.kind) == ("Hello,\nyou.", "Pümpe", "message")
    assert (document.author, document.thread) == ("Ann Lee <ann@x.org>", "<1@x>")
    assert document.occurred == "2024-06-03T08:00:00+00:00"
    assert document.metadata == {
        "from": "Ann Lee <ann@x.org>", "to": "Bob <bob@y.org>, di@z.org", "cc": "Cy", "message_id": "<2@x>",
        "in_reply_to": "<1@x>", "people": ["ann@x.org", "bob@y.org", "di@z.org"], "path": "a.msg",
        "media_type": "application/vnd.ms-outlook",
    }  # fmt: skip


def test_files_are_read_and_attached_messages_are_part_of_the_text() -> None:
    plan = {msg.FILE_NAME: "plan.md", msg.FILE_BYTES: b"# Plan\n\nPelicans." * 400}
    inner = {msg.SUBJECT: "Inner", msg.BODY: "Deep text.", msg.SENDER: "Di"}
    parsed = FILES.parse_bytes(msg.outlook_message(FIELDS, files=[plan], forwarded=[inner]), "a.msg")
    assert parsed.documents[0].text == (
        "Hello,\nyou.\n\nForwarded message\nFrom: Di\nSubject: Inner\n\nDeep text.\n\nAttachments: plan.md"
    )
    [member] = parsed.members
    assert member.name == "a.msg/plan.md" and member.file is not None
    [attached] = member.file.documents
    assert (attached.title, attached.kind, attached.metadata["attached_to"]) == ("Plan", "page", "Pümpe")
    assert attached.occurred == "2024-06-03T08:00:00+00:00"


def test_a_message_with_html_only_is_read_as_a_page() -> None:
    page = "<p>Grüße</p><script>bad()</script>".encode("iso-8859-15")
    assert parse_message(msg.outlook_message({msg.SUBJECT: "Hi", 0x1013: page})).text == "Grüße"


def test_an_empty_message_has_its_subject() -> None:
    assert parse_message(msg.outlook_message({msg.SUBJECT: "Only this"})).text == "Only this"


@pytest.mark.parametrize("cut", [600, 1_600, 2_600])
def test_a_damaged_message_is_refused_with_a_reason(cut: int) -> None:
    with pytest.raises(UnreadableFile):
        FILES.parse_bytes(msg.outlook_message(FIELDS, RECIPIENTS)[:cut], "a.msg")


RTF = 0x1009
ENCAPSULATED = (
    rb"{\rtf1\ansi\ansicpg1252\fromhtml1 {\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 Gr\'fc\'dfe aus "
    rb"{\*\htmltag84 <b>}K\'f6ln"
    rb"{\*\htmltag92 </b>}, \u8364?5\par Bis {\*\htmltag72 </p>}bald }}"
)


def test_a_text_that_is_rtf_alone_is_read() -> None:
    rtf = compress(rb"{\rtf1\ansi Hello,\par \b the\b0  lamp}")
    parsed = FILES.parse_bytes(msg.outlook_message({msg.SUBJECT: "Offer", RTF: rtf}), "a.msg")
    assert (parsed.documents[0].text, parsed.notice) == ("Hello,\nthe lamp", None)


def test_html_inside_of_rtf_is_read_as_its_text() -> None:
    text = parse_message(msg.outlook_message({msg.SUBJECT: "Hi", RTF: compress(ENCAPSULATED)})).text
    assert "Grüße aus Köln, €5" in text and "<" not in text and "htmltag" not in text


def test_plain_text_of_a_message_comes_before_its_rtf() -> None:
    rtf = compress(rb"{\rtf1 other}")
    fields = {msg.SUBJECT: "Hi", msg.BODY: "Hello.", RTF: rtf}
    assert parse_message(msg.outlook_message(fields)).text == "Hello."


@pytest.mark.parametrize(
    "rtf",
    [
        b"LZFu",
        compress(rb"{\rtf1 text}")[:-3],
        compress(rb"{\rtf1 text}").replace(b"LZFu", b"XXXX"),
        compress(rb"{\rtf1 text}", compressed=False)[:12] + b"\1\0\0\0",
        compress(b""),
    ],
)
def test_damaged_rtf_is_said(rtf: bytes) -> None:
    parsed = FILES.parse_bytes(msg.outlook_message({msg.SUBJECT: "Offer", RTF: rtf}), "a.msg")
    assert parsed.notice is not None and parsed.notice.startswith("its text is damaged RTF")
