"""Mailboxes of IMAP servers. With `mirror`, their access control lists say who may read them."""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final

from conspectus.connectors import (
    AccessListing,
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    FileReader,
    Length,
    Listing,
    NewDocument,
    Range,
    Secret,
)
from conspectus.errors import InvalidInput, NotFound, TooLarge
from conspectus_connectors.imap_api import ENCRYPTIONS, ImapServer, MailAccount, Mailbox, MailboxState
from conspectus_connectors.mailbox_rights import list_viewers
from conspectus_connectors.path_listing import RemoteFile, list_changes, read_fingerprints

BATCH: Final = 500
KEY_LETTERS: Final = 20
MAX_NAME_LETTERS: Final = 60
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f/\\]+")


@dataclass(frozen=True)
class MailboxOptions(Checked):
    """How to reach mailboxes, and as whom."""

    host: Annotated[str, Length(1, 255), "Name or address of the server.", Example("imap.example.org")]
    user: Annotated[str, Length(1, 200), "Name of the user who reads.", Example("reader@example.org")]
    password: Annotated[str, Length(1, 500), "Password of that user, best one for this alone.", Secret] = (
        field(repr=False)
    )
    port: Annotated[int, Range(1, 65_535), "Port of the server."] = 993
    encryption: Annotated[str, "tls from the start (port 993), starttls (port 143), or none."] = "tls"
    pattern: Annotated[
        str,
        Length(1, 500),
        "Mailboxes that are read; * is any letters, % those of one level.",
        Example("Team/%"),
    ] = "*"
    max_messages: Annotated[int, Range(1, 1_000_000), "Most messages that are listed."] = 100_000
    mirror: Annotated[bool, "Let only those read whom the lists of the mailboxes let read."] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encryption not in ENCRYPTIONS:
            raise InvalidInput("encryption", f"must be one of {', '.join(ENCRYPTIONS)}")


class Mailboxes:
    """Creates connectors with mailboxes."""

    title: ClassVar[str] = "Mailboxes of an IMAP server"
    options: ClassVar[type[MailboxOptions]] = MailboxOptions

    def is_local(self, options: MailboxOptions) -> bool:
        """Return False: no address inside is reached without the settings' leave."""
        return False

    def create(self, options: MailboxOptions, site: ConnectionSite) -> "MailboxConnector":
        """Return the connector of the mailboxes."""
        account = MailAccount(options.host, options.port, options.encryption, options.user, options.password)
        server = ImapServer(account, site.hosts, site.settings.fetch_timeout_seconds)
        kind = MirroringMailboxConnector if options.mirror else MailboxConnector
        return kind(server, options, site.files, max_bytes=site.settings.max_file_bytes)


class MailboxConnector:
    """Reads messages. A key is the mailbox and the id in the header of a message: drafts keep theirs."""

    def __init__(
        self,
        server: ImapServer,
        options: MailboxOptions,
        files: FileReader,
        *,
        max_bytes: int,
        batch: int = BATCH,
    ) -> None:
        self._server = server
        self._options = options
        self._files = files
        self._max_bytes = max_bytes
        self._batch = batch
        self._message_ids: dict[tuple[str, int], dict[int, str]] = {}

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield what changed since the cursor. Mailboxes where nothing did are not opened."""
        mailboxes = await self._server.list_mailboxes(self._options.pattern)
        viewers = await self._read_viewers(mailboxes)
        former = _group_by_mailbox(read_fingerprints(cursor) or {})
        files: dict[str, RemoteFile] = {}
        for mailbox in mailboxes:
            numbers = await self._list_messages(mailbox.name, former.get(mailbox.name, {}))
            for key, number in numbers.items():
                files[key] = RemoteFile(key, number, viewers[mailbox.name], title=mailbox.name)
            if len(files) > self._options.max_messages:
                limit = self._options.max_messages
                raise TooLarge("connection", size=len(files), limit=limit, unit="messages")
        for listing in list_changes(files, cursor, size=self._batch, space_of=mailbox_of):
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return a message as a document, with the texts of its attachments."""
        validity, _, number = entry.revision.partition(".")
        body = await self._server.read_message(
            entry.space, int(validity), int(number), max_bytes=self._max_bytes
        )
        document = await self._files.read(body, f"{entry.space}/message.eml")
        name = _UNPRINTABLE.sub(" ", document.title)[:MAX_NAME_LETTERS].strip(" .") or "message"
        return replace(document, metadata={**document.metadata, "path": f"{entry.space}/{name}.eml"})

    async def close(self) -> None:
        """Log out."""
        await self._server.close()

    async def _list_messages(self, mailbox: str, former: Mapping[str, str]) -> dict[str, str]:
        """Return the revisions of all messages of a mailbox by key, those of the former listing at hand."""
        try:
            state = await self._server.read_state(mailbox)
            if _is_listed(state, former):
                return dict(former)
            return await self._read_messages(mailbox, former)
        except NotFound:  # It was deleted since it was listed.
            return {}

    async def _read_messages(self, mailbox: str, former: Mapping[str, str]) -> dict[str, str]:
        validity, numbers = await self._server.list_numbers(mailbox)
        known = {revision: key for key, revision in former.items()}
        revisions = {number: f"{validity}.{number}" for number in numbers}
        messages = {known[revision]: revision for revision in revisions.values() if revision in known}
        unknown = [number for number, revision in revisions.items() if revision not in known]
        message_ids = await self._read_message_ids(mailbox, validity, unknown)
        for number in unknown:
            key, other_key = _keys_of(mailbox, message_ids[number], number)
            messages[other_key if key in messages else key] = revisions[number]
        return messages

    async def _read_message_ids(self, mailbox: str, validity: int, numbers: list[int]) -> dict[int, str]:
        """Return the ids of messages of the open mailbox by number, each asked for once."""
        known = self._message_ids.setdefault((mailbox, validity), {})
        unknown = [number for number in numbers if number not in known]
        async for number, message_id in self._server.read_message_ids(unknown):
            known[number] = message_id
        return {number: known.get(number, "") for number in numbers}

    async def _read_viewers(self, mailboxes: list[Mailbox]) -> dict[str, tuple[str, ...] | None]:
        return dict.fromkeys(mailbox.name for mailbox in mailboxes)


class MirroringMailboxConnector(MailboxConnector):
    """Reads mailboxes with their access control lists. Viewers are users of the server: `user:ann`."""

    async def access(self, cursor: str | None) -> AsyncIterator[AccessListing]:
        """Yield the viewers of all messages of the mailboxes whose viewers have changed."""
        mailboxes = await self._server.list_mailboxes(self._options.pattern)
        viewers = await self._read_viewers(mailboxes)
        former = _read_access_cursor(cursor)
        if viewers == former:
            return
        for mailbox, names in viewers.items():
            if former.get(mailbox) != names:
                keys = await self._list_keys(mailbox)
                former[mailbox] = names
                yield AccessListing(json.dumps(former), dict.fromkeys(keys, names or ()))
        yield AccessListing(json.dumps(viewers))

    async def _list_keys(self, mailbox: str) -> list[str]:
        """Return all keys that messages of a mailbox may have been given."""
        try:
            validity, numbers = await self._server.list_numbers(mailbox)
        except NotFound:
            return []
        message_ids = await self._read_message_ids(mailbox, validity, numbers)
        return [key for number in numbers for key in _keys_of(mailbox, message_ids[number], number)]

    async def _read_viewers(self, mailboxes: list[Mailbox]) -> dict[str, tuple[str, ...] | None]:
        """Return who may read each mailbox: nobody where the list may not be read."""
        return {
            mailbox.name: list_viewers(await self._server.read_rights(mailbox.name) or ())
            for mailbox in mailboxes
        }


def mailbox_of(key: str) -> str:
    """Return the mailbox of a key."""
    return key.rpartition("/")[0]


def _keys_of(mailbox: str, message_id: str, number: int) -> tuple[str, str]:
    """Return the key of a message, and that which it has if another message has the same id."""
    name = hashlib.sha256(message_id.encode()).hexdigest()[:KEY_LETTERS] if message_id else f"{number}"
    return f"{mailbox}/{name}", f"{mailbox}/{name}-{number}"


def _group_by_mailbox(fingerprints: Mapping[str, str]) -> dict[str, dict[str, str]]:
    mailboxes: dict[str, dict[str, str]] = {}
    for key, revision in fingerprints.items():
        mailboxes.setdefault(mailbox_of(key), {})[key] = revision
    return mailboxes


def _is_listed(state: MailboxState, former: Mapping[str, str]) -> bool:
    """Whether a mailbox has the messages of its last listing: numbers only grow, and none is given twice."""
    if state.count != len(former):
        return False
    pairs = [revision.split(".") for revision in former.values()]
    is_same_mailbox = all(validity == str(state.validity) for validity, _ in pairs)
    last = max((int(number) for _, number in pairs), default=state.next_number - 1)
    return is_same_mailbox and last + 1 == state.next_number


def _read_access_cursor(cursor: str | None) -> dict[str, tuple[str, ...] | None]:
    """Return the viewers of mailboxes in a cursor; none for a cursor of something else."""
    try:
        mailboxes = json.loads(cursor or "")
        return {str(mailbox): tuple(map(str, names)) for mailbox, names in mailboxes.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
