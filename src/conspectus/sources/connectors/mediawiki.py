"""A MediaWiki wiki, read with its API. Namespaces are the spaces, and page ids the keys.

The first listing contains every page that is not a redirect. Later runs read the pages in recent changes and
in the logs of deletions, moves, imports and merges. An event may become visible shortly after its time, so
each run starts a minute before the end of the previous one, and skips what that run has listed. If the cursor
is older than the wiki's history, everything is listed again.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import Annotated, ClassVar

from conspectus.deferred import dataclass
from conspectus.errors import NotFound
from conspectus.model.annotations import Example, Length
from conspectus.model.checks import Checked
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument
from conspectus.ports.connectors import ConnectionSite
from conspectus.sources.connectors.mediawiki_api import Answer, Contents, MediaWikiApi
from conspectus.sources.connectors.mediawiki_pages import (
    MediaWikiCursor,
    Site,
    WikiPageInfo,
    earlier,
    too_old,
)
from conspectus.sources.connectors.wikitext import wikitext_to_markdown

BATCH = 500
LOGGED = frozenset({"delete", "move", "import", "merge"})
LOOK_BACK = 60
INFO: Mapping[str, str] = {"prop": "info", "inprop": "url"}


@dataclass(frozen=True, slots=True)
class Recent:
    """The pages with events, and those with events after the start of the next run."""

    ids: frozenset[str]
    titles: frozenset[str]
    again: frozenset[str]
    unknown: bool


class MediaWiki:
    """The `Connector` port for a wiki. `namespaces` are numbers; None for all content namespaces."""

    def __init__(
        self,
        api: MediaWikiApi,
        *,
        namespaces: Collection[int] | None = None,
        batch: int = BATCH,
    ) -> None:
        self._api = api
        self._namespaces = namespaces
        self._batch = batch
        self._site: Site | None = None
        self._contents = Contents(api)

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield batches of the changes since the cursor.

        Everything is listed without a valid cursor, after an interrupted full listing, after a week without a
        run, and if the namespaces changed. Raises FetchFailed.
        """
        async for listing in self._listings(MediaWikiCursor.read(cursor) or MediaWikiCursor()):
            self._contents.expect(listing.entries)
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return the current page, or the version that was listed.

        Raises NotFound if it is gone or became a redirect, FetchFailed and TooLarge.
        """
        site = self._site or await self._ask_site()
        answer = await self._contents.of(entry.key)
        with self._api.convert_format_errors():
            page = WikiPageInfo.read(answer)
            if page is None or page.redirect or page.namespace not in site.spaces:
                raise NotFound("page", entry.key)
            content = answer["revisions"][0]["slots"]["main"]
            text, model = str(content.get("content", "")), str(content.get("contentmodel", "wikitext"))
        metadata = {"path": page.title, **({"url": page.url} if page.url else {})}
        if model != "wikitext":
            return NewDocument(text, title=page.title, metadata=metadata, syntax="code")
        text = await asyncio.to_thread(
            wikitext_to_markdown, text, files=site.files, categories=site.categories
        )
        return NewDocument(text, title=page.title, metadata=metadata, syntax="markdown")

    async def close(self) -> None:
        """Do nothing: the fetcher belongs to the caller."""

    async def _ask_site(self) -> Site:
        async for query in self._api.query(meta="siteinfo", siprop="general|namespaces"):
            with self._api.convert_format_errors():
                self._site = Site.read(query, self._namespaces)
                return self._site
        raise self._api.make_error("siteinfo is missing")

    async def _listings(self, before: MediaWikiCursor) -> AsyncIterator[Listing]:
        site = await self._ask_site()
        recent = None
        if before.since and before.spaces == site.names and not too_old(before.since, site.now):
            recent = await self._recent(site, before.since)
        if recent is None or recent.unknown:
            async for listing in self._list_all(site, before):
                yield listing
            return
        for listing in await self._list_changed(site, before, recent):
            yield listing

    async def _list_all(self, site: Site, before: MediaWikiCursor) -> AsyncIterator[Listing]:
        """Yield all pages, then the changes made while they were listed."""
        spaces = before.spaces | site.names
        listed: dict[str, str] = {}
        for namespace in site.spaces:
            async for pages in self._all_pages(namespace):
                listed |= {page.key: page.revision for page in pages}
                for entries in self._slices(await self._entries(site, pages)):
                    yield Listing(entries, MediaWikiCursor(spaces=spaces).cursor())
        recent = await self._recent(site, earlier(site.now, LOOK_BACK))
        *batches, last = await self._list_changed(site, MediaWikiCursor(site.now, spaces, listed), recent)
        for listing in batches:
            yield replace(listing, cursor=MediaWikiCursor(spaces=spaces).cursor())
        yield replace(last, complete=True)

    async def _all_pages(self, namespace: int) -> AsyncIterator[Sequence[WikiPageInfo]]:
        parameters: dict[str, str | int] = {"gapnamespace": namespace, "gapfilterredir": "nonredirects"}
        async for rows in self._api.rows("pages", generator="allpages", gaplimit="max", **parameters, **INFO):
            yield [page for page in self._read(rows) if not page.redirect]

    async def _recent(self, site: Site, since: str) -> Recent:
        ids: dict[str, str] = {}
        titles: dict[str, str] = {}
        unknown = False
        parameters = {"rcstart": since, "rcdir": "newer", "rclimit": "max", "rcprop": "ids|title|timestamp"}
        parameters |= {"rctype": "edit|new", "rcnamespace": "|".join(map(str, site.spaces))}
        changes: list[Answer] = []
        async for rows in self._api.rows("recentchanges", list="recentchanges", **parameters):
            changes += rows
        happened = [*changes, *await self._events(site, since)]
        for event in sorted(happened, key=lambda event: str(event.get("timestamp", ""))):
            with self._api.convert_format_errors():
                time = str(event["timestamp"])
                page_ids = {str(event[name]) for name in ("pageid", "logpage") if event.get(name)}
                named = {
                    str(name) for name in (event.get("title"), _target(event).get("target_title")) if name
                }
                deleted = event.get("action") == "delete" and not event.get("logpage")
                unknown = unknown or deleted or "title" not in event
            ids |= dict.fromkeys(page_ids, time)
            titles |= dict.fromkeys(named if "logid" in event else (), time)
        border = earlier(site.now, LOOK_BACK)
        again = {key for key, time in (*ids.items(), *titles.items()) if time >= border}
        return Recent(frozenset(ids), frozenset(titles), frozenset(again), unknown)

    async def _events(self, site: Site, since: str) -> list[Answer]:
        parameters = {"lestart": since, "ledir": "newer", "lelimit": "max"}
        parameters["leprop"] = "ids|title|type|timestamp|details"
        events: list[Answer] = []
        async for rows in self._api.rows("logevents", list="logevents", **parameters):
            with self._api.convert_format_errors():
                events += [event for event in rows if _matters(event, site)]
        return events

    async def _list_changed(self, site: Site, before: MediaWikiCursor, recent: Recent) -> list[Listing]:
        """Yield the current state of pages with events, except those already listed in that state."""
        listed = self._read(await self._api.pages("pageids", sorted(recent.ids), **INFO))
        listed += self._read(await self._api.pages("titles", sorted(recent.titles), **INFO))
        pages = {page.key: page for page in listed if not page.redirect and page.namespace in site.spaces}
        now = {**dict.fromkeys(recent.ids, ""), **{key: page.revision for key, page in pages.items()}}
        news = {key for key, revision in now.items() if before.seen.get(key) != revision}
        entries = await self._entries(site, [page for key, page in pages.items() if key in news])
        names = {key: page.title for key, page in pages.items()}
        seen = {key: now[key] for key in now if key in recent.again or names.get(key) in recent.again}
        *batches, last = [*self._slices(entries)] or [()]
        listings = []
        seen_so_far = dict(before.seen)
        for some in batches:
            seen_so_far |= {page.key: page.revision for page in some}
            listings.append(Listing(some, MediaWikiCursor(before.since, before.spaces, seen_so_far).cursor()))
        end = MediaWikiCursor(earlier(site.now, LOOK_BACK), site.names, seen)
        gone = tuple(sorted(key for key in news if key not in pages))
        return [*listings, Listing(last, end.cursor(), gone, tuple(sorted(before.spaces - site.names)))]

    async def _entries(self, site: Site, pages: Sequence[WikiPageInfo]) -> list[ConnectorEntry]:
        """Return pages with their parents: the title before the last slash, in namespaces with subpages."""
        above = {page.key: page.above for page in pages if page.namespace in site.subpages and page.above}
        keys_by_title = {page.title: page.key for page in pages}
        missing = sorted(set(above.values()) - keys_by_title.keys())
        parents = self._read(await self._api.pages("titles", missing, **INFO))
        keys_by_title |= {page.title: page.key for page in parents if not page.redirect}
        return [
            ConnectorEntry(
                key=page.key,
                space=site.spaces[page.namespace],
                revision=page.revision,
                title=page.title,
                parent=keys_by_title.get(above.get(page.key, "")),
            )
            for page in pages
        ]

    def _read(self, answers: Iterable[Answer]) -> list[WikiPageInfo]:
        with self._api.convert_format_errors():
            return [page for page in map(WikiPageInfo.read, answers) if page is not None]

    def _slices(self, entries: Sequence[ConnectorEntry]) -> Iterator[tuple[ConnectorEntry, ...]]:
        for start in range(0, len(entries), self._batch):
            yield tuple(entries[start : start + self._batch])


def _matters(event: Answer, site: Site) -> bool:
    """Return whether an event may have added, removed or moved pages in our namespaces.

    Of an event that is hidden from the public, only the type is known.
    """
    places = {event.get("ns"), _target(event).get("target_ns")}
    return event.get("type") in LOGGED and ("title" not in event or not places.isdisjoint(site.spaces))


def _target(event: Answer) -> Answer:
    """Return the target of a move or a merge."""
    return event.get("params") or {}


@dataclass(frozen=True, slots=True)
class WikiOptions(Checked):
    """The options of a wiki."""

    address: Annotated[
        str, Length(1, 4_096), "Address of the wiki's api.php.", Example("https://wiki.example.org/w/api.php")
    ]
    namespaces: Annotated[
        Sequence[int] | None, Length(1, 1_000), "Namespaces; all with content if omitted.", Example([0, 4])
    ] = None


class MediaWikis:
    """Connects with MediaWiki sites."""

    title: ClassVar[str] = "MediaWiki"
    options: ClassVar[type[WikiOptions]] = WikiOptions

    def is_local(self, _: WikiOptions) -> bool:
        """Return False: a wiki is asked over HTTP."""
        return False

    def create(self, options: WikiOptions, site: ConnectionSite) -> MediaWiki:
        """Return the connector of a wiki. Raises InvalidInput for an invalid address."""
        return MediaWiki(MediaWikiApi(site.fetcher, options.address), namespaces=options.namespaces)
