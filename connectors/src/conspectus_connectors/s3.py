"""Objects of a bucket of S3 and compatible services. With `mirror`, its policy says who may read them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from botocore.credentials import Credentials

from conspectus.connectors import (
    EVERYONE,
    AccessListing,
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    FileReader,
    Length,
    Listing,
    NewDocument,
    PacedFetcher,
    Secret,
)
from conspectus.errors import FetchFailed, InvalidInput
from conspectus_connectors.bucket_policy import BucketPolicy, parse_policy
from conspectus_connectors.path_listing import RemoteFile, list_changes
from conspectus_connectors.s3_api import Bucket, is_bucket_address

MAX_OBJECTS_PER_REQUEST: Final = 1_000
BATCH: Final = 500


@dataclass(frozen=True)
class BucketOptions(Checked):
    """How to reach a bucket, and with whose keys."""

    endpoint: Annotated[
        str,
        Length(1, 500),
        "Address of the service, without a path.",
        Example("https://s3.eu-central-1.amazonaws.com"),
    ]
    bucket: Annotated[str, Length(3, 63), "Name of the bucket.", Example("handbook")]
    access_key: Annotated[str, Length(1, 200), "Id of the access key.", Secret] = field(repr=False)
    secret_key: Annotated[str, Length(1, 200), "Secret of the access key.", Secret] = field(repr=False)
    prefix: Annotated[str, Length(0, 1_000), "Beginning of the keys that are read.", Example("docs/")] = ""
    region: Annotated[str, Length(1, 100), "Region that requests are signed for."] = "us-east-1"
    mirror: Annotated[bool, "Let only those read whom the policy of the bucket lets read."] = False
    verify: Annotated[bool, "With mirror, read the policy again before a document is shown."] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_bucket_address(self.endpoint):
            raise InvalidInput("endpoint", "must be an http or https address without path and credentials")
        if self.verify and not self.mirror:
            raise InvalidInput("verify", "needs mirror")


class Buckets:
    """Creates connectors with buckets."""

    title: ClassVar[str] = "Bucket of S3 or a compatible service"
    options: ClassVar[type[BucketOptions]] = BucketOptions

    def is_local(self, options: BucketOptions) -> bool:
        """Return False: the fetcher reaches nothing inside without the settings' leave."""
        return False

    def create(self, options: BucketOptions, site: ConnectionSite) -> "BucketConnector":
        """Return the connector of a bucket."""
        credentials = Credentials(options.access_key, options.secret_key)
        fetcher = PacedFetcher(site.fetcher)
        bucket = Bucket(fetcher, options.endpoint, options.bucket, options.region, credentials)
        kind = MirroringBucketConnector if options.mirror else BucketConnector
        return kind(bucket, options.prefix, site.files)


class BucketConnector:
    """Reads the objects of a bucket. Keys are those of the objects: a renamed object is another one."""

    def __init__(self, bucket: Bucket, prefix: str, files: FileReader, *, batch: int = BATCH) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._files = files
        self._batch = batch

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield what changed since the cursor, by the tags of the objects."""
        policy = await self._read_policy()
        files: dict[str, RemoteFile] = {}
        not_pages: list[str] = []
        async for objects in self._bucket.list_objects(self._prefix, size=MAX_OBJECTS_PER_REQUEST):
            for stored in objects:
                if stored.key.endswith("/"):
                    continue
                if not self._files.reads(stored.key):
                    not_pages.append(stored.key)
                    continue
                viewers = None if policy is None else policy.viewers_of(self._bucket.name, stored.key)
                files[stored.key] = RemoteFile(stored.key, stored.tag, viewers)
        for listing in list_changes(files, cursor, size=self._batch, not_pages=not_pages):
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return an object as a document."""
        fetched = await self._bucket.read_object(entry.key)
        return await self._files.read(fetched.body, entry.key, charset=fetched.charset)

    async def close(self) -> None:
        """Hold nothing."""

    async def _read_policy(self) -> BucketPolicy | None:
        return None


class MirroringBucketConnector(BucketConnector):
    """Reads a bucket with its policy. Viewers are principals as the policy names them."""

    async def access(self, cursor: str | None) -> AsyncIterator[AccessListing]:
        """Yield the viewers of all objects if the policy has changed."""
        text = await self._bucket.read_policy()
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest == cursor:
            return
        policy = self._parse(text)
        async for objects in self._bucket.list_objects(self._prefix, size=MAX_OBJECTS_PER_REQUEST):
            keys = [stored.key for stored in objects]
            yield AccessListing("", {key: policy.viewers_of(self._bucket.name, key) for key in keys})
        yield AccessListing(digest)

    async def list_openable(self, person: str, entries: Sequence[ConnectorEntry]) -> list[str]:
        """Return the keys of objects that exist and that the policy lets a principal read now."""
        policy = await self._read_policy()
        viewers = {person, EVERYONE}
        allowed = [
            entry.key
            for entry in entries
            if not viewers.isdisjoint(policy.viewers_of(self._bucket.name, entry.key))
        ]
        exists = await asyncio.gather(*map(self._bucket.has_object, allowed))
        return [key for key, is_there in zip(allowed, exists, strict=True) if is_there]

    async def _read_policy(self) -> BucketPolicy:
        return self._parse(await self._bucket.read_policy())

    def _parse(self, text: str) -> BucketPolicy:
        try:
            return parse_policy(text)
        except ValueError as fault:
            raise FetchFailed(self._bucket.name, f"has a policy that cannot be read: {fault}") from fault
