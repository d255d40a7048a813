"""Messages of Outlook (.msg), whose properties the package `python-oxmsg` reads."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from email.parser import HeaderParser
from io import BytesIO
from typing import Any

from conspectus.deferred import dataclass
from conspectus.errors import MissingExtra, optional
from conspectus.sources.files.extract import Extract, Member, Refused, Unsupported
from conspectus.sources.files.html import read_visible_text
from conspectus.sources.files.mail import Mail, attachment_names, choose_version, mail_extract
from conspectus.sources.files.missing_words import ShownText
from conspectus.sources.files.rtf import MODULES as RTF_MODULES
from conspectus.sources.files.rtf import read_compressed_rtf

MEDIA_TYPE = "application/vnd.ms-outlook"
MAX_DEPTH = 20
MODULES = ("olefile", "oxmsg.storage", "oxmsg.properties")
ATTACHED_MESSAGE = "__substg1.0_3701000D"
MESSAGE_HEADER_BYTES, ATTACHED_HEADER_BYTES, PART_HEADER_BYTES = 32, 24, 8
"""Bytes before the properties of a message, of one that is attached, and of attachments and recipients."""
RECIPIENT_KINDS = {1: "to", 2: "cc"}
SUBJECT, BODY, HTML, HTML_TEXT, SENT, TRANSPORT_HEADERS = 0x0037, 0x1000, 0x1013, 0x1013, 0x0039, 0x007D
SENDER_NAMES, SENDER_ADDRESSES = (0x0C1A, 0x0042), (0x5D01, 0x5D02, 0x0C1F, 0x0065)
RECIPIENT_KIND, RECIPIENT_NAME, RECIPIENT_ADDRESSES = 0x0C15, 0x3001, (0x39FE, 0x3003)
RTF = 0x1009
FILE_NAMES, FILE_BYTES = (0x3707, 0x3704, 0x3001), 0x3701
IDS = {"message-id": 0x1035, "in-reply-to": 0x1042, "references": 0x1039}
DISPLAYED = {"to": 0x0E04, "cc": 0x0E03}
FAULTS = (OSError, ValueError, LookupError, AssertionError, struct.error, TypeError, AttributeError)


def load_library() -> None:
    """Import the package, if it is installed: later a child process can load no module."""
    with suppress(MissingExtra):
        _library()
        for module in RTF_MODULES:
            optional(module, "outlook", "striprtf")


def read_message(data: bytes) -> Extract:
    """Return the text of a message, and its attachments. Raises Refused."""
    try:
        olefile, storage, properties = _library()
    except MissingExtra as missing:
        raise Unsupported(str(missing)) from None
    try:
        with olefile.OleFileIO(BytesIO(data)) as file:
            root = storage.Storage.from_ole(file)
        return mail_extract(_Message(properties.Properties, root, MESSAGE_HEADER_BYTES).mail())
    except FAULTS as fault:
        raise Refused(f"a damaged message of Outlook: {str(fault)[:100]}") from None


def _library() -> list[Any]:
    return [optional(module, "outlook", "python-oxmsg") for module in MODULES]


@dataclass(frozen=True, slots=True)
class _Message:
    """A message in its storage; `make_properties` reads the properties of a storage."""

    make_properties: Any
    storage: Any
    header_bytes: int

    def mail(self) -> Mail:
        """Return the message as those of every format."""
        files = [self._part_properties(part) for part in self._files(MAX_DEPTH)]
        names = attachment_names(_first_text(properties, FILE_NAMES) for properties in files)
        contents = [properties.binary_prop_value(FILE_BYTES) or b"" for properties in files]
        sent = self._properties.date_prop_value(SENT)
        page = self._page()
        body, *forwarded = self._texts(MAX_DEPTH)
        has_rtf = bool(self._properties.binary_prop_value(RTF))
        return Mail(
            MEDIA_TYPE,
            self._headers(),
            "\n\n".join(filter(None, (body, *forwarded))),
            sent.isoformat() if isinstance(sent, datetime) else None,
            tuple(Member(name, content) for name, content in zip(names, contents, strict=True)),
            (ShownText("", page),) if page else (),
            has_unread_rtf=has_rtf and not body,
        )

    @property
    def _properties(self) -> Any:
        return self.make_properties(self.storage, properties_header_offset=self.header_bytes)

    def _files(self, depth: int) -> Iterator[Any]:
        """Yield the storages of the attached files, of attached messages, too."""
        for part in self.storage.iter_attachment_storages():
            inner = _attached_message(part)
            if inner is None:
                yield part
            elif depth:
                yield from _Message(self.make_properties, inner, ATTACHED_HEADER_BYTES)._files(depth - 1)

    def _part_properties(self, part: Any) -> Any:
        return self.make_properties(part, properties_header_offset=PART_HEADER_BYTES)

    def _headers(self) -> Mapping[str, str]:
        """Return people, ids and subject from the properties, or from the headers that came with it."""
        properties = self._properties
        sent_headers = HeaderParser().parsestr(_first_text(properties, (TRANSPORT_HEADERS,)))
        recipients = self._recipients()
        texts = {
            **{name: _first_text(properties, (pid,)) for name, pid in {**IDS, **DISPLAYED}.items()},
            **recipients,
            "from": _format_address(
                _first_text(properties, SENDER_NAMES), _address(properties, SENDER_ADDRESSES)
            ),
            "subject": _first_text(properties, (SUBJECT,)),
        }
        return {
            name: " ".join((text or str(sent_headers.get(name, ""))).split()) for name, text in texts.items()
        }

    def _recipients(self) -> Mapping[str, str]:
        """Return the recipients of each kind, with names and addresses."""
        by_kind: dict[str, list[str]] = {}
        for part in self.storage.iter_recipient_storages():
            properties = self._part_properties(part)
            kind = RECIPIENT_KINDS.get(properties.int_prop_value(RECIPIENT_KIND) or 1)
            name = _first_text(properties, (RECIPIENT_NAME,))
            recipient = _format_address(name, _address(properties, RECIPIENT_ADDRESSES))
            if kind is not None and recipient:
                by_kind.setdefault(kind, []).append(recipient)
        return {kind: ", ".join(recipients) for kind, recipients in by_kind.items()}

    def _texts(self, depth: int) -> Iterator[str]:
        """Yield the text of the message, then of those that are attached to it as messages."""
        if depth == 0:
            raise Refused("is nested too deeply; save the inner message as a file of its own")
        yield self._body()
        for part in self.storage.iter_attachment_storages():
            inner = _attached_message(part)
            if inner is None:
                continue
            message = _Message(self.make_properties, inner, ATTACHED_HEADER_BYTES)
            headers = message._headers()
            shown = [name for name in ("from", "to", "cc", "subject") if headers.get(name)]
            yield "\n".join(
                ("Forwarded message", *(f"{name.capitalize()}: {headers[name]}" for name in shown))
            )
            yield from message._texts(depth - 1)

    def _body(self) -> str:
        properties = self._properties
        body = _first_text(properties, (BODY,)).replace("\r\n", "\n").replace("\r", "\n").strip()
        return choose_version(body, self._page()) or self._rtf_text()

    def _rtf_text(self) -> str:
        """Return the text of the message as RTF, which is the only one of some messages."""
        return read_compressed_rtf(self._properties.binary_prop_value(RTF) or b"")

    def _page(self) -> str:
        """Return the text of the message as a web page; empty if it has none."""
        properties = self._properties
        page = properties.binary_prop_value(HTML)
        if page is not None:
            return read_visible_text(
                page.decode(properties.body_encoding, "replace").encode(), "utf-8"
            ).text()
        return read_visible_text(_first_text(properties, (HTML_TEXT,)).encode(), "utf-8").text()


def _attached_message(part: Any) -> Any | None:
    """Return the storage of a message that is attached as such; None for a file."""
    return next((storage for storage in part.storages if storage.name == ATTACHED_MESSAGE), None)


def _first_text(properties: Any, pids: tuple[int, ...]) -> str:
    texts = (str(properties.str_prop_value(pid) or "").replace("\0", "") for pid in pids)
    return next(filter(None, texts), "")


def _address(properties: Any, pids: tuple[int, ...]) -> str:
    """Return the first address of the internet; those of Exchange say nothing to people."""
    addresses = (_first_text(properties, (pid,)) for pid in pids)
    return next((address for address in addresses if "@" in address), "")


def _format_address(name: str, address: str) -> str:
    if not address or name in {"", address}:
        return address or name
    return f"{name} <{address}>"
