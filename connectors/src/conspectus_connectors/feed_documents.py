"""What feeds (RSS, Atom) and sitemaps (sitemaps.org) list: items with texts, and addresses of pages."""

import hashlib
import re
from calendar import timegm
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import feedparser

from conspectus.errors import FetchFailed

TOP_SPACE: Final = "."
LEAD_BYTES: Final = 4_000
MAX_KEY_LETTERS: Final = 500
_SITEMAP: Final = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]")
_ENTITY: Final = re.compile(rb"<!\s*ENTITY", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An item of a feed; `html` is its fullest text."""

    key: str
    title: str
    html: str
    link: str = ""
    author: str | None = None
    published: str | None = None

    @property
    def revision(self) -> str:
        """A text that changes with the item."""
        fields = (self.title, self.html, self.link, self.author or "", self.published or "")
        return hashlib.sha256("\0".join(fields).encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The pages that a sitemap names, each with the time of its last change, and the sitemaps in it."""

    pages: Mapping[str, str] = field(default_factory=dict)
    sitemaps: tuple[str, ...] = ()


def is_sitemap(body: bytes) -> bool:
    """Whether XML begins as a sitemap does."""
    return _SITEMAP.search(body[:LEAD_BYTES]) is not None


def parse_feed(body: bytes, address: str, content_type: str) -> list[FeedItem]:
    """Return the items of a feed, each key once. Raises FetchFailed for what is no feed, or not safe."""
    _refuse_entities(body, address)
    headers = {"content-type": content_type, "content-location": address}
    feed = feedparser.parse(body, response_headers=headers, sanitize_html=False)
    if not feed.version:
        raise FetchFailed(address, "is no feed and no sitemap")
    items = (_read_item(entry, number) for number, entry in enumerate(feed.entries, 1))
    return list({item.key: item for item in items}.values())


def parse_sitemap(body: bytes, address: str) -> Sitemap:
    """Return a sitemap without addresses of other hosts. Raises FetchFailed for damaged or unsafe XML."""
    _refuse_entities(body, address)
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as fault:
        raise FetchFailed(address, f"is XML that cannot be read: {fault}") from fault
    pages: dict[str, str] = {}
    sitemaps: list[str] = []
    for element in root:
        fields = {_local_name(child): (child.text or "").strip() for child in element}
        url = fields.get("loc", "")
        if _is_same_host(url, address):
            if _local_name(element) == "sitemap":
                sitemaps.append(url)
            else:
                pages[url] = fields.get("lastmod", "")
    return Sitemap(pages, tuple(sitemaps))


def path_of(url: str) -> str:
    """Return the decoded path of a page below its host."""
    parts = unquote(urlsplit(url).path).split("/")
    return "/".join(part for part in parts if part not in {"", ".", ".."})


def space_of(url: str) -> str:
    """Return the first folder of the path of a page."""
    path = path_of(url)
    return path.partition("/")[0] if "/" in path else TOP_SPACE


def _read_item(entry: Any, number: int) -> FeedItem:
    texts = [str(content.get("value", "")) for content in entry.get("content", ())]
    texts.append(str(entry.get("summary", "")))
    link = str(entry.get("link", ""))
    author = entry.get("author_detail", {}).get("name") or entry.get("author")
    time = entry.get("published_parsed") or entry.get("updated_parsed")
    return FeedItem(
        (str(entry.get("id", "")) or link or str(number))[:MAX_KEY_LETTERS],
        str(entry.get("title", "")),
        max(texts, key=len),
        link,
        str(author) if author else None,
        datetime.fromtimestamp(timegm(time), UTC).isoformat() if time else None,
    )


def _refuse_entities(body: bytes, address: str) -> None:
    """Refuse XML that declares entities, in an encoding of one or two bytes."""
    if _ENTITY.search(body.replace(b"\0", b"")):
        raise FetchFailed(address, "declares entities of its own, which is not safe to read")


def _local_name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _is_same_host(url: str, address: str) -> bool:
    try:
        target, source = urlsplit(url), urlsplit(address)
    except ValueError:
        return False
    return target.scheme in {"http", "https"} and target.netloc == source.netloc
