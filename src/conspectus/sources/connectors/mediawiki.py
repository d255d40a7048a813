"""A MediaWiki wiki, read with its API. Namespaces are the spaces, and page ids the keys.

The first listing contains every page that is not a redirect. Later runs read the pages in recent changes and
in the logs of deletions, moves, imports and merges. An event may become visible shortly after its time, so
each run starts a minute before the end of the previous one, and skips what that run has listed. If the cursor
is older than the wiki's history, everything is listed again.
"""

import asyncio
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from urllib.parse import urlencode

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput, NotFound, TooLarge
from conspectus.model.jobs import ConnectorEntry, Listing
from conspectus.model.records import NewDocument
from conspectus.ports.web import Fetched, Fetcher
from conspectus.sources.connectors.wikitext import wikitext_to_markdown
from conspectus.text.hashing import content_hash
from conspectus.text.urls import parse_url

Wait: TypeAlias = Callable[[float], Awaitable[None]]
Answer: TypeAlias = Mapping[str, Any]

ATTEMPTS = 5
USUAL_WAIT = 5.0
MAX_WAIT_SECONDS = 60.0
MAXLAG = 5
BUSY_STATUS = frozenset({429, 500, 502, 503, 504})
BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryTimeoutError"})
REFUSAL_CODES = frozenset({"readapidenied", "permissiondenied"})
MAX_VALUES = 50


class MediaWikiApi:
    """The API at an address such as `https://example.org/w/api.php`. `wait` sleeps for seconds."""

    def __init__(self, fetcher: Fetcher, address: str, *, wait: Wait = asyncio.sleep) -> None:
        url = parse_url(address)
        if url.query or url.credentials:
            raise InvalidInput("address", "must be the address of api.php without query and credentials")
        self.address = str(url)
        self._fetcher = fetcher
        self._wait = wait

    async def query(self, **parameters: str | int) -> AsyncIterator[Answer]:
        """Yield the `query` part of every response, following continuations. Raises FetchFailed."""
        following: Mapping[str, str] = {}
        while True:
            answer = await self._ask({"action": "query", **parameters, **following})
            with self.understood():
                query = dict(answer.get("query") or {})
                more = {name: str(value) for name, value in (answer.get("continue") or {}).items()}
            yield query
            if not more:
                return
            if more == following:
                raise self.failed("continues without progress")
            following = more

    async def rows(self, name: str, **parameters: str | int) -> AsyncIterator[list[Answer]]:
        """Yield the rows of that name in every response. Raises FetchFailed."""
        async for query in self.query(**parameters):
            with self.understood():
                rows: list[Answer] = [dict(row) for row in query.get(name, ())]
            yield rows

    async def pages(self, by: str, values: Sequence[str], **parameters: str | int) -> list[Answer]:
        """Yield pages by `pageids` or `titles`. Parts of one page may be in several responses."""
        pages: list[Answer] = []
        for start in range(0, len(values), MAX_VALUES):
            some = {by: "|".join(values[start : start + MAX_VALUES])}
            async for rows in self.rows("pages", **some, **parameters):
                pages += rows
        return pages

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Convert an error about a missing or wrongly typed member of a response to FetchFailed."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as fault:
            raise self.failed(f"unknown response format: {fault!r:.100}") from fault

    def failed(
        self, reason: str, *, status: int | None = None, passing: bool = False, refused: bool | None = None
    ) -> FetchFailed:
        """Return the error for this wiki."""
        return FetchFailed(self.address, reason, status=status, passing=passing, refused=refused)

    async def _ask(self, parameters: Mapping[str, str | int]) -> Answer:
        usual = {"format": "json", "formatversion": 2, "maxlag": MAXLAG}
        url = f"{self.address}?{urlencode({**usual, **parameters})}"
        for attempt in range(1, ATTEMPTS + 1):
            fetched = await self._fetcher.fetch(url)
            answer = self._read(fetched)
            if answer is not None:
                return answer
            if attempt < ATTEMPTS:
                retry_after = fetched.headers.get("retry-after", "")
                seconds = float(retry_after[:6]) if retry_after.isdecimal() else USUAL_WAIT * attempt
                await self._wait(min(seconds, MAX_WAIT_SECONDS))
        raise self.failed(f"still busy after {ATTEMPTS} attempts", status=fetched.status, passing=True)

    def _read(self, fetched: Fetched) -> Answer | None:
        """Return the response; None if the wiki asks to retry later."""
        if fetched.status in BUSY_STATUS:
            return None
        if fetched.status != 200:
            raise self.failed(f"responded with HTTP {fetched.status}", status=fetched.status)
        with self.understood():
            answer = json.loads(fetched.body)
            error = answer.get("error") or {}
            code, info = error.get("code"), str(error.get("info", ""))
        if not error:
            return dict(answer)
        if code in BUSY_CODES:
            return None
        raise self.failed(f"{code}: {info:.200}", refused=code in REFUSAL_CODES)


AHEAD = 20
ASKED: Mapping[str, str] = {
    "prop": "info|revisions", "inprop": "url", "rvprop": "ids|content", "rvslots": "main",
}  # fmt: skip


class Contents:
    """Reads pages, prefetching those that were announced next."""

    def __init__(self, api: MediaWikiApi) -> None:
        self._api = api
        self._order: list[str] = []
        self._places: dict[str, int] = {}
        self._ahead: dict[str, dict[str, Any]] = {}

    def expect(self, entries: Sequence[ConnectorEntry]) -> None:
        """Announce pages that will be requested, most likely in this order."""
        self._order = [entry.key for entry in entries]
        self._places = {key: position for position, key in enumerate(self._order)}
        self._ahead = {}

    async def of(self, key: str) -> Answer:
        """Return the API's data of a page, with its content if it exists. Raises FetchFailed or TooLarge."""
        if key not in self._ahead:
            position = self._places.get(key)
            some = [key] if position is None else self._order[position : position + AHEAD]
            self._ahead = await self._ask(some)
        return self._ahead.pop(key, {"missing": True})

    async def _ask(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        try:
            answers = await self._api.pages("pageids", keys, **ASKED)
        except TooLarge:
            if len(keys) == 1:
                raise
            return await self._ask(keys[:1])
        pages: dict[str, dict[str, Any]] = {}
        with self._api.understood():
            for part in answers:
                pages.setdefault(str(part["pageid"]), {}).update(part)
        return pages


MAIN = "Main"
VERSION = 1
REMEMBERED = timedelta(days=7)
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
FILE, CATEGORY = 6, 14


@dataclass(frozen=True, slots=True)
class WikiPageInfo:
    """A page in a listing."""

    key: str
    namespace: int
    title: str
    revision: str
    redirect: bool
    url: str | None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "WikiPageInfo | None":
        """Return the page of a response; None if it does not exist."""
        if answer.get("missing") or answer.get("invalid") or not answer.get("pageid"):
            return None
        title = str(answer["title"])
        return cls(
            key=str(int(answer["pageid"])),
            namespace=int(answer["ns"]),
            title=title,
            revision=f"{int(answer['lastrevid'])}-{content_hash(title)[:8]}",
            redirect=bool(answer.get("redirect")),
            url=str(answer["fullurl"]) if answer.get("fullurl") else None,
        )

    @property
    def above(self) -> str:
        """Return the title of the parent page, if the name has one."""
        return self.title.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Site:
    """The wiki's clock, its namespaces that are synced and those with subpages, and special names."""

    now: str
    spaces: Mapping[int, str]
    subpages: frozenset[int]
    files: frozenset[str]
    categories: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the spaces."""
        return frozenset(self.spaces.values())

    @classmethod
    def read(cls, query: Mapping[str, Any], ids: Collection[int] | None) -> "Site":
        """Read the response of `siteinfo`. By default, the content namespaces are synced."""
        namespaces = {
            int(namespace["id"]): namespace
            for namespace in query["namespaces"].values()
            if int(namespace["id"]) >= 0
        }
        now = datetime.strptime(str(query["general"]["time"]), FORMAT)
        selected = [number for number, namespace in sorted(namespaces.items()) if namespace.get("content")]
        if ids is not None:
            selected = [number for number in sorted(namespaces) if number in ids]
        return cls(
            now=now.strftime(FORMAT),
            spaces={number: str(namespaces[number]["name"]) or MAIN for number in selected},
            subpages=frozenset(
                number for number, namespace in namespaces.items() if namespace.get("subpages")
            ),
            files=_names(namespaces, FILE) | {"file", "image", "media"},
            categories=_names(namespaces, CATEGORY) | {"category"},
        )


@dataclass(frozen=True, slots=True)
class MediaWikiCursor:
    """A decoded cursor: start time of the next run, spaces, and revisions listed after that time.

    Without a time, everything has to be listed.
    """

    since: str = ""
    spaces: frozenset[str] = frozenset()
    seen: Mapping[str, str] = field(default_factory=dict)

    def cursor(self) -> str:
        """Encode the cursor."""
        state = {
            "version": VERSION,
            "since": self.since,
            "spaces": sorted(self.spaces),
            "seen": dict(self.seen),
        }
        return json.dumps(state, separators=(",", ":"))

    @classmethod
    def read(cls, cursor: str | None) -> "MediaWikiCursor | None":
        """Decode a cursor. Returns an empty state if it is missing or unreadable."""
        try:
            state = json.loads(cursor or "")
            if state["version"] != VERSION:
                return None
            if state["since"]:
                datetime.strptime(state["since"], FORMAT)
            seen = {str(key): str(revision) for key, revision in state["seen"].items()}
            return cls(str(state["since"]), frozenset(map(str, state["spaces"])), seen)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def earlier(time: str, seconds: int) -> str:
    """Return the time a number of seconds earlier."""
    return (datetime.strptime(time, FORMAT) - timedelta(seconds=seconds)).strftime(FORMAT)


def too_old(since: str, now: str) -> bool:
    """Return whether the wiki may have deleted events since then."""
    return datetime.strptime(now, FORMAT) - datetime.strptime(since, FORMAT) > REMEMBERED


def _names(namespaces: Mapping[int, Mapping[str, Any]], number: int) -> frozenset[str]:
    namespace = namespaces.get(number, {})
    return frozenset(
        str(name).lower() for name in (namespace.get("name"), namespace.get("canonical")) if name
    )


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
        with self._api.understood():
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
            with self._api.understood():
                self._site = Site.read(query, self._namespaces)
                return self._site
        raise self._api.failed("siteinfo is missing")

    async def _listings(self, before: MediaWikiCursor) -> AsyncIterator[Listing]:
        site = await self._ask_site()
        recent = None
        if before.since and before.spaces == site.names and not too_old(before.since, site.now):
            recent = await self._recent(site, before.since)
        if recent is None or recent.unknown:
            async for listing in self._everything(site, before):
                yield listing
            return
        for listing in await self._changed(site, before, recent):
            yield listing

    async def _everything(self, site: Site, before: MediaWikiCursor) -> AsyncIterator[Listing]:
        """Yield all pages, then the changes made while they were listed."""
        spaces = before.spaces | site.names
        listed: dict[str, str] = {}
        for namespace in site.spaces:
            async for pages in self._all_pages(namespace):
                listed |= {page.key: page.revision for page in pages}
                for entries in self._slices(await self._entries(site, pages)):
                    yield Listing(entries, MediaWikiCursor(spaces=spaces).cursor())
        recent = await self._recent(site, earlier(site.now, LOOK_BACK))
        *batches, last = await self._changed(site, MediaWikiCursor(site.now, spaces, listed), recent)
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
            with self._api.understood():
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
            with self._api.understood():
                events += [event for event in rows if _matters(event, site)]
        return events

    async def _changed(self, site: Site, before: MediaWikiCursor, recent: Recent) -> list[Listing]:
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
            seen_so_far |= {entry.key: entry.revision for entry in some}
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
        with self._api.understood():
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
