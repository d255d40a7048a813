"""The connector with mailboxes, held to the kit on a real server with real access control lists."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from typing import Any

import pytest
from tests.support.connection_sites import open_site
from tests.support.dovecot_server import ADMINISTRATOR, HOST, PASSWORD, DovecotServer, may_open, run_dovecot
from tests.support.line_gate import LineGate, open_line_gate
from tests.support.source_servers import require_source_servers

from conspectus.connectors import EVERYONE, ConnectionSite
from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput, TooLarge
from conspectus.sources.web.address_policy import AddressPolicy
from conspectus.sources.web.allowed_hosts import AllowedHosts
from conspectus.testing.connectors import ConnectorProperties, MirroringProperties
from conspectus_connectors.imap import MailboxConnector, Mailboxes, MailboxOptions

pytestmark = pytest.mark.sources


@pytest.fixture(scope="session")
def dovecot() -> Iterator[DovecotServer]:
    require_source_servers()
    with run_dovecot() as server:
        yield server


@dataclass
class MailOffice:
    """Mailboxes, as their users change them. Pages are messages, found by the id in their header."""

    server: DovecotServer
    gate: LineGate
    site: ConnectionSite
    mirror: bool
    domain: str = ""
    kind: str = "imap"
    groups: tuple[str, ...] = ()
    mailboxes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.domain = self.server.open_office()

    @property
    def people(self) -> tuple[str, ...]:
        return tuple(f"user:{name}@{self.domain}" for name in ("ann", "ben", "cy", "dee"))

    @property
    def user(self) -> str:
        return f"{ADMINISTRATOR}@{self.domain}"

    @property
    def options(self) -> dict[str, Any]:
        address = {"host": "127.0.0.1", "port": self.gate.port, "encryption": "none"}
        return {**address, "user": self.user, "mirror": self.mirror}

    @property
    def credentials(self) -> dict[str, str]:
        return {"password": PASSWORD}

    @property
    def requests(self) -> int:
        return self.gate.requests

    def stop_after(self, requests: int | None) -> None:
        self.gate.stop_after(requests)

    def connect(self, **others: Any) -> MailboxConnector:
        options = MailboxOptions(**{**self.options, **self.credentials, **others})
        connector = Mailboxes().create(options, self.site)
        connector._batch = 2
        return connector

    async def put(self, space: str, name: str, text: str) -> None:
        await asyncio.to_thread(self.replace_message, space, name, message_of(name, text))

    async def delete(self, space: str, name: str) -> None:
        await asyncio.to_thread(self.replace_message, space, name, None)

    def replace_message(self, space: str, name: str, message: EmailMessage | None) -> None:
        """Delete the messages of this name, and append one."""
        with self.server.connect(self.user) as client:
            if not client.folder_exists(space):
                client.create_folder(space)
            client.select_folder(space)
            former = client.search(["HEADER", "Message-ID", id_of(name)])
            if message is not None:
                client.append(space, message.as_bytes())
            if former:
                client.delete_messages(former)
                client.expunge(former)

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        await asyncio.to_thread(self._move, space, name, to_space, to_name)

    def _move(self, space: str, name: str, to_space: str, to_name: str) -> None:
        with self.server.connect(self.user) as client:
            client.select_folder(space, readonly=True)
            (number,) = client.search(["HEADER", "Message-ID", id_of(name)])
            body = client.fetch([number], ["BODY[TEXT]"])[number][b"BODY[TEXT]"].decode()
        self.replace_message(to_space, to_name, message_of(to_name, body))
        self.replace_message(space, name, None)

    async def remove_space(self, space: str) -> None:
        with self.server.connect(self.user) as client:
            client.delete_folder(space)

    async def share(self, space: str, name: str, viewers: frozenset[str]) -> None:
        await asyncio.to_thread(self._share, space, viewers)

    def _share(self, space: str, viewers: frozenset[str]) -> None:
        with self.server.connect(self.user) as client:
            for person in (*self.people, EVERYONE):
                identifier = "anyone" if person == EVERYONE else person.removeprefix("user:")
                if person in viewers:
                    client.setacl(space, identifier, "lr")
                else:
                    client._command_and_check("deleteacl", client._normalise_folder(space), identifier)

    async def set_members(self, group: str, members: frozenset[str]) -> None:
        raise AssertionError("IMAP lists no members of groups")

    async def may_read(self, person: str, space: str, name: str) -> bool:
        with self.server.connect(person.removeprefix("user:")) as client:
            return may_open(client, space, id_of(name))


def id_of(name: str) -> str:
    return f"<{hashlib.sha256(name.encode()).hexdigest()[:16]}@office.example>"


def message_of(name: str, text: str) -> EmailMessage:
    """A message whose subject is its name. An empty one has no subject."""
    message = EmailMessage()
    message["From"] = "Ann Lee <ann@office.example>"
    message["Message-ID"] = id_of(name)
    if text.strip():
        message["Subject"] = name
    message.set_content(text)
    return message


@pytest.fixture
async def mail_office(dovecot: DovecotServer) -> AsyncIterator[MailOffice]:
    async with open_line_gate(dovecot.port) as gate, open_site() as site:
        yield MailOffice(dovecot, gate, site, mirror=False)


@pytest.fixture
def guarded_mail_office(mail_office: MailOffice) -> MailOffice:
    mail_office.mirror = True
    return mail_office


class TestMailboxes(ConnectorProperties):
    server = "mail_office"
    follows_moves = False


class TestMirroredMailboxes(MirroringProperties):
    server = "guarded_mail_office"
    follows_moves = False


@pytest.mark.parametrize("encryption", ["tls", "starttls"])
async def test_certificates_are_those_of_the_host(
    mail_office: MailOffice, encryption: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mail_office.put("One", "first", "alpha words")
    server = mail_office.server
    port = server.tls_port if encryption == "tls" else server.port
    mail_office.site = replace(mail_office.site, hosts=local_hosts(HOST))
    with pytest.raises(FetchFailed, match="certificate"):
        await list_keys(mail_office.connect(host=HOST, port=port, encryption=encryption))
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    assert len(await list_keys(mail_office.connect(host=HOST, port=port, encryption=encryption))) == 1
    mail_office.site = replace(mail_office.site, hosts=local_hosts("other.example"))
    with pytest.raises(FetchFailed, match="certificate"):
        await list_keys(mail_office.connect(host="other.example", port=port, encryption=encryption))


def local_hosts(name: str) -> AllowedHosts:
    """A name that leads to this machine, and is allowed."""

    async def look_up(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    return AllowedHosts(AddressPolicy(frozenset({name})), look_up)


async def list_keys(connector: MailboxConnector) -> list[str]:
    try:
        listings = [listing async for listing in connector.changes(None)]
    finally:
        await connector.close()
    return [entry.key for listing in listings for entry in listing.entries]


async def test_no_address_inside_is_reached(mail_office: MailOffice) -> None:
    mail_office.site = replace(mail_office.site, hosts=AllowedHosts(AddressPolicy()))
    with pytest.raises(ForbiddenAddress):
        await list_keys(mail_office.connect())
    assert mail_office.requests == 0


async def test_messages_of_one_id_are_all_kept(mail_office: MailOffice) -> None:
    """Nobody hides a message by sending another with its id."""
    await mail_office.put("One", "first", "alpha words")
    with mail_office.server.connect(mail_office.user) as client:
        client.append("One", message_of("first", "forged words").as_bytes())
    connector = mail_office.connect()
    [listing] = [listing async for listing in connector.changes(None)]
    texts = [(await connector.fetch(entry)).text.strip() for entry in listing.entries]
    await connector.close()
    assert texts == ["alpha words", "forged words"]


async def test_a_mailbox_without_changes_costs_one_request(mail_office: MailOffice) -> None:
    await mail_office.put("One", "first", "alpha words")
    connector = mail_office.connect(pattern="O*")
    [listing] = [listing async for listing in connector.changes(None)]
    before = mail_office.requests
    [unchanged] = [listing async for listing in connector.changes(listing.cursor)]
    await connector.close()
    assert (unchanged.entries, unchanged.gone) == ((), ())
    assert mail_office.requests - before == 2, "the other one lists the mailboxes"


async def test_attachments_people_and_threads_are_read(mail_office: MailOffice) -> None:
    message = message_of("first", "alpha words")
    message["To"] = "Ben <ben@office.example>"
    message["References"] = "<root@office.example>"
    message.add_attachment("part,price\npump,90\n", subtype="csv", filename="prices.csv")
    mail_office.replace_message("One", "first", message)
    connector = mail_office.connect(pattern="On*")
    [listing] = [listing async for listing in connector.changes(None)]
    document = await connector.fetch(listing.entries[0])
    await connector.close()
    assert "pump" in document.text
    assert (document.title, document.thread) == ("first", "<root@office.example>")
    assert document.metadata["people"] == ["ann@office.example", "ben@office.example"]
    assert document.metadata["path"] == "One/first.eml"


async def test_more_messages_than_allowed_are_refused(mail_office: MailOffice) -> None:
    await mail_office.put("One", "first", "alpha words")
    await mail_office.put("One", "second", "beta words")
    with pytest.raises(TooLarge):
        await list_keys(mail_office.connect(max_messages=1))


def test_other_encryptions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="encryption: must be one of tls, starttls, none"):
        MailboxOptions("imap.example.org", "reader", PASSWORD, encryption="ssl3")
    assert PASSWORD not in repr(MailboxOptions("imap.example.org", "reader", PASSWORD))
