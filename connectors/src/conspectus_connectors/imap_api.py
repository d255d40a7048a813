"""The commands of IMAP (RFC 9051) that a connector sends. The library blocks, so they run in threads."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesHeaderParser
from operator import methodcaller
from typing import Any, Final, TypeVar

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError

from conspectus.connectors import HostResolver
from conspectus.errors import FetchFailed, NotFound

T = TypeVar("T")

MAX_MESSAGES_PER_COMMAND: Final = 500
MAX_NUMBERS_PER_SEARCH: Final = 20_000
"""A longer answer would not fit into a line of the library."""
ID_HEADER: Final = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
CLOSED_MAILBOXES: Final = frozenset({b"\\noselect", b"\\nonexistent"})
ENCRYPTIONS: Final = ("tls", "starttls", "none")
TEMPORARY: Final = ("[UNAVAILABLE]", "[INUSE]", "[LIMIT]", "[SERVERBUG]")
MISSING: Final = ("[NONEXISTENT]", "[TRYCREATE]")
UNAUTHORIZED: Final = 401


@dataclass(frozen=True, slots=True)
class MailAccount:
    """Where a server is, and who reads."""

    host: str
    port: int
    encryption: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A mailbox that can be opened. Parts of its name are separated by `delimiter`, if it has any."""

    name: str
    delimiter: str


@dataclass(frozen=True, slots=True)
class MailboxState:
    """What changes with the messages of a mailbox. Its numbers mean the same under the same `validity`."""

    validity: int
    next_number: int
    count: int


class ImapServer:
    """A server, and one connection with it. A connection that breaks is opened again by the next command.

    `seconds` is how long an answer may take. Commands are sent one at a time.
    """

    def __init__(self, account: MailAccount, hosts: HostResolver, seconds: float) -> None:
        self._account = account
        self._hosts = hosts
        self._seconds = seconds
        self._client: IMAPClient | None = None
        self._opened: tuple[str, int] | None = None

    async def list_mailboxes(self, pattern: str) -> list[Mailbox]:
        """Return the mailboxes that can be opened, by name. A pattern has `*` and `%` for any letters."""
        rows = await self._run(lambda client: client.list_folders("", pattern))
        mailboxes = [
            Mailbox(str(name), (delimiter or b"").decode())
            for flags, delimiter, name in rows
            if not {flag.lower() for flag in flags} & CLOSED_MAILBOXES
        ]
        return sorted(mailboxes, key=lambda mailbox: mailbox.name)

    async def read_state(self, mailbox: str) -> MailboxState:
        """Return the state of a mailbox without opening it."""
        names = ("UIDVALIDITY", "UIDNEXT", "MESSAGES")
        status = await self._run(lambda client: client.folder_status(mailbox, names))
        return MailboxState(*(int(status[name.encode()]) for name in names))

    async def list_numbers(self, mailbox: str) -> tuple[int, list[int]]:
        """Open a mailbox, and return its validity and the numbers (UID) of its messages."""
        status = await self._run(lambda client: self._open(client, mailbox))
        numbers: list[int] = []
        for first in range(1, int(status[b"EXISTS"]) + 1, MAX_NUMBERS_PER_SEARCH):
            part = f"{first}:{first + MAX_NUMBERS_PER_SEARCH - 1}"
            numbers += await self._run(methodcaller("search", [part]))
        return int(status[b"UIDVALIDITY"]), sorted(numbers)

    async def read_message_ids(self, numbers: Sequence[int]) -> AsyncIterator[tuple[int, str]]:
        """Yield numbers of the open mailbox with the ids in the headers of their messages; empty for none."""
        for start in range(0, len(numbers), MAX_MESSAGES_PER_COMMAND):
            part = numbers[start : start + MAX_MESSAGES_PER_COMMAND]
            answers = await self._run(methodcaller("fetch", part, [ID_HEADER]))
            for number, answer in sorted(answers.items()):
                header = next((body for name, body in answer.items() if name.startswith(b"BODY[")), b"")
                message_id = BytesHeaderParser().parsebytes(header or b"").get("Message-ID", "")
                yield int(number), str(message_id).strip()

    async def read_message(self, mailbox: str, validity: int, number: int, *, max_bytes: int) -> bytes:
        """Return a message, cut off after more than `max_bytes`. Raises NotFound if it is gone."""
        part = f"BODY.PEEK[]<0.{max_bytes + 1}>"

        def read(client: IMAPClient) -> Any:
            if self._opened != (mailbox, validity):
                self._open(client, mailbox)
            return client.fetch([number], [part]) if self._opened == (mailbox, validity) else {}

        answer = (await self._run(read)).get(number, {})
        body = next((body for name, body in answer.items() if name.startswith(b"BODY[")), None)
        if body is None:
            raise NotFound("message", f"{mailbox} {number}")
        return bytes(body)

    async def read_rights(self, mailbox: str) -> list[tuple[str, str]] | None:
        """Return the access control list of a mailbox: identifiers and rights. None if it may not be read."""

        def read(client: IMAPClient) -> list[tuple[str, str]] | None:
            if not client.has_capability("ACL"):
                raise FetchFailed(self._account.host, "has no access control lists (RFC 4314)")
            try:
                return [(_text(name), _text(rights)) for name, rights in client.getacl(mailbox)]
            except IMAPClientAbortError:
                raise
            except IMAPClientError:
                return None

        return await self._run(read)

    async def close(self) -> None:
        """Log out."""
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(_log_out, client)

    def _open(self, client: IMAPClient, mailbox: str) -> Any:
        """Open a mailbox to read it; nothing is marked as seen. Raises NotFound if there is none."""
        self._opened = None
        try:
            status = client.select_folder(mailbox, readonly=True)
        except IMAPClientError as fault:
            if any(code in str(fault) for code in MISSING):
                raise NotFound("mailbox", mailbox) from fault
            raise
        self._opened = (mailbox, int(status[b"UIDVALIDITY"]))
        return status

    async def _run(self, command: Callable[[IMAPClient], T]) -> T:
        if self._client is None:
            addresses = await self._hosts.resolve(self._account.host, self._account.port)
            self._client = await asyncio.to_thread(self._connect, addresses)
        return await asyncio.to_thread(self._answer, self._client, command)

    def _answer(self, client: IMAPClient, command: Callable[[IMAPClient], T]) -> T:
        try:
            with self._convert_errors():
                return command(client)
        except FetchFailed as fault:
            if fault.passing:
                self._client = self._opened = None
                _log_out(client)
            raise

    def _connect(self, addresses: Sequence[str]) -> IMAPClient:
        with self._convert_errors():
            for address in addresses[:-1]:
                with suppress(OSError):
                    return self._log_in(address)
            return self._log_in(addresses[-1])

    def _log_in(self, address: str) -> IMAPClient:
        account = self._account
        context = _create_context(account.host)
        client = IMAPClient(
            address,
            account.port,
            ssl=account.encryption == "tls",
            ssl_context=context,
            timeout=SocketTimeout(self._seconds, self._seconds),
        )
        try:
            if account.encryption == "starttls":
                client.starttls(context)
            client.login(account.user, account.password)
        except BaseException:
            _log_out(client)
            raise
        return client

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of the library. None of them repeats what was sent."""
        host = self._account.host
        try:
            yield
        except LoginError as fault:
            is_broken = isinstance(fault.__context__, IMAPClientAbortError)
            if is_broken or any(code in str(fault) for code in TEMPORARY):
                raise FetchFailed(host, "ended the login", passing=True) from fault
            raise FetchFailed(host, f"refused the login: {fault}", status=UNAUTHORIZED) from fault
        except (IMAPClientAbortError, OSError) as fault:
            raise FetchFailed(host, f"did not answer: {fault}", passing=True) from fault
        except (IMAPClientError, ValueError, KeyError) as fault:
            is_passing = any(code in str(fault) for code in TEMPORARY)
            raise FetchFailed(host, f"answered: {fault}", passing=is_passing) from fault


class _PinnedContext(ssl.SSLContext):
    """Checks the certificate of a host by its name, though the connection goes to a checked address."""

    host: str

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        return super().wrap_socket(*args, **{**options, "server_hostname": self.host})


def _create_context(host: str) -> ssl.SSLContext:
    context = _PinnedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.host = host
    context.load_default_certs()
    return context


def _log_out(client: IMAPClient) -> None:
    with suppress(IMAPClientError, OSError):
        client.shutdown()


def _text(token: Any) -> str:
    text = token.decode("utf-8", "replace") if isinstance(token, bytes) else str(token)
    return text.strip('"')
