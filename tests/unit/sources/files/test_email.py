"""E-mail: sender, recipients, text and attachments."""

from datetime import UTC, datetime
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.errors import UnreadableFile
from conspectus.ingest.document_fields import period
from conspectus.model.records import NewDocument
from conspectus.sources.files.email import read_mail
from conspectus.sources.files.extract import Refused
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()
PIECES = (
    b"Content-Type: multipart/mixed; boundary=a\n", b"\n--a\n", b"--a--\n", b"Date: x, 99 99\n", b"\n",
    b"Content-Type: text/html; charset=\xff\n", b"Subject: =?x?b?=?=\n", b"Subject: =?utf-8?b?A?=\n",
    b"Content-Type: message/rfc822\n", b"Content-Transfer-Encoding: base64\n", b"<p>&#0;\n", b"=\xff\n",
    b"Content-Disposition: attachment; filename*0*=utf-8''%FF; filename*1=b\n", b"Date: \n", b" folded\n",
    b"Content-Type: multipart/alternative\n", b"Content-Transfer-Encoding: quoted-printable\n",
)  # fmt: skip
HEAD = b"From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: a@b.c\r\nSubject: Hi\r\n"


def parse_mail(data: bytes) -> NewDocument:
    [document] = FILES.parse_bytes(data, "a.eml").documents
    return document


def write_mail(**parts: object) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@b.c", "Plan"
    message.set_content(str(parts.get("plain", "The plain text.")))
    if "html" in parts:
        message.add_alternative(str(parts["html"]), subtype="html")
    return message


def test_a_message_says_who_wrote_it_to_whom_and_when() -> None:
    document = parse_mail(
        HEAD + b"Date: Mon, 1 Jan 2024 10:00:00 +0100\r\nMessage-ID: <1@x>\r\n\r\nHello,\r\nyou.\r\n"
    )
    assert document.text == "Hello,\nyou."
    assert (document.title, document.author, document.kind) == ("Hi", "Jürgen <j@example.org>", "message")
    instant = period(document.occurred)
    assert instant is not None and instant.start == datetime(2024, 1, 1, 9, tzinfo=UTC)
    assert document.metadata == {
        "from": "Jürgen <j@example.org>", "to": "a@b.c", "message_id": "<1@x>",
        "people": ["j@example.org", "a@b.c"], "path": "a.eml", "media_type": "message/rfc822",
    }  # fmt: skip


def test_plain_text_goes_before_html_which_is_read_as_a_page() -> None:
    assert parse_mail(bytes(write_mail(html="<p>The rich text.</p>"))).text == "The plain text."
    rich = "<style>p {}</style><h1>News</h1><ul><li>one</li></ul><script>bad()</script>"
    assert parse_mail(bytes(write_mail(plain=" ", html=rich))).text == "# News\n\n- one"


def test_attachments_are_named_and_not_read() -> None:
    message = write_mail()
    message.add_attachment(b"%PDF-secret", maintype="application", subtype="pdf", filename="Übersicht.pdf")
    message.add_attachment("secret text", filename="notes.txt")
    assert parse_mail(bytes(message)).text == "The plain text.\n\nAttachments: Übersicht.pdf, notes.txt"


def test_a_forwarded_message_is_part_of_the_text() -> None:
    outer = write_mail(plain="See below.")
    outer.add_attachment(write_mail(plain="The inner text."))
    assert parse_mail(bytes(outer)).text == (
        "See below.\n\nForwarded message\nFrom: a@b.c\nSubject: Plan\n\nThe inner text."
    )


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("koi8-r", "Привет".encode("koi8_r"), "Привет"), ("shift_jis", "日本".encode("shift_jis"), "日本"),
        ("no-such", "é".encode(), "é"), ("utf-8", "é".encode("cp1252"), "é"), ("base64", b"abc", "abc"),
    ],
)  # fmt: skip
def test_any_encoding_is_read(charset: str, body: bytes, text: str) -> None:
    assert (
        parse_mail(HEAD + f"Content-Type: text/plain; charset={charset}\r\n\r\n".encode() + body).text == text
    )


def test_a_message_without_text_is_its_subject_and_what_is_none_is_refused() -> None:
    assert parse_mail(HEAD + b"\r\n\r\n").text == "Hi"
    with pytest.raises(UnreadableFile, match="not an e-mail"):
        parse_mail(b"just some words\n")


@pytest.mark.parametrize(
    "data",
    [
        HEAD
        + b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(2000)),
        HEAD + b"Content-Type: message/rfc822\n\n" * 3000,
    ],
    ids=["parts", "messages"],
)
def test_a_message_nested_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        parse_mail(data)


@settings(max_examples=tries(300))
@given(st.lists(st.sampled_from(PIECES)))
def test_any_message_is_read_or_refused(pieces: list[bytes]) -> None:
    try:
        extract = read_mail(b"From: a\n" + b"".join(pieces))
    except Refused:
        return
    assert isinstance(extract.text, str)


def test_each_message_of_a_mailbox_is_a_document() -> None:
    first, second = (
        bytes(write_mail(plain="One.\n\nFrom here on\n\n>From there")),
        bytes(write_mail(plain="Two.")),
    )
    quoted = first.replace(b"\n>From", b"\n>>From").replace(b"\nFrom here", b"\n>From here")
    mailbox = b"".join(
        b"From a@b.c Mon Jun  3 10:00:00 2024\n" + data + b"\n" for data in (quoted, second, second)
    )
    *messages, copy = FILES.parse_bytes(mailbox, "box.mbox").members
    texts = [document.text for one in messages if one.file for document in one.file.documents]
    assert texts == ["One.\n\nFrom here on\n\n>From there", "Two."]
    assert copy.fault is not None and str(copy.fault).endswith("is in the mailbox more than once")
    longer = FILES.parse_bytes(b"From x\n" + bytes(write_mail(plain="New.")) + b"\n" + mailbox, "box.mbox")
    assert {one.name for one in messages} < {one.name for one in longer.members}


@pytest.mark.parametrize("data", [b"no mailbox", b"\n", b"From"])
def test_what_is_no_mailbox_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="is not a mailbox"):
        FILES.parse_bytes(data, "box.mbox")


def test_a_page_that_says_much_more_than_the_plain_text_is_read() -> None:
    page = "<p>" + " ".join(f"word{number}" for number in range(20)) + "</p>"
    stub = parse_mail(bytes(write_mail(plain="Open this in a browser.", html=page)))
    assert stub.text.endswith("word19")


def test_words_of_the_page_that_are_not_in_the_plain_text_are_counted() -> None:
    mail = bytes(write_mail(plain="one two three", html="<p>one two three four</p>"))
    assert FILES.parse_bytes(mail, "a.eml").notice == "25 % of its words are left out: parts of the text"
    alike = bytes(write_mail(plain="one two", html="<p>one <b>two</b></p>"))
    assert FILES.parse_bytes(alike, "a.eml").notice is None


def test_parts_of_other_types_are_attachments_though_they_have_no_name() -> None:
    message = write_mail()
    message.add_attachment("BEGIN:VCALENDAR", subtype="calendar", disposition="inline")
    message.add_attachment(b"\0\1", maintype="application", subtype="pdf", disposition="inline")
    extract = read_mail(bytes(message))
    assert [member.name for member in extract.members] == ["attachment.ics", "attachment.pdf"]
    assert extract.text.endswith("Attachments: attachment.ics, attachment.pdf")


def test_a_report_of_a_failed_delivery_has_its_reasons() -> None:
    report = (
        HEAD
        + b"Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSorry."
        b"\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n\r\n"
        b"Final-Recipient: rfc822; bob@example.org\r\nStatus: 5.1.1\r\n\r\n--b--\r\n"
    )
    assert "Final-Recipient: rfc822; bob@example.org\nStatus: 5.1.1" in parse_mail(report).text


def test_an_encrypted_message_says_so() -> None:
    sealed = HEAD + b"Content-Type: application/pkcs7-mime; name=smime.p7m\r\n\r\nxxxx"
    assert FILES.parse_bytes(sealed, "a.eml").notice == "is encrypted; its text is not read"
