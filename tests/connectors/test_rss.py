"""The connector with feeds and sitemaps, held to the kit on a web server."""

import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.connection_sites import open_site
from tests.support.gated_office import GatedOffice
from tests.support.web_server import Answer, Request, ScriptedServer

from conspectus.connectors import Listing
from conspectus.errors import FetchFailed, InvalidInput, NotFound, TooLarge
from conspectus.testing.connectors import ConnectorProperties, open_gate
from conspectus_connectors.rss import FeedConnector, FeedOptions, Feeds

USER, PASSWORD = "reader", "hunter2-correct-horse"
SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"


@dataclass
class Site(GatedOffice):
    """A web site with a sitemap, as its authors change it. Pages without a time have a tag alone."""

    web: ScriptedServer
    tells_times: bool = True
    pages: dict[str, str] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    changes: int = 0
    kind: str = "rss"

    def __post_init__(self) -> None:
        self.web.answers["/sitemap.xml"] = self.answer_sitemap

    @property
    def options(self) -> dict[str, Any]:
        return {"address": f"{self.gate.address}/sitemap.xml", "user": USER}

    @property
    def credentials(self) -> dict[str, str]:
        return {"password": PASSWORD}

    def connect(self, **others: Any) -> FeedConnector:
        options = FeedOptions(**{**self.options, **self.credentials, **others})
        connector = Feeds().create(options, self.site)
        connector._batch = 2
        return connector

    async def put(self, space: str, name: str, text: str) -> None:
        path = f"/{quote(space)}/{quote(name)}.html"
        self.changes += 1
        self.pages[path], self.times[path] = f"<p>{escape(text)}</p>", self.changes
        self.web.answers[path] = lambda request: self.answer_page(request, path)

    async def delete(self, space: str, name: str) -> None:
        path = f"/{quote(space)}/{quote(name)}.html"
        del self.pages[path], self.times[path], self.web.answers[path]

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        text = self.pages[f"/{quote(space)}/{quote(name)}.html"]
        await self.put(to_space, to_name, text.removeprefix("<p>").removesuffix("</p>"))
        await self.delete(space, name)

    async def remove_space(self, space: str) -> None:
        for path in [path for path in self.pages if path.startswith(f"/{quote(space)}/")]:
            del self.pages[path], self.times[path], self.web.answers[path]

    def answer_sitemap(self, request: Request) -> Answer:
        urls = ""
        for path, time in self.times.items():
            lastmod = f"<lastmod>2026-11-30T00:00:{time:02}Z</lastmod>" if self.tells_times else ""
            urls += f"<url><loc>{escape(self.gate.address + path)}</loc>{lastmod}</url>"
        body = f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{SITEMAP}">{urls}</urlset>'
        return self.guard(request, Answer(body.encode(), type="application/xml"))

    def answer_page(self, request: Request, path: str) -> Answer:
        headers = {"ETag": f'"{self.times[path]}"'}
        return self.guard(request, Answer(self.pages[path].encode(), type="text/html", headers=headers))

    def guard(self, request: Request, answer: Answer) -> Answer:
        """Refuse who does not sign in."""
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return answer if request.headers.get("authorization") == f"Basic {pair}" else Answer(status=401)


@pytest.fixture
async def web_site() -> AsyncIterator[Site]:
    async with ScriptedServer() as web, open_gate(web.port) as gate, open_site() as site:
        yield Site(gate, site, web)


class TestSitemaps(ConnectorProperties):
    server = "web_site"
    follows_moves = False


async def read_all(connector: FeedConnector, cursor: str | None = None) -> list[Listing]:
    return [listing async for listing in connector.changes(cursor)]


def feed_of(items: Sequence[tuple[str, str]]) -> bytes:
    """A feed in RSS: each item has a title and a text in HTML."""
    time = format_datetime(datetime(2026, 11, 30, tzinfo=UTC))
    rows = "".join(
        f"<item><title>{title}</title><guid isPermaLink='false'>{title}</guid><link>https://example.org/{title}</link>"
        f"<author>ann@example.org (Ann Lee)</author><pubDate>{time}</pubDate>"
        f"<description>{escape(text)}</description></item>"
        for title, text in items
    )
    return f'<rss version="2.0"><channel><title>News</title>{rows}</channel></rss>'.encode()


def serve_feed(site: Site, items: Sequence[tuple[str, str]], tag: str) -> None:
    """Serve a feed with a tag, which need not be sent again."""

    def answer(request: Request) -> Answer:
        is_known = request.headers.get("if-none-match") == tag
        return Answer(status=304) if is_known else Answer(feed_of(items), headers={"ETag": tag})

    site.web.answers["/feed.xml"] = answer


async def test_items_of_a_feed_are_documents(web_site: Site) -> None:
    serve_feed(web_site, [("first", "<p>alpha <b>words</b></p>"), ("second", "beta words")], '"1"')
    connector = web_site.connect(address=f"{web_site.gate.address}/feed.xml")
    [listing] = await read_all(connector)
    documents = [await connector.fetch(entry) for entry in listing.entries]
    assert [document.title for document in documents] == ["first", "second"]
    assert documents[0].text.startswith("# first\n\nalpha")
    assert (documents[0].author, documents[0].occurred) == ("Ann Lee", "2026-11-30T00:00:00+00:00")
    assert documents[0].metadata == {"path": "first", "url": "https://example.org/first"}


async def test_a_feed_that_is_the_same_is_not_sent_again(web_site: Site) -> None:
    serve_feed(web_site, [("first", "alpha words")], '"1"')
    address = f"{web_site.gate.address}/feed.xml"
    [listing] = await read_all(web_site.connect(address=address))
    [unchanged] = await read_all(web_site.connect(address=address), listing.cursor)
    assert (unchanged.entries, unchanged.cursor) == ((), listing.cursor)
    assert web_site.web.requests[-1].headers["if-none-match"] == '"1"'
    later = web_site.connect(address=address)
    assert "alpha words" in (await later.fetch(listing.entries[0])).text, "a page that failed is tried again"


@pytest.mark.parametrize("keep", [True, False])
async def test_items_that_have_left_the_feed(web_site: Site, keep: bool) -> None:
    address = f"{web_site.gate.address}/feed.xml"
    serve_feed(web_site, [("first", "alpha words"), ("second", "beta words")], '"1"')
    [before] = await read_all(web_site.connect(address=address, keep=keep))
    serve_feed(web_site, [("second", "other words"), ("third", "gamma words")], '"2"')
    connector = web_site.connect(address=address, keep=keep)
    [after] = await read_all(connector, before.cursor)
    assert [entry.key for entry in after.entries] == ["item:second", "item:third"]
    assert after.gone == (() if keep else ("item:first",))
    assert (before.complete, after.complete) == (not keep, False)
    with pytest.raises(NotFound):
        await connector.fetch(before.entries[0])


async def test_pages_without_times_are_known_by_their_tags(web_site: Site) -> None:
    web_site.tells_times = False
    await web_site.put("One", "first", "alpha words")
    [listing] = await read_all(web_site.connect())
    [unchanged] = await read_all(web_site.connect(), listing.cursor)
    await web_site.put("One", "first", "other words")
    [changed] = await read_all(web_site.connect(), listing.cursor)
    assert (len(listing.entries), len(unchanged.entries), len(changed.entries)) == (1, 0, 1)
    assert {request.method for request in web_site.web.requests if request.path != "/sitemap.xml"} == {"HEAD"}


async def test_sitemaps_of_sitemaps(web_site: Site) -> None:
    """Those of other hosts are left out, and none is read twice."""
    await web_site.put("One", "first", "alpha words")
    addresses = (f"{web_site.gate.address}/index.xml", web_site.options["address"], "https://other.example/x")
    rows = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    web_site.web.answers["/index.xml"] = Answer(f"<sitemapindex>{rows}</sitemapindex>".encode())
    [listing] = await read_all(web_site.connect(address=f"{web_site.gate.address}/index.xml"))
    assert [entry.key for entry in listing.entries] == [f"{web_site.gate.address}/One/first.html"]
    assert web_site.web.count("/index.xml") == 2


async def test_more_pages_than_allowed_are_refused(web_site: Site) -> None:
    await web_site.put("One", "first", "alpha words")
    await web_site.put("One", "second", "beta words")
    with pytest.raises(TooLarge):
        await read_all(web_site.connect(max_pages=1))


OUTSIDE = b'<!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
HOSTILE = {
    "no feed": b"<html><p>words</p></html>",
    "damaged": b"<urlset><url><loc>x</urlset>",
    "entities": b'<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss version="2.0">&b;</rss>',
    "a file": OUTSIDE + b"<urlset><url><loc>&a;</loc></url></urlset>",
    "UTF-16": '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE rss [<!ENTITY a "b">]><rss/>'.encode(
        "utf-16"
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_answers_are_refused(web_site: Site, name: str) -> None:
    web_site.web.answers["/feed.xml"] = Answer(HOSTILE[name], type="application/xml")
    with pytest.raises(FetchFailed):
        await read_all(web_site.connect(address=f"{web_site.gate.address}/feed.xml"))


@pytest.mark.parametrize("address", ["ftp://a/b", "https://me:pin@a/b", "feed.xml"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="address: must be an http or https address"):
        FeedOptions(address)
