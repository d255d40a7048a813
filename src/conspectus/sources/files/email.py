"""E-mail: headers, the text of the message, and the names of attachments."""

from collections.abc import Iterator
from datetime import UTC
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any

from conspectus.sources.files.extract import Extract, Refused
from conspectus.sources.files.html import visible

MEDIA_TYPE = "message/rfc822"
PEOPLE = ("from", "to", "cc")
DEEPEST = 20


def read_mail(data: bytes) -> Extract:
    """Return the text of an e-mail message. Raises Refused."""
    message = BytesParser().parsebytes(data)
    if not any(name in message for name in ("from", "to", "subject", "date", "received")):
        raise Refused("is not an e-mail: it has no sender, subject or date")
    headers = {name: _header(message, name) for name in (*PEOPLE, "subject", "message-id", "in-reply-to")}
    texts = [text.strip() for text in _texts(message, DEEPEST)]
    attached = list(_attachments(message))
    if attached:
        texts.append(f"Attachments: {', '.join(attached)}")
    return Extract(
        "\n\n".join(filter(None, texts)) or headers["subject"],
        MEDIA_TYPE,
        title=headers["subject"],
        syntax="plain",
        author=headers["from"] or None,
        occurred=_date(message),
        metadata={
            name.replace("-", "_"): header for name, header in headers.items() if header and name != "subject"
        },
    )


def _texts(message: Any, depth: int) -> Iterator[str]:
    """Return the readable text of each part; one of several alternatives."""
    if depth == 0:
        raise Refused("is nested too deeply")
    if message.get_content_type() == "multipart/alternative":
        yield next(filter(str.strip, _alternatives(message, depth)), "")
    elif message.get_content_type() == "message/rfc822":
        for part in message.get_payload() if message.is_multipart() else ():
            head = (f"{name.capitalize()}: {_header(part, name)}" for name in (*PEOPLE, "date", "subject"))
            yield "\n".join(("Forwarded message", *(line for line in head if not line.endswith(": "))))
            yield from _texts(part, depth - 1)
    elif message.is_multipart():
        for part in message.get_payload():
            yield from _texts(part, depth - 1)
    elif message.get_content_maintype() == "text" and not message.get_filename():
        yield _text(message)


def _alternatives(message: Any, depth: int) -> Iterator[str]:
    """Return the text of the first readable alternative, plain text first."""
    parts = message.get_payload() if message.is_multipart() else []
    for part in sorted(parts, key=lambda part: part.get_content_type() != "text/plain"):
        yield "\n\n".join(filter(str.strip, _texts(part, depth - 1)))


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    text = _decoded(data, part.get_content_charset())
    if part.get_content_type() == "text/html":
        return visible(text.encode(errors="replace"), "utf-8").text()
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _attachments(message: Message) -> Iterator[str]:
    for part in message.walk():
        name = part.get_filename()
        if name:
            yield " ".join(_unfolded(name).split())


def _header(message: Message, name: str) -> str:
    return " ".join(_unfolded(str(message.get(name, ""))).split())


def _unfolded(value: str) -> str:
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return value
    return "".join(part if isinstance(part, str) else _decoded(part, charset) for part, charset in parts)


def _decoded(data: bytes, charset: str | None) -> str:
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
