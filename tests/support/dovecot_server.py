"""A real IMAP server, Dovecot, with any number of offices: mailboxes and users of a domain of their own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from tests.support.source_servers import answers, choose_port, open_folder, path_inside, run_server

ADMINISTRATOR: Final = "reader"
HOST: Final = "mail.example.org"
"""The name in its certificate."""
PASSWORD: Final = "hunter2-correct-horse"
MAIL_USER: Final = 8
"""Debian's user `mail`."""
ALL_RIGHTS: Final = "lrwstipekxa"
CONFIGURATION: Final = """
protocols = imap
listen = 127.0.0.1
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
ssl = yes
ssl_cert = <{folder}/certificate.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_failure_delay = 0
auth_verbose = no
first_valid_uid = 8
mail_plugins = acl
mail_max_userip_connections = 100
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=8 gid=8 home={folder}/mail/%d/home/%n
}}
protocol imap {{
  mail_plugins = acl imap_acl
}}
plugin {{
  acl = vfile
  acl_anyone = allow
}}
namespace own {{
  inbox = yes
  prefix = INBOX/
  separator = /
  list = no
  location = maildir:~/mail
}}
namespace team {{
  type = public
  prefix =
  separator = /
  subscriptions = no
  location = maildir:{folder}/mail/%d/team:LAYOUT=fs:INDEX={folder}/mail/%d/index/%n
}}
"""


@dataclass
class DovecotServer:
    """The server: its ports in clear and with TLS, its folder, and the certificate of `HOST`."""

    port: int
    tls_port: int
    folder: Path

    @property
    def certificate(self) -> Path:
        """The certificate that signs itself."""
        return self.folder / "certificate.pem"

    def open_office(self) -> str:
        """Return a domain of its own, without mailboxes, whose administrator may do everything."""
        domain = f"{uuid4().hex[:12]}.example"
        team = self.folder / "mail" / domain / "team"
        team.mkdir(parents=True)
        (team / "dovecot-acl").write_text(f"user={ADMINISTRATOR}@{domain} {ALL_RIGHTS}\n")
        for path in (team.parent, team, team / "dovecot-acl"):
            os.chown(path, MAIL_USER, MAIL_USER)
        return domain

    @contextmanager
    def connect(self, user: str) -> Iterator[IMAPClient]:
        """A connection of a user."""
        with IMAPClient("127.0.0.1", self.port, ssl=False, timeout=30) as client:
            client.login(user, PASSWORD)
            yield client


@contextmanager
def run_dovecot() -> Iterator[DovecotServer]:
    """A running server without offices."""
    with open_folder("dovecot") as folder:
        port, tls_port = choose_port(), choose_port()
        settings = CONFIGURATION.format(
            folder=path_inside(folder), port=port, tls_port=tls_port, password=PASSWORD
        )
        write_certificate(folder)
        (folder / "dovecot.conf").write_text(settings)
        (folder / "mail").mkdir()
        os.chown(folder / "mail", MAIL_USER, MAIL_USER)
        command = ("dovecot", "-F", "-c", f"{path_inside(folder)}/dovecot.conf")
        with run_server(*command, folder=folder, is_ready=lambda: answers(port)):
            yield DovecotServer(port, tls_port, folder)


def write_certificate(folder: Path) -> None:
    """Write a certificate of `HOST`, which signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    formats = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*formats))


def may_open(client: IMAPClient, mailbox: str, message_id: str) -> bool:
    """Whether a user reads a message with this id in a mailbox."""
    with suppress(IMAPClientError):
        client.select_folder(mailbox, readonly=True)
        numbers = client.search(["HEADER", "Message-ID", message_id])
        return bool(numbers) and bool(client.fetch(numbers, ["BODY.PEEK[]"]))
    return False
