"""The connector with buckets, held to the kit on a real service with real policies."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from tests.support.connection_sites import open_site
from tests.support.gated_office import GatedOffice
from tests.support.seaweed_server import ADMINISTRATOR, ARN, PEOPLE, SeaweedServer, keys_of, run_seaweed

from conspectus.connectors import EVERYONE
from conspectus.errors import InvalidInput
from conspectus.testing.connectors import (
    ConnectorProperties,
    MirroringProperties,
    VerifyingProperties,
    open_gate,
)
from conspectus_connectors.s3 import BucketConnector, BucketOptions, Buckets


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedServer]:
    with run_seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@dataclass
class Office(GatedOffice):
    """A bucket, as its users change it. Pages are objects `SPACE/NAME.md`."""

    service: SeaweedServer
    mirror: bool
    verify: bool = False
    bucket: str = field(default_factory=lambda: f"office-{uuid4().hex[:12]}")
    viewers: dict[str, frozenset[str]] = field(default_factory=dict)
    kind: str = "s3"
    people: tuple[str, ...] = tuple(f"{ARN}{person}" for person in PEOPLE)
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.service.administer("PUT", f"/{self.bucket}")

    @property
    def options(self) -> dict[str, Any]:
        return {
            "endpoint": self.gate.address,
            "bucket": self.bucket,
            "mirror": self.mirror,
            "verify": self.verify,
        }

    @property
    def credentials(self) -> dict[str, str]:
        return dict(zip(("access_key", "secret_key"), keys_of(ADMINISTRATOR), strict=True))

    def connect(self) -> BucketConnector:
        connector = Buckets().create(BucketOptions(**self.options, **self.credentials), self.site)
        connector._batch = 2
        return connector

    async def put(self, space: str, name: str, text: str) -> None:
        self.service.administer("PUT", self.path(space, name), text.encode())

    async def delete(self, space: str, name: str) -> None:
        self.service.administer("DELETE", self.path(space, name))

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        text = self.service.administer("GET", self.path(space, name)).content
        self.service.administer("PUT", self.path(to_space, to_name), text)
        await self.delete(space, name)

    async def remove_space(self, space: str) -> None:
        listing = self.service.administer("GET", f"/{self.bucket}?list-type=2").text
        for key in re.findall(f"<Key>({space}/.*?)</Key>", listing):
            self.service.administer("DELETE", f"/{self.bucket}/{key}")

    async def share(self, space: str, name: str, viewers: frozenset[str]) -> None:
        self.viewers[self.path(space, name)] = viewers
        statements = [
            {
                "Effect": "Allow",
                "Principal": "*" if EVERYONE in viewers else {"AWS": sorted(viewers)},
                "Action": "s3:GetObject",
                "Resource": f"arn:aws:s3:::{path[1:]}",
            }
            for path, viewers in self.viewers.items()
            if viewers
        ]
        path = f"/{self.bucket}?policy="
        if statements:
            policy = {"Version": "2012-10-17", "Statement": statements}
            self.service.administer("PUT", path, json.dumps(policy).encode())
        else:
            self.service.administer("DELETE", path)

    async def set_members(self, group: str, members: frozenset[str]) -> None:
        raise AssertionError("policies know no groups")

    async def may_read(self, person: str, space: str, name: str) -> bool:
        response = self.service.ask(person.removeprefix(ARN), "GET", self.path(space, name))
        assert response.status_code in {200, 403, 404}, response.text
        return response.status_code == 200

    def path(self, space: str, name: str) -> str:
        return f"/{self.bucket}/{space}/{name}.md"


@pytest.fixture
async def office(seaweed: SeaweedServer) -> AsyncIterator[Office]:
    async with open_gate(seaweed.port) as gate, open_site() as site:
        yield Office(gate, site, seaweed, mirror=False)


@pytest.fixture
def guarded_office(office: Office) -> Office:
    office.mirror = True
    return office


@pytest.fixture
def verified_office(guarded_office: Office) -> Office:
    guarded_office.verify = True
    return guarded_office


class TestBuckets(ConnectorProperties):
    server = "office"
    follows_moves = False


class TestMirroredBuckets(MirroringProperties):
    server = "guarded_office"
    follows_moves = False


class TestVerifiedBuckets(VerifyingProperties):
    server = "verified_office"


def test_rights_that_are_not_mirrored_cannot_be_verified() -> None:
    with pytest.raises(InvalidInput, match="verify: needs mirror"):
        BucketOptions("https://s3.example.org", "office", *keys_of("ann"), verify=True)


@pytest.mark.parametrize("endpoint", ["ftp://s3.example.org", "https://me:pin@s3.example.org", "http://a/b"])
def test_other_addresses_are_refused(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="endpoint: must be an http or https address"):
        BucketOptions(endpoint, "office", "id", "secret")


def test_no_secret_is_in_the_options() -> None:
    assert "secret-of" not in repr(BucketOptions("https://s3.example.org", "office", *keys_of("ann")))


async def test_files_of_all_kinds_are_read(office: Office) -> None:
    await office.put("One", "first", "# A title\n\nalpha words")
    office.service.administer("PUT", f"/{office.bucket}/One/page.html", b"<p>beta <b>words</b></p>")
    office.service.administer("PUT", f"/{office.bucket}/film.mp4", b"\x00\x00\x00\x18ftypmp42")
    connector = office.connect()
    listings = [listing async for listing in connector.changes(None)]
    documents = [await connector.fetch(page) for listing in listings for page in listing.entries]
    assert [document.metadata["path"] for document in documents] == ["One/first.md", "One/page.html"]
    assert "beta words" in documents[1].text
    assert [name for listing in listings for name in listing.not_pages] == ["film.mp4"]
