"""A message as every format of mail has it: its people, its thread, its text and its attachments."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from email.utils import getaddresses

from conspectus.deferred import dataclass
from conspectus.model.records import Json
from conspectus.sources.files.extract import Extract, Member
from conspectus.sources.files.missing_words import ShownText, join_notices, missing_words_notice

PEOPLE = ("from", "to", "cc")
IDS = ("message-id", "in-reply-to")
MAX_HEADER_LENGTH = 2_000
MAX_PEOPLE = 200
MAX_NAME_LENGTH = 60
MIN_PLAIN_SHARE = 0.5
"""Share of the words of a web page that the plain text beside it must have to be read in its place."""
ENCRYPTED = "is encrypted; its text is not read"
UNREAD_RTF = "its text is damaged RTF and was not read; save the message as .eml or .html"
_MESSAGE_ID = re.compile(r"<[^<>\s]+>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Mail:
    """A message. `headers` are decoded, by lower-case name; `sent` is its date in ISO 8601.

    `shown_texts` are those that its sender gave it, of which `text` was chosen.
    """

    media_type: str
    headers: Mapping[str, str]
    text: str
    sent: str | None = None
    attachments: tuple[Member, ...] = ()
    shown_texts: tuple[ShownText, ...] = ()
    is_encrypted: bool = False
    has_unread_rtf: bool = False


def choose_version(plain_text: str, page_text: str) -> str:
    """Return the plain text of a message, unless the web page of it says more than twice as much."""
    is_stub = len(plain_text.split()) < MIN_PLAIN_SHARE * len(page_text.split())
    return page_text if is_stub else plain_text


def mail_extract(mail: Mail) -> Extract:
    """Return the text of a message with its people and its thread, and its attachments as members."""
    subject = mail.headers.get("subject", "")
    names = [one.name for one in mail.attachments]
    text = "\n\n".join(filter(None, (mail.text, f"Attachments: {', '.join(names)}" if names else "")))
    return Extract(
        text or subject,
        mail.media_type,
        title=subject,
        syntax="plain",
        author=mail.headers.get("from") or None,
        occurred=mail.sent,
        thread=_thread_of(mail.headers),
        metadata=_metadata_of(mail.headers),
        members=mail.attachments,
        notice=join_notices(
            ENCRYPTED if mail.is_encrypted else None,
            UNREAD_RTF if mail.has_unread_rtf else None,
            missing_words_notice(text, mail.shown_texts),
        ),
    )


def attachment_names(names: Iterable[str]) -> list[str]:
    """Return a name for each attachment: without folders, and each only once."""
    taken: set[str] = set()
    unique = []
    for number, name in enumerate(names, 1):
        last_part = _CONTROL.sub(" ", name).replace("\\", "/").rpartition("/")[2].strip(" .")
        base = last_part or f"attachment {number}"
        free = base if base not in taken else f"{number} {base}"
        taken.add(free)
        unique.append(free)
    return unique


def message_name(subject: str, sent: str | None, identity: bytes) -> str:
    """Return the name of a message in a mailbox: its date and subject, and what tells it from others."""
    words = " ".join(_CONTROL.sub(" ", subject).replace("/", " ").split())[:MAX_NAME_LENGTH].strip(" .")
    digest = hashlib.sha256(identity).hexdigest()[:8]
    return " ".join(filter(None, ((sent or "")[:10], words, digest))) + ".eml"


def _thread_of(headers: Mapping[str, str]) -> str | None:
    """Return the id of the message that began the thread, as far as the headers say."""
    for name in ("references", "in-reply-to", "message-id"):
        ids = _MESSAGE_ID.findall(headers.get(name, ""))
        if ids:
            return str(ids[0])
    return None


def _metadata_of(headers: Mapping[str, str]) -> Mapping[str, Json]:
    """Return people and ids; `people` are all addresses, so that a filter finds one of several."""
    shown = {
        name.replace("-", "_"): headers[name][:MAX_HEADER_LENGTH]
        for name in (*PEOPLE, *IDS)
        if headers.get(name)
    }
    lines = [headers[name][:MAX_HEADER_LENGTH] for name in PEOPLE if headers.get(name)]
    addresses = (address.lower() for _, address in getaddresses(lines) if "@" in address)
    people: list[Json] = []
    people += [*dict.fromkeys(addresses)][:MAX_PEOPLE]
    return {**shown, "people": people} if people else shown
