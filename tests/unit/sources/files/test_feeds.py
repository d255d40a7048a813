"""Feeds: each item is a document."""

from collections.abc import Callable
from pathlib import Path

import pytest

from conspectus.ports import FoundFile
from conspectus.sources.files.extract import Refused
from conspectus.sources.files.feeds import feed_documents, is_feed
from conspectus.sources.files.local_files import LocalFiles

RSS = """<?xml version="1.0" encoding="iso-8859-1"?><rss version="2.0"
xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>Harbor news</title><item><title>Fees für May</title><link>https://example.org/a</link><guid>a-1</guid>
<dc:creator>Ann</dc:creator><pubDate>Tue, 19 Nov 2024 13:30:02 +0100</pubDate><description>short</description>
<content:encoded><![CDATA[<p>Fees <b>rise</b>.</p><ul><li>Heron</li></ul>]]></content:encoded></item>
<item><title>Untimed</title><pubDate>soon</pubDate></item><item/></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><entry><title>One</title><id>urn:1</id>
<link rel="self" href="https://example.org/self"/><link href="https://example.org/1"/><author><name>Bo</name>
</author><updated>2025-02-03T10:00:00Z</updated>
<content type="html">&lt;p&gt;Text &amp;amp; more&lt;/p&gt;</content>
</entry></feed>"""


def test_items_of_rss_have_title_text_author_time_and_link() -> None:
    first, second = feed_documents(RSS, "news.xml")
    assert (first.title, first.text) == ("Fees für May", "# Fees für May\n\nFees rise.\n\n- Heron")
    assert (first.key, first.author) == ("news.xml#a-1", "Ann")
    assert first.occurred == "2024-11-19T12:30:02.000000Z"
    assert first.metadata == {"link": "https://example.org/a", "feed": "Harbor news"}
    assert (second.text, second.occurred, second.key) == ("# Untimed", None, "news.xml#2")


def test_entries_of_atom_are_read() -> None:
    [entry] = feed_documents(ATOM, "log.atom")
    assert (entry.title, entry.text, entry.author) == ("One", "# One\n\nText & more", "Bo")
    assert (entry.key, entry.occurred) == ("log.atom#urn:1", "2025-02-03T10:00:00.000000Z")
    assert entry.metadata["link"] == "https://example.org/1"


def test_other_xml_and_damaged_feeds_stay_text() -> None:
    files = LocalFiles()
    assert is_feed(RSS) and is_feed(ATOM) and not is_feed("<rows><feeder/></rows>")
    [rows] = files.parse_bytes(b"<rows><row>1</row></rows>", "a.xml").documents
    assert rows.text == "<rows><row>1</row></rows>"
    with pytest.raises(Refused):
        feed_documents("<rss><channel>", "a.xml")
    damaged = files.parse_bytes(b"<rss><channel><title>x", "a.rss")
    assert damaged.documents[0].text == "<rss><channel><title>x"
    assert damaged.notice is not None and damaged.notice.startswith("a feed that cannot be read: damaged XML")
    hostile = (
        b'<!DOCTYPE rss [<!ENTITY e SYSTEM "file:///etc/passwd">]><rss><item><title>&e;</title></item></rss>'
    )
    assert "root:" not in files.parse_bytes(hostile, "a.rss").documents[0].text


@pytest.mark.data
def test_a_feed_of_a_blog_is_read(evaluation: Callable[[str], Path]) -> None:
    path = evaluation("markitdown_files") / "test_rss.xml"
    parsed = LocalFiles().parse(FoundFile(path, path.name, 0))
    assert len(parsed.documents) == 10
    assert (
        parsed.documents[0].title.startswith("Ignite 2024") and parsed.documents[0].author == "Frank X. Shaw"
    )
