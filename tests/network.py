"""A network for tests that leads nowhere, or only to the loopback."""

import ssl
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class DeadNetwork(httpcore.AsyncNetworkBackend):
    """Refuses every connection, and remembers the addresses; those in `alive` are on the loopback."""

    def __init__(self, alive: Iterable[str] = ()) -> None:
        self.tried: list[str] = []
        self._alive = frozenset(alive)
        self._real = httpcore.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, **options):
        self.tried.append(host)
        if host not in self._alive:
            raise httpcore.ConnectError("nothing is there")
        return await self._real.connect_tcp("127.0.0.1", port)


class Directory:
    """Looks up names. Each has one list of addresses, or several lists that are given in turn."""

    def __init__(self, names: Mapping[str, Sequence[str] | Sequence[Sequence[str]]], usual: str = "") -> None:
        self._names = names
        self._usual = usual
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.asked.append(name)
        addresses = self._names.get(name, [self._usual] if self._usual else [])
        if addresses and not isinstance(addresses[0], str):
            addresses = addresses[min(self.asked.count(name), len(addresses)) - 1]
        return addresses


def certificates(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's side of TLS, with a certificate for one name that the client trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = serialization.Encoding.PEM
    secret = key.private_bytes(text, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "pair.pem").write_bytes(secret + built.public_bytes(text))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "pair.pem")
    return server, ssl.create_default_context(cadata=built.public_bytes(text).decode())
