"""Feeds, whose items are documents, and sitemaps, whose pages are. They are public."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from conspectus.connectors import (
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    Fetched,
    Fetcher,
    FileReader,
    Length,
    Listing,
    NewDocument,
    PacedFetcher,
    Range,
    Secret,
)
from conspectus.errors import FetchFailed, InvalidInput, NotFound, TooLarge
from conspectus_connectors.feed_documents import (
    TOP_SPACE,
    FeedItem,
    Sitemap,
    is_sitemap,
    parse_feed,
    parse_sitemap,
    path_of,
    space_of,
)
from conspectus_connectors.path_listing import RemoteFile, list_changes, read_fingerprints

BATCH: Final = 500
MAX_SITEMAPS: Final = 1_000
SUFFIXES: Final[Mapping[str, str]] = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/markdown": ".md",
}
"""Endings of names by the type of a page whose address has another one."""
PAGE: Final = ("http://", "https://")
ITEM: Final = "item:"
NOT_MODIFIED: Final = 304
GONE: Final = frozenset({404, 410})
BUSY: Final = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class FeedOptions(Checked):
    """Which feed or sitemap is read, and as whom."""

    address: Annotated[
        str,
        Length(1, 2_000),
        "Address of a feed (RSS, Atom) or a sitemap.",
        Example("https://example.org/feed.xml"),
    ]
    keep: Annotated[bool, "Keep items that have left the feed: most feeds have the newest alone."] = True
    max_pages: Annotated[int, Range(1, 100_000), "Most items or pages that are listed."] = 10_000
    user: Annotated[str, Length(0, 200), "Name of the user who reads; empty: nobody signs in."] = ""
    password: Annotated[str, Length(0, 500), "Password of that user.", Secret] = field(default="", repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        url = urlsplit(self.address)
        if url.scheme not in {"http", "https"} or not url.hostname or url.username or url.password:
            raise InvalidInput("address", "must be an http or https address without credentials")
        if ":" in self.user:
            raise InvalidInput("user", "has no colon")


class Feeds:
    """Creates connectors with feeds and sitemaps."""

    title: ClassVar[str] = "Feed (RSS, Atom) or sitemap"
    options: ClassVar[type[FeedOptions]] = FeedOptions

    def is_local(self, options: FeedOptions) -> bool:
        """Return False: the fetcher reaches nothing inside without the settings' leave."""
        return False

    def create(self, options: FeedOptions, site: ConnectionSite) -> "FeedConnector":
        """Return the connector of a feed or a sitemap."""
        return FeedConnector(PacedFetcher(site.fetcher), options, site.files)


class FeedConnector:
    """Reads a feed or a sitemap. Keys are the ids of items, or the addresses of pages."""

    def __init__(
        self, fetcher: Fetcher, options: FeedOptions, files: FileReader, *, batch: int = BATCH
    ) -> None:
        self._fetcher = fetcher
        self._options = options
        self._files = files
        self._batch = batch
        self._items: dict[str, FeedItem] = {}
        self._headers: dict[str, str] = {}
        if options.user:
            pair = f"{options.user}:{options.password}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield the items or pages that changed since the cursor, by their texts or times."""
        address = self._options.address
        fetched = await self._ask(address, validators=_read_validators(cursor))
        if fetched.status == NOT_MODIFIED:
            yield Listing((), cursor or "")
        elif is_sitemap(fetched.body):
            files = await self._list_pages(parse_sitemap(fetched.body, address))
            for listing in list_changes(files, cursor, size=self._batch, space_of=space_of):
                yield listing
        else:
            await self._parse(fetched)
            for listing in self._list_items(cursor, _validators_of(fetched)):
                yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return an item of the feed, or a page as it is now."""
        if not entry.key.startswith(PAGE):
            item = (self._items or await self._parse(await self._ask(self._options.address))).get(entry.key)
            if item is None:
                raise NotFound("item", entry.key)
            return await self._read_item(item)
        fetched = await self._ask(entry.key)
        path = path_of(entry.key) or "index"
        suffix = SUFFIXES.get(fetched.content_type, "")
        name = path if path.endswith(suffix) else f"{path}{suffix}"
        document = await self._files.read(fetched.body, name, charset=fetched.charset)
        return replace(document, metadata={**document.metadata, "path": path, "url": entry.key})

    async def close(self) -> None:
        """Hold nothing."""

    async def _parse(self, fetched: Fetched) -> Mapping[str, FeedItem]:
        """Return the items of a feed by key, and remember them."""
        address = self._options.address
        items = await asyncio.to_thread(parse_feed, fetched.body, address, fetched.content_type)
        self._hold_to_limit(len(items))
        self._items = {f"{ITEM}{item.key}": item for item in items}
        return self._items

    def _list_items(self, cursor: str | None, validators: Mapping[str, str]) -> Iterator[Listing]:
        """Yield the changed items. The validators of the feed are in the cursor of the last batch alone."""
        files = {key: RemoteFile(key, item.revision, title=item.title) for key, item in self._items.items()}
        if self._options.keep:
            former = read_fingerprints(cursor) or {}
            files = {key: RemoteFile(key, fingerprint) for key, fingerprint in former.items()} | files
        *batches, last = list_changes(files, cursor, size=self._batch, space_of=_space_of_items)
        yield from batches
        state = {**json.loads(last.cursor), "validators": validators}
        complete = last.complete and not self._options.keep
        yield replace(last, cursor=json.dumps(state, separators=(",", ":")), complete=complete)

    async def _read_item(self, item: FeedItem) -> NewDocument:
        document = await self._files.read(item.html.encode(), "item.html", charset="utf-8")
        heading = f"# {item.title}\n\n" if item.title else ""
        return replace(
            document,
            text=f"{heading}{document.text}",
            title=item.title,
            author=item.author,
            occurred=item.published,
            metadata={"path": item.title or item.key, **({"url": item.link} if item.link else {})},
        )

    async def _list_pages(self, sitemap: Sitemap) -> dict[str, RemoteFile]:
        """Return the pages of a sitemap and of those that it names."""
        pages = dict(sitemap.pages)
        waiting, listed = list(sitemap.sitemaps), set[str]()
        while waiting:
            address = waiting.pop()
            if address in listed:
                continue
            listed.add(address)
            if len(listed) > MAX_SITEMAPS:
                raise TooLarge("sitemap", size=len(listed), limit=MAX_SITEMAPS, unit="sitemaps")
            inner = parse_sitemap((await self._ask(address)).body, address)
            pages |= inner.pages
            waiting += inner.sitemaps
            self._hold_to_limit(len(pages))
        self._hold_to_limit(len(pages))
        files = {}
        for url, changed in sorted(pages.items()):
            fingerprint = changed or await self._read_fingerprint(url)
            if fingerprint is not None:
                files[url] = RemoteFile(url, fingerprint, title=path_of(url))
        return files

    async def _read_fingerprint(self, url: str) -> str | None:
        """Return what changes with a page whose time is not listed; None if it is gone."""
        try:
            head = await self._ask(url, method="HEAD")
            tag = head.headers.get("etag") or head.headers.get("last-modified")
            return tag or hashlib.sha256((await self._ask(url)).body).hexdigest()
        except NotFound:
            return None

    def _hold_to_limit(self, count: int) -> None:
        limit = self._options.max_pages
        if count > limit:
            raise TooLarge("feed", size=count, limit=limit, unit="pages")

    async def _ask(
        self, url: str, *, method: str = "GET", validators: Mapping[str, str] | None = None
    ) -> Fetched:
        """Return an answer: all addresses are of the host of the feed. Raises NotFound and FetchFailed."""
        headers = {**self._headers, **(validators or {})}
        fetched = await self._fetcher.fetch(url, method=method, headers=headers)
        if fetched.status in GONE and url != self._options.address:
            raise NotFound("page", url)
        if fetched.status != 200 and not (validators and fetched.status == NOT_MODIFIED):
            reason = f"responded with HTTP {fetched.status}"
            raise FetchFailed(url, reason, status=fetched.status, passing=fetched.status in BUSY)
        return fetched


def _space_of_items(key: str) -> str:
    return TOP_SPACE


def _validators_of(fetched: Fetched) -> dict[str, str]:
    """Return the headers that ask whether an answer is still the same."""
    names = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
    return {name: fetched.headers[header] for name, header in names.items() if header in fetched.headers}


def _read_validators(cursor: str | None) -> dict[str, str]:
    """Return the validators in a cursor; none for a cursor of something else."""
    if read_fingerprints(cursor) is None:
        return {}
    return dict(json.loads(cursor or "").get("validators", {}))
