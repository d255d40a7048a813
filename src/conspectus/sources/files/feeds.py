"""Feeds (RSS 0.9 to 2.0, Atom): each item is a document with its title, text, author, time and link."""

import re
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from conspectus.errors import InvalidInput
from conspectus.model.records import NewDocument
from conspectus.sources.files.html import read_visible_text
from conspectus.sources.files.zip_xml import attribute_of, find_child, local_name, parse_xml
from conspectus.text.times import canonical, parse_instant

FEEDS = frozenset({"rss", "RDF", "feed"})
ITEMS = frozenset({"item", "entry"})
TEXTS = ("encoded", "content", "description", "summary")
"""Elements with the text of an item, the fullest first."""
TIMES = ("pubDate", "published", "issued", "date", "updated")
AUTHORS = ("creator", "author")
IDS = ("guid", "id")
LEAD_CHARACTERS = 1_000
MAX_KEY_LENGTH = 200
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_FEED = re.compile(r"<(?:\w+:)?(?:rss|RDF|feed)[\s>]")


def is_feed(text: str) -> bool:
    """Whether XML begins as a feed does."""
    return _FEED.search(text[:LEAD_CHARACTERS]) is not None


def feed_documents(text: str, name: str) -> tuple[NewDocument, ...]:
    """Return the items of a feed that have a title or a text. Raises Refused for damaged XML."""
    feed = parse_xml(_DECLARATION.sub("", text, count=1).encode("utf-8", "replace"), name)
    if local_name(feed) not in FEEDS:
        return ()
    channel = find_child(feed, "channel")
    title = _first_text(feed if channel is None else channel, ("title",))
    items = [element for element in feed.iter() if local_name(element) in ITEMS]
    documents: dict[str, NewDocument] = {}
    for number, item in enumerate(items, 1):
        document = _item_document(item, title, f"{name}#", number)
        if document.text:
            documents.setdefault(document.key or "", document)
    return tuple(documents.values())


def _item_document(item: Any, feed_title: str, prefix: str, number: int) -> NewDocument:
    title = _first_text(item, ("title",))
    link = next(_links(item), "")
    fields = {"link": link, "feed": feed_title}
    text = _first_text(item, TEXTS)
    heading = f"# {title}" if title and not text.startswith("# ") else ""
    identity = _first_text(item, IDS) or link or str(number)
    return NewDocument(
        "\n\n".join(filter(None, (heading, text))),
        title=title,
        key=f"{prefix}{identity[:MAX_KEY_LENGTH]}",
        author=_first_text(item, AUTHORS) or None,
        occurred=_time_of(item),
        metadata={field: value for field, value in fields.items() if value},
        syntax="markdown",
    )


def _links(item: Any) -> Iterator[str]:
    """Yield the addresses of the page of an item: the text of RSS, or the attribute of Atom."""
    for element in item:
        if local_name(element) == "link" and attribute_of(element, "rel", "alternate") == "alternate":
            address = (element.text or "").strip() or attribute_of(element, "href")
            if address:
                yield address


def _first_text(element: Any, names: tuple[str, ...]) -> str:
    """Return the text of the first of these children that has one, read as a page if it is HTML."""
    for name in names:
        for node in element:
            if local_name(node) != name:
                continue
            text = "".join(node.itertext()).strip()
            if "<" in text or "&" in text:
                text = read_visible_text(text.encode(), "utf-8").text()
            if text:
                return text if name in TEXTS else " ".join(text.split())
    return ""


def _time_of(item: Any) -> str | None:
    """Return the time of an item in ISO 8601; None if it has none that can be read."""
    text = _first_text(item, TIMES)
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        return canonical(parsedate_to_datetime(text))
    with suppress(InvalidInput):
        return canonical(parse_instant(text))
    return None
