"""The requests to an S3 service that a connector sends: signed by botocore, sent by the guarded fetcher."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import unquote_str
from botocore.credentials import Credentials

from conspectus.connectors import Fetched, Fetcher
from conspectus.errors import FetchFailed, NotFound

EMPTY_HASH: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""SHA-256 of a request without a body."""
NAMESPACE: Final = "{http://s3.amazonaws.com/doc/2006-03-01/}"
UNRESERVED: Final = "-_.~/"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a listing: its key, and the tag of its content."""

    key: str
    tag: str


class Bucket:
    """A bucket of a service, addressed by path."""

    def __init__(
        self, fetcher: Fetcher, endpoint: str, bucket: str, region: str, credentials: Credentials
    ) -> None:
        self.name = bucket
        self._fetcher = fetcher
        self._address = f"{endpoint.rstrip('/')}/{quote(bucket, safe='')}"
        self._signer = SigV4Auth(credentials, "s3", region)

    async def list_objects(self, prefix: str, *, size: int) -> AsyncIterator[list[StoredObject]]:
        """Yield the objects below a prefix, at most `size` at once. Raises FetchFailed."""
        parameters = {"list-type": "2", "encoding-type": "url", "max-keys": str(size), "prefix": prefix}
        while True:
            root = self._parse(await self._require(f"?{_encode(parameters)}"))
            contents = root.iter(f"{NAMESPACE}Contents")
            yield [_read_object_node(node) for node in contents]
            token = _text(root, "NextContinuationToken")
            if _text(root, "IsTruncated") != "true" or not token:
                return
            if parameters.get("continuation-token") == token:
                raise FetchFailed(self._address, "continues without progress")
            parameters["continuation-token"] = token

    async def has_object(self, key: str) -> bool:
        """Return whether an object exists: the first key that begins with its key is its own."""
        async for objects in self.list_objects(key, size=1):
            return any(stored.key == key for stored in objects)
        return False

    async def read_policy(self) -> str:
        """Return the policy of the bucket; an empty one if it has none. Raises FetchFailed."""
        fetched = await self._ask("?policy=")
        if fetched.status == 404 and b"NoSuchBucketPolicy" in fetched.body:
            return '{"Statement": []}'
        return self._check(fetched).body.decode("utf-8", "replace")

    async def read_object(self, key: str) -> Fetched:
        """Return an object. Raises NotFound if it is gone, TooLarge and FetchFailed."""
        fetched = await self._ask(f"/{quote(key, safe=UNRESERVED)}")
        if fetched.status == 404:
            raise NotFound("object", key)
        return self._check(fetched)

    async def _require(self, path: str) -> Fetched:
        return self._check(await self._ask(path))

    async def _ask(self, path: str) -> Fetched:
        url = f"{self._address}{path}"
        request = AWSRequest("GET", url, headers={"X-Amz-Content-SHA256": EMPTY_HASH})
        self._signer.add_auth(request)
        return await self._fetcher.fetch(url, headers=dict(request.headers.items()))

    def _check(self, fetched: Fetched) -> Fetched:
        if fetched.status == 200:
            return fetched
        code = b""
        if b"<Code>" in fetched.body:
            code = fetched.body.partition(b"<Code>")[2].partition(b"</Code>")[0][:100]
        reason = f"responded with HTTP {fetched.status} {code.decode('utf-8', 'replace')}".rstrip()
        is_passing = fetched.status in {429, 500, 502, 503, 504}
        raise FetchFailed(self._address, reason, status=fetched.status, passing=is_passing)

    def _parse(self, fetched: Fetched) -> ElementTree.Element:
        try:
            return ElementTree.fromstring(fetched.body)
        except ElementTree.ParseError as fault:
            raise FetchFailed(self._address, f"answered with XML that cannot be read: {fault}") from fault


def is_bucket_address(endpoint: str) -> bool:
    """Whether a text is an address of a service: http or https, without path, query and credentials."""
    url = urlsplit(endpoint)
    extra = url.path.strip("/") or url.query or url.fragment or url.username or url.password
    return url.scheme in {"http", "https"} and bool(url.hostname) and not extra


def _encode(parameters: dict[str, str]) -> str:
    return urlencode(sorted(parameters.items()), quote_via=quote, safe=UNRESERVED.replace("/", ""))


def _read_object_node(node: ElementTree.Element) -> StoredObject:
    """Return an object of a listing, whose key is encoded: XML cannot hold all characters of keys."""
    return StoredObject(unquote_str(_text(node, "Key")), _text(node, "ETag").strip('"'))


def _text(node: ElementTree.Element, name: str) -> str:
    return node.findtext(f"{NAMESPACE}{name}", "")
