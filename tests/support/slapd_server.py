"""A real LDAP directory in a process of its own: Debian's slapd, unpacked by `scripts/slapd.sh`."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from ldap3 import MODIFY_ADD, MODIFY_DELETE, SAFE_SYNC, Connection, Server

SCRIPT: Final = Path(__file__).parents[2] / "scripts" / "slapd.sh"
BASE: Final = "dc=example,dc=org"
ADMINISTRATOR: Final = f"cn=administrator,{BASE}"
READER: Final = f"cn=reader,{BASE}"
PASSWORD: Final = "correct horse: battery"
MAX_START_SECONDS: Final = 30

CONFIGURATION: Final = """\
include {schema}/core.schema
include {schema}/cosine.schema
include {schema}/inetorgperson.schema
pidfile {folder}/slapd.pid
modulepath {modules}
moduleload back_mdb
TLSCACertificateFile {folder}/certificate.pem
TLSCertificateFile {folder}/certificate.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
maxsize 67108864
dbnosync
suffix {base}
rootdn {administrator}
rootpw "{password}"
directory {folder}/data
{rules}access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact={reader} read by * none
"""


def person(number: int) -> str:
    return f"uid=person{number},ou=people,{BASE}"


def group(name: str) -> str:
    return f"cn={name},ou=groups,{BASE}"


class SlapdServer:
    """A directory with people and groups, which a test changes as its administrator."""

    def __init__(self, folder: Path, root: Path, *, name: str = "127.0.0.1") -> None:
        self.folder = folder
        self.port, self.tls_port = _free_port(), _free_port()
        self.ca_file = str(folder / "certificate.pem")
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir()
        _write_certificate(folder, name)

    @property
    def url(self) -> str:
        return f"ldaps://127.0.0.1:{self.tls_port}"

    @property
    def plain_url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    def start(self, *rules: str) -> None:
        """Start it, with rules of access that come first."""
        configuration = CONFIGURATION.format(
            schema=self._root / "etc/ldap/schema",
            modules=self._root / "usr/lib/ldap",
            folder=self.folder,
            base=BASE,
            administrator=ADMINISTRATOR,
            password=PASSWORD,
            reader=READER,
            rules="".join(f"{rule}\n" for rule in rules),
        )
        (self.folder / "slapd.conf").write_text(configuration)
        libraries = [self._root / place for place in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
        command = [str(self._root / "usr/sbin/slapd"), "-f", str(self.folder / "slapd.conf")]
        command += ["-h", f"{self.plain_url}/ {self.url}/", "-d", "0"]
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self._wait_until_ready()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    @contextmanager
    def administrator(self) -> Iterator[Connection]:
        """A connection that may change everything."""
        connection = Connection(
            Server(self.plain_url),
            ADMINISTRATOR,
            PASSWORD,
            client_strategy=SAFE_SYNC,
            auto_bind="NO_TLS",
            raise_exceptions=True,
        )
        try:
            yield connection
        finally:
            connection.unbind()

    def add(self, name: str, classes: Sequence[str], attributes: Mapping[str, object]) -> None:
        with self.administrator() as connection:
            connection.add(name, list(classes), dict(attributes))

    def add_members(self, name: str, *members: str) -> None:
        with self.administrator() as connection:
            connection.modify(name, {"member": [(MODIFY_ADD, list(members))]})

    def remove_members(self, name: str, *members: str) -> None:
        with self.administrator() as connection:
            connection.modify(name, {"member": [(MODIFY_DELETE, list(members))]})

    def delete(self, name: str) -> None:
        with self.administrator() as connection:
            connection.delete(name)

    def fill(self, people: int, groups: Mapping[str, Sequence[str]]) -> None:
        """Add people, groups with these members, and the account of the reader."""
        with self.administrator() as connection:
            connection.add(BASE, ["dcObject", "organization"], {"dc": "example", "o": "Example"})
            reader = {"cn": "reader", "userPassword": PASSWORD}
            connection.add(READER, ["simpleSecurityObject", "organizationalRole"], reader)
            for unit in ("people", "groups"):
                connection.add(f"ou={unit},{BASE}", ["organizationalUnit"], {"ou": unit})
            for number in range(people):
                names = {"cn": f"Person {number}", "sn": str(number), "mail": f"person{number}@example.org"}
                connection.add(person(number), ["inetOrgPerson"], {**names, "employeeNumber": f"e{number}"})
        self.fill_groups(groups)

    def fill_groups(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Add groups with these members."""
        with self.administrator() as connection:
            for name, members in groups.items():
                connection.add(group(name), ["groupOfNames"], {"cn": name, "member": list(members)})

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + MAX_START_SECONDS
        while time.monotonic() < end and self._process is not None and self._process.poll() is None:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", self.tls_port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())


@contextmanager
def run_slapd(folder: Path, *, name: str = "127.0.0.1") -> Iterator[SlapdServer]:
    """A running directory without entries, whose certificate is for a name or an address."""
    server = SlapdServer(folder, find_slapd(), name=name)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def find_slapd() -> Path:
    """The folder with slapd. Where it cannot be had, the test is skipped, or fails in `make test-sources`."""
    script = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, check=False)
    if script.returncode == 0:
        return Path(script.stdout.strip())
    assert "SOURCE_SERVERS" not in os.environ, script.stderr
    pytest.skip(f"slapd cannot be had here: {script.stderr[-200:]}")


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _write_certificate(folder: Path, name: str) -> None:
    """Write a certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a directory of the tests")])
    is_address = name[0].isdigit()
    names: x509.GeneralName = x509.IPAddress(IPv4Address(name)) if is_address else x509.DNSName(name)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").touch(mode=0o600)
    (folder / "key.pem").write_bytes(secret)
