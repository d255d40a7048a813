"""E-mail as RFC 5322 has it, and mailboxes (mbox) of such messages."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from mimetypes import guess_extension
from typing import Any

from conspectus.sources.files.extract import Extract, Limits, Member, Refused
from conspectus.sources.files.html import read_visible_text
from conspectus.sources.files.mail import (
    IDS,
    PEOPLE,
    Mail,
    attachment_names,
    choose_version,
    mail_extract,
    message_name,
)
from conspectus.sources.files.missing_words import ShownText

MEDIA_TYPE = "message/rfc822"
MAILBOX_TYPE = "application/mbox"
DEEPEST = 20
TEXT_TYPES = frozenset({"text/plain", "text/html", "text/enriched", "text/markdown", "text/x-amp-html"})
"""Types of the text of a message. Parts of other types, as invitations are, are attachments."""
ENCRYPTED_TYPES = frozenset({"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"})
_SEPARATOR = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def read_mail(data: bytes) -> Extract:
    """Return the text of an e-mail message, and its attachments. Raises Refused."""
    message = BytesParser().parsebytes(data)
    if not any(name in message for name in ("from", "to", "subject", "date", "received")):
        raise Refused("is not an e-mail: it has no sender, subject or date")
    texts = [text.strip() for text in _texts(message, DEEPEST)]
    headers = {name: _header(message, name) for name in (*PEOPLE, *IDS, "references", "subject")}
    attachments = tuple(_attachments(message))
    return mail_extract(
        Mail(
            MEDIA_TYPE,
            headers,
            "\n\n".join(filter(None, texts)),
            _date(message),
            attachments,
            tuple(ShownText("", text) for text in _all_texts(message)),
            is_encrypted=any(part.get_content_type() in ENCRYPTED_TYPES for part in message.walk()),
        )
    )


def read_mailbox(data: bytes, limits: Limits) -> Extract:
    """Return the messages of a mailbox as members. Raises Refused."""
    starts = list(_SEPARATOR.finditer(data))
    if not starts or starts[0].start() != 0:
        raise Refused("is not a mailbox: it does not begin with a line 'From '")
    if len(starts) > limits.members:
        raise Refused(f"has {len(starts)} messages, more than {limits.members}; see max_archive_members")
    ends = [*(start.start() for start in starts[1:]), len(data)]
    messages: dict[str, Member] = {}
    copies = []
    for start, end in zip(starts, ends, strict=True):
        member = _message_member(_QUOTED.sub(rb"\1", data[start.end() : end]).rstrip(b"\r\n") + b"\n")
        if messages.setdefault(member.name, member) is not member:
            copies.append(Member(member.name, skipped="is in the mailbox more than once"))
    return Extract("", MAILBOX_TYPE, members=(*messages.values(), *copies))


def _message_member(data: bytes) -> Member:
    head = BytesParser().parsebytes(data, headersonly=True)
    name = message_name(_header(head, "subject"), _date(head), data)
    try:
        return Member(name, extract=read_mail(data))
    except Refused as refused:
        return Member(name, refused=str(refused))
    except RecursionError:
        return Member(name, refused="is nested too deeply; save the inner message as a file of its own")


def _texts(message: Any, depth: int) -> Iterator[str]:
    """Return the readable text of each part; one of several alternatives."""
    if depth == 0:
        raise Refused("is nested too deeply; save the inner message as a file of its own")
    parts = message.get_payload() if message.is_multipart() else ()
    match message.get_content_type():
        case "multipart/alternative":
            yield _alternative(parts, depth)
        case "message/delivery-status":
            yield "\n\n".join("\n".join(f"{name}: {_header(part, name)}" for name in part) for part in parts)
        case kind:
            for part in parts:
                yield _format_forwarded_head(part) if kind == MEDIA_TYPE else ""
                yield from _texts(part, depth - 1)
            if message.get_content_maintype() == "text" and not parts and not _is_attachment(message):
                yield _text(message)


def _format_forwarded_head(message: Message) -> str:
    head = (f"{name.capitalize()}: {_header(message, name)}" for name in (*PEOPLE, "date", "subject"))
    return "\n".join(("Forwarded message", *(line for line in head if not line.endswith(": "))))


def _alternative(parts: Sequence[Any], depth: int) -> str:
    """Return the text of one of several versions of a message."""
    plain_texts: list[str] = []
    other_texts: list[str] = []
    for part in parts:
        text = "\n\n".join(filter(str.strip, _texts(part, depth - 1)))
        versions = plain_texts if part.get_content_type() == "text/plain" else other_texts
        versions += [text] if text.strip() else []
    return choose_version(next(iter(plain_texts), ""), next(iter(other_texts), ""))


def _all_texts(message: Any) -> Iterator[str]:
    """Yield the texts of all parts; of several versions the last, which is the fullest."""
    if message.get_content_type() == "multipart/alternative" and message.is_multipart():
        versions = ([*_all_texts(part)] for part in reversed(message.get_payload()))
        yield from next(filter(None, versions), ())
    elif message.is_multipart():
        for part in message.get_payload():
            yield from _all_texts(part)
    elif message.get_content_maintype() == "text" and not _is_attachment(message):
        yield _text(message)


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    text = _decode(data, part.get_content_charset())
    if part.get_content_type() == "text/html":
        return read_visible_text(text.encode(errors="replace"), "utf-8").text()
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _attachments(message: Message) -> Iterator[Member]:
    """Yield the attached files, of forwarded messages, too; a message that is attached is in the text."""
    parts = [part for part in message.walk() if _is_attachment(part)]
    names = attachment_names(map(_file_name, parts))
    for part, name in zip(parts, names, strict=True):
        payload = part.get_payload(decode=True)
        yield Member(name, payload if isinstance(payload, bytes) else b"")


def _is_attachment(part: Message) -> bool:
    if part.is_multipart() or part.get_content_maintype() == "message":
        return False
    is_text = part.get_content_type() in TEXT_TYPES
    has_file_name = part.get_filename() is not None
    return has_file_name or not is_text or part.get_content_disposition() == "attachment"


def _file_name(part: Message) -> str:
    """Return the name of an attached file, with the suffix of its type if it has none; empty if unknown."""
    name = part.get_filename()
    if name is not None:
        return _decode_header(name)
    suffix = guess_extension(part.get_content_type()) or ""
    return f"attachment{suffix}" if suffix else ""


def _header(message: Message, name: str) -> str:
    return " ".join(_decode_header(str(message.get(name, ""))).split())


def _decode_header(value: str) -> str:
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return value
    return "".join(part if isinstance(part, str) else _decode(part, charset) for part, charset in parts)


def _decode(data: bytes, charset: str | None) -> str:
    for name in (charset, "utf-8", "cp1252"):
        try:
            return data.decode(name or "ascii")
        except (LookupError, ValueError):
            continue
    return data.decode("latin-1")


def _date(message: Message) -> str | None:
    try:
        date = parsedate_to_datetime(str(message.get("date", "")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).isoformat()
