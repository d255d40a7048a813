"""Groups of an LDAP directory: the members of a few groups, groups in groups included, read entry by entry.

Each connection is encrypted, and its certificate is checked. Nothing is searched for and nothing is written:
a group or a person is read by its name. Whatever may have left somebody out is an error.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from ldap3 import BASE, NONE, SAFE_SYNC, Connection, Server, Tls
from ldap3.core.exceptions import (
    LDAPException,
    LDAPInvalidCredentialsResult,
    LDAPInvalidDnError,
    LDAPInvalidDNSyntaxResult,
    LDAPNoSuchObjectResult,
    LDAPSessionTerminatedByServerError,
)
from ldap3.utils.dn import parse_dn

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput

MEMBERS: Final = ("member", "uniqueMember")
"""The attributes of a group with the names of its members."""
NEVER_EMPTY: Final = frozenset({"groupofnames", "groupofuniquenames"})
"""Classes of groups that have a member always: one without members withholds them."""
BINARY_ID: Final = "objectguid"
"""The attribute of Active Directory that is an id of 16 bytes."""
MAX_SUBJECT: Final = 255
TLS_FAULT: Final = re.compile(r"\[SSL: \w+\] (?P<reason>[^()]+)")
"""The words of the standard library in an error of a connection."""
CERTIFICATE_ADVICE: Final = (
    "CONSPECTUS_LDAP_URL needs the host of the certificate, and CONSPECTUS_LDAP_CA_FILE its authority"
)
PORT_ADVICE: Final = "ldaps:// needs a port with TLS, and ldap:// one with StartTLS"


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """How a directory is read. `password` is empty for an anonymous reader."""

    url: str
    name: str
    password: str
    ca_file: str
    subject: str
    timeout_seconds: int
    max_nesting: int
    max_members: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A group or a person. A group has members; `subject` is None for an entry that has none, or several."""

    members: tuple[str, ...]
    subject: str | None
    is_group: bool


class LdapDirectory:
    """Reads the groups of a directory, each time with a connection of its own."""

    def __init__(self, options: DirectoryOptions) -> None:
        self._options = options

    async def read_members(self, groups: Sequence[str]) -> Mapping[str, frozenset[str] | None]:
        """Return the subjects of the members of each group, nested ones included; None: it is deleted.

        Raises FetchFailed if any of them may not be complete, and InvalidInput for a name that is none.
        """
        return await asyncio.to_thread(self._read_members, groups)

    async def find_problems(self) -> Sequence[str]:
        """Ask the directory, and return a sentence for each problem of its configuration."""
        try:
            await asyncio.to_thread(self._read_members, ())
        except FetchFailed as fault:
            return [f"groups of the directory cannot be read: {fault}"]
        return []

    def _read_members(self, groups: Sequence[str]) -> Mapping[str, frozenset[str] | None]:
        names = {group: _normalize(group) for group in groups}
        try:
            connection = self._make_connection()
            try:
                self._bind(connection)
                reader = _GroupReader(connection, self._options)
                members = {group: reader.read_group(name) for group, name in names.items()}
                reader.require_subjects()
                return members
            finally:
                if connection.socket is not None:
                    connection.socket.close()
        except LDAPException as fault:
            raise self._fail(_describe(fault)) from fault
        except OSError as fault:
            raise self._fail(fault.strerror or str(fault)) from fault
        except _MaybeIncomplete as fault:
            raise self._fail(str(fault)) from None

    def _make_connection(self) -> Connection:
        """Return a connection that is not open."""
        options = self._options
        server = Server(
            options.url,
            use_ssl=options.url.startswith("ldaps:"),
            tls=CheckedTls(ca_certs_file=options.ca_file or None),
            get_info=NONE,
            connect_timeout=options.timeout_seconds,
        )
        return Connection(
            server,
            user=options.name or None,
            password=options.password or None,
            client_strategy=SAFE_SYNC,
            read_only=True,
            raise_exceptions=True,
            auto_referrals=False,
            receive_timeout=options.timeout_seconds,
        )

    def _bind(self, connection: Connection) -> None:
        """Open a connection, encrypt it, and only then send the password."""
        connection.open()
        if not connection.server.ssl:
            connection.start_tls()
        connection.bind()

    def _fail(self, reason: str) -> FetchFailed:
        return FetchFailed(self._options.url, reason, passing=True)


class CheckedTls(Tls):
    """TLS whose certificate and name are checked by the standard library."""

    def wrap_socket(self, connection: Connection, do_handshake: bool = False) -> None:
        """Encrypt a connection, before anything is sent. Raises OSError."""
        context = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)


class _MaybeIncomplete(Exception):
    """Members were left out, or may have been."""


class _GroupReader:
    """Reads groups with one connection, and each entry once."""

    def __init__(self, connection: Connection, options: DirectoryOptions) -> None:
        self._connection = connection
        self._options = options
        self._entries: dict[str, Entry | None] = {}

    def read_group(self, name: str) -> frozenset[str] | None:
        """Return the subjects of the members of a group; None if it is deleted."""
        group = self._read_entry(name)
        if group is None:
            self._require_parent(name)
            return None
        if not group.is_group:
            raise _MaybeIncomplete(f"{name} is no group with the attribute member or uniqueMember")
        subjects, seen = set[str](), {name}
        level = list(group.members)
        for depth in range(self._options.max_nesting + 1):
            unseen = [member for member in dict.fromkeys(level) if member not in seen]
            seen.update(unseen)
            level = []
            for member in unseen:
                entry = self._read_entry(member)
                if entry is None:
                    continue
                if not entry.is_group:
                    subjects.update(() if entry.subject is None else (entry.subject,))
                elif depth < self._options.max_nesting:
                    level += entry.members
        return frozenset(subjects)

    def require_subjects(self) -> None:
        """Tell a wrong attribute, or one that is withheld, from people without a subject.

        With no subject at all, everybody would leave every group.
        """
        people = [entry for entry in self._entries.values() if entry is not None and not entry.is_group]
        if people and all(person.subject is None for person in people):
            raise _MaybeIncomplete(
                f"none of {len(people):,} people has the attribute {self._options.subject}; correct"
                f" CONSPECTUS_LDAP_SUBJECT, or the rights of {self._options.name or 'anonymous'}"
            )

    def _read_entry(self, name: str) -> Entry | None:
        """Return an entry; None if there is none of that name."""
        if name not in self._entries:
            if len(self._entries) > self._options.max_members:
                raise _MaybeIncomplete(
                    f"the groups have more than {self._options.max_members:,} members; raise"
                    " CONSPECTUS_LDAP_MAX_MEMBERS"
                )
            self._entries[name] = self._fetch_entry(name)
        return self._entries[name]

    def _fetch_entry(self, name: str) -> Entry | None:
        attributes = self._search(name, ["objectClass", *MEMBERS, self._options.subject])
        if attributes is None:
            return None
        members = [_decode(member) for key in MEMBERS for member in attributes.get(key.lower(), ())]
        if any(";range=" in attribute for attribute in attributes):
            raise _MaybeIncomplete(f"{name} has more members than the directory sends")
        classes = {_decode(kind).lower() for kind in attributes.get("objectclass", ())}
        if not members and classes & NEVER_EMPTY:
            raise _MaybeIncomplete(f"{name} withholds its members from {self._options.name or 'anonymous'}")
        subject = self._read_subject(attributes)
        is_group = bool(members) or "group" in classes
        return Entry(tuple(map(_normalize, members)), subject, is_group)

    def _search(self, name: str, attributes: Sequence[str]) -> Mapping[str, Sequence[bytes]] | None:
        """Return the attributes of an entry by their names in lower case; None if there is none."""
        try:
            _, _, answers, _ = self._connection.search(
                name, "(objectClass=*)", search_scope=BASE, attributes=list(attributes)
            )
        except LDAPNoSuchObjectResult:
            return None
        entries = [answer for answer in answers or () if answer.get("type") == "searchResEntry"]
        if len(entries) != 1:
            raise _MaybeIncomplete(f"{name} is on another server, or withheld")
        raw: Mapping[str, Sequence[bytes]] = entries[0]["raw_attributes"]
        return {attribute.lower(): tuple(values) for attribute, values in raw.items() if values}

    def _read_subject(self, attributes: Mapping[str, Sequence[bytes]]) -> str | None:
        name = self._options.subject.lower()
        subjects = attributes.get(name, ())
        if len(subjects) != 1:
            return None
        if name == BINARY_ID and len(subjects[0]) == len(UUID(int=0).bytes):
            return str(UUID(bytes_le=subjects[0]))
        subject = subjects[0].decode("utf-8", "replace")
        return subject if 0 < len(subject) <= MAX_SUBJECT and subject.isprintable() else None

    def _require_parent(self, name: str) -> None:
        """Tell a deleted group from one that is withheld: whoever may read its parent would see it."""
        parent = "".join(f"{kind}={text}{end}" for kind, text, end in parse_dn(name)[1:])
        if not parent or self._search(parent, ["objectClass"]) is None:
            raise _MaybeIncomplete(
                f"neither {name} nor what it is in can be read; check its name and the rights of"
                f" {self._options.name or 'anonymous'}"
            )


def _normalize(name: str) -> str:
    """Return a name in one way of writing, so that it is read once. Raises InvalidInput."""
    try:
        return "".join(f"{kind}={text}{end}" for kind, text, end in parse_dn(name, strip=True)).lower()
    except LDAPInvalidDnError:
        raise InvalidInput(
            "claim", f"{name[:100]!r} is no name of a group, as cn=team,ou=groups,dc=example"
        ) from None


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _describe(fault: LDAPException) -> str:
    """Return what a directory said and what to do, without the names and passwords that it was sent."""
    if isinstance(fault, LDAPInvalidCredentialsResult):
        return (
            "the directory refuses the name or the password; correct CONSPECTUS_LDAP_BIND_DN and"
            " CONSPECTUS_LDAP_BIND_PASSWORD"
        )
    if isinstance(fault, LDAPInvalidDNSyntaxResult):
        return "the directory refuses a name; correct CONSPECTUS_LDAP_BIND_DN, or the claim of the group"
    description: Any = getattr(fault, "description", None)
    reason = str(description or fault or type(fault).__name__)[:200]
    tls_fault = TLS_FAULT.search(reason)
    if tls_fault is not None:
        reason = tls_fault["reason"].strip()
    elif not isinstance(fault, LDAPSessionTerminatedByServerError):
        return reason
    is_certificate = "certificate" in reason
    return f"{reason}; {CERTIFICATE_ADVICE if is_certificate else PORT_ADVICE}"
