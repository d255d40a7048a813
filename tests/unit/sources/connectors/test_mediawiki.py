"""The connector for MediaWiki, beyond the contract of connectors."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.mediawiki_server import Namespace, WikiSite, busy
from tests.support.web_server import Answer, Request, ScriptedServer

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput, NotFound
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.sources.connectors.mediawiki import MediaWiki
from conspectus.sources.connectors.mediawiki_api import ATTEMPTS, MediaWikiApi
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits


@dataclass
class Clock:
    """Time that passes when it is told to."""

    time: datetime = datetime(2024, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def passes(self, **span: float) -> None:
        self.time += timedelta(**span)


@dataclass
class Pauses:
    """Waits for nothing and remembers for how long it should have."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@dataclass
class World:
    """A wiki that is served, its clock, and how long was waited for it."""

    site: WikiSite
    clock: Clock
    server: ScriptedServer
    fetcher: WebFetcher
    pauses: Pauses = field(default_factory=Pauses)

    def connector(self, **options) -> MediaWiki:
        return MediaWiki(
            MediaWikiApi(self.fetcher, f"{self.server.base}/api.php", wait=self.pauses), **options
        )

    async def list_changes(self, cursor: str | None = None, **options) -> list[Listing]:
        return [listing async for listing in self.connector(**options).changes(cursor)]

    def count_requests(self, name: str, value: str) -> int:
        return sum(request.query.get(name) == value for request in self.server.requests)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = Clock()
    site = WikiSite(clock=clock)
    fetcher = WebFetcher(FetchLimits(allow=("127.0.0.1",)))
    async with ScriptedServer({"/api.php": site.answer}) as server:
        yield World(site, clock, server, fetcher)
        await fetcher.close()


def pages_by_title(listings: list[Listing]) -> dict[str, ConnectorEntry]:
    return {page.title: page for listing in listings for page in listing.entries}


def deleted_keys(listings: list[Listing]) -> set[str]:
    return {key for listing in listings for key in listing.gone}


async def test_a_page_becomes_markdown_with_its_address(world: World) -> None:
    await world.site.put("Main", "Herons", "== Food ==\n* [[fish]] {{citation needed}}")
    pages = pages_by_title(await world.list_changes())
    page = await world.connector().fetch(pages["Herons"])
    assert (page.title, page.text, page.syntax) == ("Herons", "## Food\n\n- fish", "markdown")
    assert page.metadata == {"path": "Herons", "url": "https://wiki.example.org/wiki/Herons"}
    assert pages["Herons"].space == "Main"


async def test_subpages_stand_below_their_pages(world: World) -> None:
    world.site.namespaces[0].subpages = False
    for name in ("A", "A/B", "A/B/C", "X/Y"):
        await world.site.put("Manual", name, "text")
    await world.site.put("Main", "A", "text")
    await world.site.put("Main", "A/B", "text")
    before = await world.list_changes()
    pages = pages_by_title(before)
    below = {title: page.parent for title, page in pages.items() if page.parent}
    assert below == {"Manual:A/B": pages["Manual:A"].key, "Manual:A/B/C": pages["Manual:A/B"].key}
    world.clock.passes(hours=1)
    await world.site.put("Manual", "A/New", "text")
    later = pages_by_title(await world.list_changes(before[-1].cursor))
    assert {title: page.parent for title, page in later.items()} == {"Manual:A/New": pages["Manual:A"].key}


async def test_redirects_are_no_pages(world: World) -> None:
    await world.site.put("Main", "Old name", "#REDIRECT [[New name]]")
    await world.site.put("Main", "New name", "text")
    before = await world.list_changes()
    assert pages_by_title(before).keys() == {"New name"}
    world.clock.passes(hours=1)
    await world.site.put("Main", "New name", "#redirect [[Old name]]")
    after = await world.list_changes(before[-1].cursor)
    assert (deleted_keys(after), pages_by_title(after)) == ({pages_by_title(before)["New name"].key}, {})
    with pytest.raises(NotFound):
        await world.connector().fetch(pages_by_title(before)["New name"])


async def test_only_namespaces_with_content_or_those_asked_for(world: World) -> None:
    world.site.namespaces[102] = Namespace(102, "Drafts", content=False)
    for space in ("Main", "Talk", "Drafts"):
        await world.site.put(space, "Page", "text")
    assert pages_by_title(await world.list_changes()).keys() == {"Page"}
    assert pages_by_title(await world.list_changes(namespaces=[1, 102])).keys() == {
        "Talk:Page",
        "Drafts:Page",
    }


async def test_a_page_moved_out_of_what_is_taken_in_is_gone(world: World) -> None:
    await world.site.put("Main", "Page", "text")
    before = await world.list_changes()
    world.clock.passes(hours=1)
    await world.site.move("Main", "Page", to_space="Talk", to_name="Page")
    after = await world.list_changes(before[-1].cursor)
    assert (pages_by_title(after), deleted_keys(after)) == ({}, {pages_by_title(before)["Page"].key})
    world.clock.passes(hours=1)
    await world.site.move("Talk", "Page", to_space="Main", to_name="Back")
    back = await world.list_changes(after[-1].cursor)
    assert pages_by_title(back)["Back"].key == pages_by_title(before)["Page"].key


async def test_only_changes_are_asked_for_after_the_first_run(world: World) -> None:
    for number in range(5):
        await world.site.put("Main", f"Page {number}", "text")
    cursor = (await world.list_changes())[-1].cursor
    world.server.requests.clear()
    world.clock.passes(days=6)
    await world.site.put("Main", "Page 3", "changed")
    listings = await world.list_changes(cursor)
    assert (pages_by_title(listings).keys(), listings[-1].complete) == ({"Page 3"}, False)
    assert world.count_requests("generator", "allpages") == 0


async def test_after_a_week_everything_is_listed(world: World) -> None:
    await world.site.put("Main", "Page", "text")
    cursor = (await world.list_changes())[-1].cursor
    world.clock.passes(days=8)
    listings = await world.list_changes(cursor)
    assert (pages_by_title(listings).keys(), listings[-1].complete) == ({"Page"}, True)


async def test_an_event_that_becomes_visible_late_is_not_missed(world: World) -> None:
    await world.site.put("Main", "Page", "text")
    before = await world.list_changes()
    world.clock.passes(seconds=-30)
    await world.site.put("Main", "Late", "text")
    world.clock.passes(seconds=40)
    after = await world.list_changes(before[-1].cursor)
    assert pages_by_title(after).keys() == {"Late"}
    assert pages_by_title(await world.list_changes(after[-1].cursor)) == {}
    assert pages_by_title(await world.list_changes(before[-1].cursor)).keys() == {"Late"}


async def test_changes_within_a_second_are_all_seen(world: World) -> None:
    await world.site.put("Main", "Page", "one")
    cursor = (await world.list_changes())[-1].cursor
    for text in ("two", "three"):
        await world.site.put("Main", "Page", text)
        listings = await world.list_changes(cursor)
        cursor = listings[-1].cursor
        assert pages_by_title(listings).keys() == {"Page"}
    assert pages_by_title(await world.list_changes(cursor)) == {}


def without_id(event: dict) -> None:
    event["logpage"] = 0


def hidden(event: dict) -> None:
    for name in ("title", "ns", "pageid", "logpage", "params"):
        del event[name]
    event["actionhidden"] = True


@pytest.mark.parametrize("change", [without_id, hidden])
async def test_a_deletion_that_does_not_name_its_page_lists_everything(world: World, change) -> None:
    await world.site.put("Main", "Page", "text")
    await world.site.put("Main", "Goes", "text")
    cursor = (await world.list_changes())[-1].cursor
    world.clock.passes(hours=1)
    await world.site.delete("Main", "Goes")
    change(world.site.events[-1])
    listings = await world.list_changes(cursor)
    assert (pages_by_title(listings).keys(), listings[-1].complete) == ({"Page"}, True)


async def test_a_page_changed_while_everything_is_listed(world: World) -> None:
    for number in range(4):
        await world.site.put("Main", f"Page {number}", "text")
    listings: list[Listing] = []
    async for listing in world.connector().changes(None):
        listings.append(listing)
        if len(listings) == 1:
            await world.site.put("Main", "Page 0", "changed")
            await world.site.delete("Main", "Page 1")
    assert [page.title for page in listings[-1].entries] == ["Page 0"]
    assert deleted_keys(listings) == {pages_by_title(listings[:1])["Page 1"].key}
    assert listings[-1].complete


@pytest.mark.parametrize("status", [200, 429, 503])
async def test_a_wiki_that_is_behind_is_waited_for(world: World, status: int) -> None:
    await world.site.put("Main", "Page", "text")
    world.site.delays = [busy(retry_after=7, status=status), busy(retry_after=900, status=status)]
    assert pages_by_title(await world.list_changes()).keys() == {"Page"}
    assert world.pauses.seconds == [7.0, 60.0]
    assert all(request.query["maxlag"] == "5" for request in world.server.requests)


async def test_a_wiki_that_stays_behind_is_a_passing_failure(world: World) -> None:
    world.site.delays = [busy()] * 100
    with pytest.raises(FetchFailed) as failure:
        await world.list_changes()
    assert (failure.value.passing, len(world.pauses.seconds)) == (True, ATTEMPTS - 1)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"not here", 404),
        Answer(b"<html>Log in</html>", type="text/html"),
        Answer(b"[]"),
        Answer(b"null"),
        Answer(b'{"query": []}'),
        Answer(b'{"query": 7}'),
        Answer(b'{"query": {"general": {"time": "yesterday"}, "namespaces": {}}}'),
        Answer(b'{"query": {"general": {"time": "2024-05-01T00:00:00Z"}, "namespaces": {"0": 1}}}'),
        Answer(b'{"error": {"code": "readapidenied", "info": "You need read permission"}}'),
        Answer(b'{"error": "all of it"}'),
        Answer(b"\xff\xfe", headers={"Content-Type": "application/json"}),
        Answer(b"{}"),
    ],
    ids=range(12),
)
async def test_answers_of_something_else_are_failures(world: World, answer: Answer) -> None:
    world.server.answers["/api.php"] = answer
    with pytest.raises(FetchFailed):
        await world.list_changes()


@pytest.mark.parametrize("name", ["pages", "recentchanges", "logevents"])
@pytest.mark.parametrize(
    "rows", [7, [7], ["x"], [{}], [{"pageid": "x", "title": 1}], [{"type": "move"}], None]
)
async def test_rows_of_something_else_are_failures_or_nothing(world: World, name: str, rows: object) -> None:
    response = json.loads(world.site.answer(_request("meta=siteinfo")).body)
    response["query"][name] = rows
    world.server.answers["/api.php"] = Answer(json.dumps(response).encode())
    try:
        assert pages_by_title(await world.list_changes()) == {}
    except FetchFailed as failure:
        assert not failure.passing


async def test_endless_continuation_ends(world: World) -> None:
    site = json.loads(world.site.answer(_request("meta=siteinfo")).body)
    forever = {**site, "continue": {"x": "1"}}
    forever["query"]["pages"] = []
    world.server.answers["/api.php"] = [
        Answer(json.dumps(site).encode()), Answer(json.dumps(forever).encode()),
    ]  # fmt: skip
    with pytest.raises(FetchFailed, match="continues without progress"):
        await world.list_changes()


def _request(query: str) -> Request:
    return Request("GET", f"/api.php?action=query&format=json&{query}", {}, b"")


@pytest.mark.parametrize(
    "address", ["", "ftp://x/api.php", "https://u:p@x.org/api.php", "https://x.org/api.php?a=b"]
)
async def test_addresses_that_are_none(world: World, address: str) -> None:
    with pytest.raises(InvalidInput):
        MediaWikiApi(world.fetcher, address)


async def test_the_fetcher_guards_the_address(world: World) -> None:
    guarded = WebFetcher(FetchLimits())
    with pytest.raises(ForbiddenAddress):
        _ = [
            listing
            async for listing in MediaWiki(MediaWikiApi(guarded, f"{world.server.base}/api.php")).changes(
                None
            )
        ]
    await guarded.close()
    assert world.server.count() == 0


async def test_pages_are_read_some_at_a_time(world: World) -> None:
    world.site.portion = 500
    for number in range(50):
        await world.site.put("Main", f"Page {number}", f"text {number}")
    connector = world.connector()
    texts = [
        (page.title, (await connector.fetch(page)).text)
        async for listing in connector.changes(None)
        for page in listing.entries
    ]
    assert sorted(texts) == sorted((f"Page {number}", f"text {number}") for number in range(50))
    assert world.count_requests("prop", "info|revisions") == 3


async def test_pages_too_large_together_are_read_alone(world: World) -> None:
    for number in range(5):
        await world.site.put("Main", f"Page {number}", "x" * 40_000)
    small = WebFetcher(FetchLimits(max_bytes=100_000, allow=("127.0.0.1",)))
    connector = MediaWiki(MediaWikiApi(small, f"{world.server.base}/api.php"))
    lengths = [
        len((await connector.fetch(page)).text)
        async for listing in connector.changes(None)
        for page in listing.entries
    ]
    await small.close()
    assert lengths == [40_000] * 5


async def test_a_hidden_revision_is_an_empty_page(world: World) -> None:
    await world.site.put("Main", "Page", "text")
    listed_page = pages_by_title(await world.list_changes())["Page"]
    hidden = {"contentmodel": "wikitext", "texthidden": True}
    page = {"pageid": int(listed_page.key), "ns": 0, "title": "Page", "lastrevid": 9}
    page["revisions"] = [{"revid": 9, "slots": {"main": hidden}}]
    site = json.loads(world.site.answer(_request("meta=siteinfo")).body)
    answers = [json.dumps(response).encode() for response in (site, {"query": {"pages": [page]}})]
    world.server.answers["/api.php"] = [Answer(answer) for answer in answers]
    assert (await world.connector().fetch(listed_page)).text == ""


async def test_a_page_of_code_is_not_read_as_wikitext(world: World) -> None:
    await world.site.put("Main", "Page.js", "x")
    listed_page = pages_by_title(await world.list_changes())["Page.js"]
    slot = {"contentmodel": "javascript", "content": "var x = {{}};"}
    page = {"pageid": int(listed_page.key), "ns": 0, "title": "Page.js", "lastrevid": 9}
    page["revisions"] = [{"revid": 9, "slots": {"main": slot}}]
    site = json.loads(world.site.answer(_request("meta=siteinfo")).body)
    answers = [json.dumps(response).encode() for response in (site, {"query": {"pages": [page]}})]
    world.server.answers["/api.php"] = [Answer(answer) for answer in answers]
    document = await world.connector().fetch(listed_page)
    assert (document.text, document.syntax) == ("var x = {{}};", "code")


async def test_many_changes_are_looked_up_in_portions(world: World) -> None:
    world.site.portion = 500
    cursor = (await world.list_changes())[-1].cursor
    world.clock.passes(hours=1)
    for number in range(130):
        await world.site.put("Main", f"Page {number}", "text")
    listings = await world.list_changes(cursor, batch=40)
    assert [len(listing.entries) for listing in listings] == [40, 40, 40, 10]
    rest = await world.list_changes(listings[1].cursor, batch=40)
    assert pages_by_title(listings[:2]).keys().isdisjoint(pages_by_title(rest).keys())
    assert len(pages_by_title(listings[:2]) | pages_by_title(rest)) == 130
